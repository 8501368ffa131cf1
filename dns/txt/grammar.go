package txt

import "strings"

const (
	whitespace = " \t" // WSP of the grammars
	// maxExtensionName is how long the name of an extension may be.
	maxExtensionName = 32
)

// CutVersion returns the text after the version and its semicolon, and whether there is
// white space between these. It returns false for a text that does not start with both,
// which is not a record (RFC 8461 §3.1, RFC 8460 §3).
func CutVersion(text, version string) (rest string, spaced, ok bool) {
	rest, ok = strings.CutPrefix(text, version)
	if !ok {
		return "", false, false
	}
	trimmed := strings.TrimLeft(rest, whitespace)
	spaced = trimmed != rest
	rest, ok = strings.CutPrefix(trimmed, ";")
	return rest, spaced, ok
}

// CutVersionTag returns the text after the tag v of a tag list (RFC 6376 §3.2), without its name,
// and after its semicolon, and whether there is one. It returns false for a text that does not
// start with an equals sign and the version, or goes on without a semicolon.
func CutVersionTag(text, version string) (rest string, separated, ok bool) {
	rest, ok = strings.CutPrefix(strings.TrimLeft(text, whitespace), "=")
	if !ok {
		return "", false, false
	}
	rest, ok = strings.CutPrefix(strings.TrimLeft(rest, whitespace), version)
	if !ok {
		return "", false, false
	}
	rest = strings.TrimLeft(rest, whitespace)
	if rest == "" {
		return "", false, true
	}
	rest, separated = strings.CutPrefix(rest, ";")
	return rest, separated, separated
}

// IsExtensionName follows sts-ext-name of RFC 8461 §3.1, which is also
// tlsrpt-ext-name of RFC 8460 §3: a letter or digit, then at most 31 of these,
// underscores, hyphens and dots.
func IsExtensionName(name string) bool {
	if name == "" || len(name) > maxExtensionName {
		return false
	}
	for i := range len(name) {
		c := name[i]
		letter, digit := 'a' <= c|0x20 && c|0x20 <= 'z', '0' <= c && c <= '9'
		if !letter && !digit && (i == 0 || c != '_' && c != '-' && c != '.') {
			return false
		}
	}
	return true
}

// IsExtensionValue follows sts-ext-value of RFC 8461 §3.1, which is also
// tlsrpt-ext-value of RFC 8460 §3: printable ASCII without the equals sign. The
// semicolon, which is not allowed either, ends a value before it gets here.
func IsExtensionValue(value string) bool {
	for i := range len(value) {
		if c := value[i]; c <= ' ' || c > '~' || c == '=' {
			return false
		}
	}
	return value != ""
}
