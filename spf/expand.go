package spf

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd/dns"
)

const (
	// maxName is the length of the longest name (RFC 7208 §7.3).
	maxName = 253
	// maxLabel is the length of the longest label.
	maxLabel = 63
	// maxExpansion bounds the expansion of macros: a long record of %{s} would otherwise
	// multiply a long sender.
	maxExpansion = 1 << 14
)

// expand replaces the macros among the parts by what value returns for their
// letters (RFC 7208 §7.3). It returns false if the text grows out of bounds.
func expand(parts []part, value func(letter byte) string) (string, bool) {
	var b strings.Builder
	for _, p := range parts {
		if p.letter == 0 {
			b.WriteString(p.literal)
		} else {
			b.WriteString(p.transform(value(p.letter)))
		}
		if b.Len() > maxExpansion {
			return "", false
		}
	}
	return b.String(), true
}

// transform splits the value at the delimiters, reverses the parts, keeps the
// right-most ones, joins them with dots, and escapes the result for a URL.
func (p part) transform(value string) string {
	if p.reverse || p.labels > 0 || p.delimiters != "" {
		separators := cmp.Or(p.delimiters, ".")
		fields := splitAny(value, separators)
		if p.reverse {
			slices.Reverse(fields)
		}
		if p.labels > 0 && p.labels < len(fields) {
			fields = fields[len(fields)-p.labels:]
		}
		value = strings.Join(fields, ".")
	}
	if p.escape {
		value = escapeURL(value)
	}
	return value
}

// splitAny splits s at every byte that is one of the separators; other than
// strings.FieldsFunc it keeps empty fields.
func splitAny(s, separators string) []string {
	var fields []string
	for {
		i := strings.IndexAny(s, separators)
		if i < 0 {
			return append(fields, s)
		}
		fields = append(fields, s[:i])
		s = s[i+1:]
	}
}

// escapeURL escapes every byte outside of the unreserved set of RFC 3986 §2.3,
// which is stricter than net/url in either of its modes.
func escapeURL(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if isLetter(c) || isDigit(c) || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&0xf])
		}
	}
	return b.String()
}

// fitName normalizes expanded text for a query: lower case, without a trailing dot, and
// truncated from the left, label by label, to the maximum length (RFC 7208 §7.3).
func fitName(s string) string {
	name := dns.Name(s)
	for len(name) > maxName {
		_, shorter, found := strings.Cut(name, ".")
		if !found {
			break
		}
		name = shorter
	}
	return name
}

// askable reports whether a name can be queried: labels of 1 to 63 bytes, 253 in total,
// printable ASCII. Labels need not be host names, because macros and published names may
// contain any character (RFC 7208 §7.1).
func askable(name string) bool {
	if len(name) > maxName {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > maxLabel {
			return false
		}
	}
	return strings.IndexFunc(name, func(c rune) bool { return c < ' ' || c > '~' }) < 0
}

// checkable reports whether check_host() may continue with the name: it can be queried and
// has several labels (RFC 7208 §4.3).
func checkable(name string) bool {
	return askable(name) && strings.IndexByte(name, '.') >= 0
}

// isDomain reports whether mail could come from the name: it is checkable, consists of
// letters, digits, hyphens and underscores, and is not an IPv4 address. It avoids DNS
// queries for address literals and junk in HELO.
func isDomain(name string) bool {
	odd := func(c rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", c)
	}
	return checkable(name) && strings.IndexFunc(name, odd) < 0 &&
		strings.Trim(name[strings.LastIndexByte(name, '.')+1:], "0123456789") != ""
}
