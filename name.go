package dmarcd

import (
	"net/url"
	"strings"

	"golang.org/x/net/idna"
)

const (
	// maxName is the length limit of a name in A-labels, in bytes (RFC 1035 §2.3.4,
	// without the length bytes of the wire format).
	maxName = 253
	// maxNameInput limits the input. U-labels are longer than their A-labels, by at most
	// a factor of four.
	maxNameInput = 4 * maxName
	maxLabel     = 63
)

// ParseName normalizes a domain name to lower-case A-labels without a trailing dot. It
// returns an InvalidError for anything that is not the name of a mail domain: single
// labels, addresses, URLs, wildcards, names with a port or an underscore. It is
// idempotent.
func ParseName(s string) (string, error) {
	if len(s) > maxNameInput {
		return "", invalidName()
	}
	name := strings.ToLower(strings.TrimSpace(s))
	name = strings.TrimSuffix(name, ".")

	labels := strings.Split(name, ".")
	for i, label := range labels {
		if isASCII(label) && !strings.HasPrefix(label, "xn--") {
			continue
		}
		ascii, err := idna.Lookup.ToASCII(label)
		if err != nil {
			return "", invalidName()
		}
		labels[i] = ascii
	}
	// IDNA has other dots than U+002E: one label may have become two.
	name = strings.Join(labels, ".")
	if !isName(name) {
		return "", invalidName()
	}
	return name, nil
}

func invalidName() error {
	return &InvalidError{Field: "domain", Message: "The domain must be a domain name such as example.com: " +
		"at least two labels of letters, digits and inner hyphens, without a scheme, port, path, wildcard or address."}
}

func isName(name string) bool {
	labels := strings.Split(name, ".")
	if len(name) > maxName || len(labels) < 2 {
		return false
	}
	for _, label := range labels {
		if !isLabel(label) {
			return false
		}
	}
	// Some software treats a name with a numeric last label as an IPv4 address, and no
	// domain has one (RFC 1123 §2.1).
	return strings.Trim(labels[len(labels)-1], "0123456789") != ""
}

func isLabel(label string) bool {
	if len(label) < 1 || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	for i := range len(label) {
		c := label[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// NamesIn returns the distinct domain names in pasted text: a list separated by white
// space, commas or semicolons, or a zone file. From a zone file it takes $ORIGIN and the owner of
// the SOA record. URLs and email addresses are reduced to their domain. Words without a
// domain name are returned unchanged.
func NamesIn(text string) (names, unreadable []string) {
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n,;", r) })
	if zone := zoneNames(text); len(zone) > 0 {
		words = zone
	}
	known := map[string]bool{}
	for _, word := range words {
		name, err := ParseName(hostOf(word))
		switch {
		case err != nil:
			unreadable = append(unreadable, word)
		case !known[name]:
			known[name] = true
			names = append(names, name)
		}
	}
	return names, unreadable
}

// zoneNames returns the names of the zones in a zone file, nil for any other text.
func zoneNames(text string) []string {
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) > 1 && strings.EqualFold(fields[0], "$ORIGIN") {
			names = append(names, fields[1])
			continue
		}
		for _, field := range fields[min(1, len(fields)):] {
			if strings.EqualFold(field, "SOA") && fields[0] != "@" {
				names = append(names, fields[0])
				break
			}
		}
	}
	return names
}

// hostOf returns the domain of a URL or an email address, or the word itself.
func hostOf(word string) string {
	word = strings.Trim(word, "<>()\"'")
	if strings.Contains(word, "://") {
		if address, err := url.Parse(word); err == nil {
			return address.Hostname()
		}
	}
	word = strings.TrimPrefix(word, "mailto:")
	if at := strings.LastIndexByte(word, '@'); at >= 0 {
		word = word[at+1:]
	}
	host, _, _ := strings.Cut(word, "/")
	return host
}
