package dmarcd

import (
	"strings"

	"golang.org/x/net/idna"
)

const (
	// maxName is the length limit of a name in A-labels, in octets (RFC 1035
	// §2.3.4 less the length octets of the wire form).
	maxName = 253
	// maxNameInput bounds what is looked at at all. U-labels are longer than
	// the A-labels they become, but not by more than a factor of four.
	maxNameInput = 4 * maxName
	maxLabel     = 63
)

// ParseName turns what a person or a program wrote for a domain name into the
// one form used everywhere: lower case A-labels without a trailing dot. It
// returns an InvalidError for what is not the name of a mail domain: single
// labels, addresses, URLs, wildcards, names with a port or an underscore.
// ParseName of its own result returns the same.
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
	// IDNA knows other dots than U+002E: a label may have become two.
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
	// A name whose last label is a number is an IPv4 address to some
	// software and cannot be a domain to any (RFC 1123 §2.1).
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
