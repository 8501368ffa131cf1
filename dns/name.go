package dns

import "strings"

// RFC 1035 §2.3.4. A name of 255 octets on the wire has 253 in text form.
const (
	maxNameLength  = 253
	maxLabelLength = 63
)

// Name returns s in canonical form: lower case, without a trailing dot. It does not
// convert Unicode to A-labels.
func Name(s string) string {
	return strings.ToLower(strings.TrimSuffix(s, "."))
}

// Labels returns the labels of a name from left to right; the root has none.
func Labels(name string) []string {
	if name == "" {
		return nil
	}
	return strings.Split(name, ".")
}

// Parent returns the name without its left-most label, "" at the top.
func Parent(name string) string {
	_, parent, _ := strings.Cut(name, ".")
	return parent
}

// ValidName reports whether a canonical name can be queried: no label is empty or too
// long, the name is not too long, and it is printable ASCII. The root is not valid.
func ValidName(name string) bool {
	if name == "" || len(name) > maxNameLength {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > maxLabelLength {
			return false
		}
	}
	for i := range len(name) {
		if name[i] <= ' ' || name[i] > '~' {
			return false
		}
	}
	return true
}

// IsHostname reports whether a valid name consists of letters, digits, hyphens and
// underscores only, like the domain of a mail address in practice. Host names must not
// have underscores (RFC 952), but some do. Address literals are not host names.
func IsHostname(name string) bool {
	if !ValidName(name) {
		return false
	}
	for i := range len(name) {
		c := name[i]
		letter, digit := 'a' <= c|0x20 && c|0x20 <= 'z', '0' <= c && c <= '9'
		if !letter && !digit && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}
