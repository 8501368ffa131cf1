package bimi

import (
	"net/url"
	"path"
	"slices"
	"strings"
)

// otherFormats are the suffixes of image formats that BIMI does not allow (§4.3.2). Other
// suffixes are ignored.
var otherFormats = []string{
	".png", ".apng", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".bmp", ".ico", ".tif", ".tiff", ".eps", ".pdf",
}

// checkURI returns the problem with a URI of a record, "" if it is HTTPS with a full
// domain name (§4.3).
func checkURI(text string) Kind {
	if strings.ContainsRune(text, ',') {
		return SeveralURIs
	}
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return BadURI
		}
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme == "":
		return BadURI
	case u.Scheme != "https":
		return NotHTTPS
	case u.User != nil || !isFullName(u.Hostname()):
		return BadURI
	default:
		return ""
	}
}

// isFullName reports whether a host is a name of at least two labels, not an address or a
// local name.
func isFullName(host string) bool {
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	for _, label := range labels {
		if !isHostLabel(label) {
			return false
		}
	}
	last := labels[len(labels)-1]
	return len(labels) > 1 && strings.ContainsFunc(last, func(r rune) bool { return r < '0' || r > '9' })
}

// isHostLabel reports whether a label consists of letters, digits and inner hyphens or
// underscores.
func isHostLabel(label string) bool {
	for i := range len(label) {
		if c := label[i]; !isLetter(c) && !isDigit(c) && c != '-' && c != '_' {
			return false
		}
	}
	return label != "" && label[0] != '-' && label[len(label)-1] != '-'
}

// hasOtherFormat reports whether the URI has the suffix of another image format.
func hasOtherFormat(uri string) bool {
	u, err := url.Parse(uri)
	return err == nil && slices.Contains(otherFormats, strings.ToLower(path.Ext(u.Path)))
}
