package spf

import (
	"net/netip"
	"strconv"
	"strings"
)

const (
	// anyLetter holds the macro letters that explanation text may use.
	anyLetter = "slodiphvcrt"
	// domainLetters holds those that a domain-spec may use: c, r and t are for
	// explanations only (RFC 7208 §7.2).
	domainLetters = "slodiphv"
	// delimiters may stand in a macro (§7.1).
	delimiters = ".-+,/_="
)

// DomainSpec is the domain of a term: a name that may hold macros (RFC 7208
// §7.1). The zero value is the absence of one.
type DomainSpec struct {
	text  string
	parts []part
}

// String returns the domain-spec as it is written.
func (d DomainSpec) String() string { return d.text }

// IsZero reports whether the term has no domain-spec.
func (d DomainSpec) IsZero() bool { return d.text == "" }

// Macros returns the letters of the macros in it, in lower case and in order.
func (d DomainSpec) Macros() string {
	var letters []byte
	for _, p := range d.parts {
		if p.letter != 0 {
			letters = append(letters, p.letter)
		}
	}
	return string(letters)
}

// Dynamic reports whether the name depends on the client or on the local part of the
// sender, so that it is not determined by the domain alone.
func (d DomainSpec) Dynamic() bool {
	return strings.Trim(d.Macros(), "do") != ""
}

// part is a stretch of literal text or one macro.
type part struct {
	literal    string // where letter is 0
	letter     byte   // in lower case
	escape     bool   // the letter was written in upper case (§7.3)
	labels     int    // how many right-hand parts to keep, 0 for all
	reverse    bool   //
	delimiters string // "" is the dot
}

// flaw is the error of a malformed macro-string.
type flaw struct {
	kind Kind
	at   int
	text string
}

// parseDomainSpec reads a macro-string that ends in a macro, or in a dot and a
// top-level label (RFC 7208 §7.1).
func parseDomainSpec(s string) (DomainSpec, *flaw) {
	parts, bad := parseMacroString(s, domainLetters)
	if bad != nil {
		return DomainSpec{}, bad
	}
	if !endsInMacro(s) {
		literal := strings.TrimSuffix(parts[len(parts)-1].literal, ".")
		dot := strings.LastIndexByte(literal, '.')
		if dot < 0 || !isTopLabel(literal[dot+1:]) {
			kind := InvalidDomain
			if _, err := netip.ParseAddr(s); err == nil {
				kind = AddressAsDomain
			}
			return DomainSpec{}, &flaw{kind, 0, s}
		}
	}
	return DomainSpec{text: s, parts: parts}, nil
}

// endsInMacro reports whether the last thing in s, a valid macro-string, is a
// macro-expand: one in braces, or one of the three escapes.
func endsInMacro(s string) bool {
	i := 0
	for i < len(s) {
		if s[i] != '%' {
			i++
			continue
		}
		if s[i+1] != '{' {
			i += len("%%")
		} else {
			i += strings.IndexByte(s[i:], '}') + 1
		}
		if i == len(s) {
			return true
		}
	}
	return false
}

// isTopLabel reports whether s is a toplabel: letters, digits and inner hyphens,
// but not digits alone.
func isTopLabel(s string) bool {
	if s == "" || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	numeric := true
	for i := range len(s) {
		switch {
		case isDigit(s[i]):
		case isLetter(s[i]) || s[i] == '-':
			numeric = false
		default:
			return false
		}
	}
	return !numeric
}

// parseMacroString cuts s into its parts. Adjacent literals become one part. The
// caller has made sure that s is printable ASCII.
func parseMacroString(s, letters string) ([]part, *flaw) {
	var parts []part
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			parts = append(parts, part{literal: literal.String()})
			literal.Reset()
		}
	}
	for i := 0; i < len(s); {
		if s[i] != '%' {
			end := strings.IndexByte(s[i:], '%')
			if end < 0 {
				end = len(s) - i
			}
			literal.WriteString(s[i : i+end])
			i += end
			continue
		}
		if text, ok := escapeSequence(s[i:]); ok {
			literal.WriteString(text)
			i += len("%%")
			continue
		}
		p, length, ok := parseMacro(s[i:], letters)
		if !ok {
			return nil, &flaw{InvalidMacro, i, s[i : i+length]}
		}
		flush()
		parts = append(parts, p)
		i += length
	}
	flush()
	return parts, nil
}

// escapeSequence returns what one of the three macros without braces at the
// start of s stands for.
func escapeSequence(s string) (string, bool) {
	switch {
	case strings.HasPrefix(s, "%%"):
		return "%", true
	case strings.HasPrefix(s, "%_"):
		return " ", true
	case strings.HasPrefix(s, "%-"):
		return "%20", true
	default:
		return "", false
	}
}

// parseMacro reads the macro at the start of s, "%{" letter digits "r"
// delimiters "}", and returns its length. If it is none, the length is that of
// what should be shown as wrong.
func parseMacro(s, letters string) (p part, length int, ok bool) {
	if !strings.HasPrefix(s, "%{") {
		return p, min(len(s), len("%x")), false
	}
	length = strings.IndexByte(s, '}') + 1
	if length < len("%{x}") {
		return p, max(length, min(len(s), len("%{x"))), false
	}
	body := s[len("%{") : length-1]
	p.letter = body[0] | 0x20
	p.escape = body[0] != p.letter
	if !isLetter(body[0]) || strings.IndexByte(letters, p.letter) < 0 {
		return p, length, false
	}
	body = body[1:]
	digits := 0
	for digits < len(body) && isDigit(body[digits]) {
		digits++
	}
	if digits > 0 {
		// A number too large to read is larger than any number of parts.
		n, err := strconv.Atoi(body[:digits])
		if err == nil && n == 0 {
			return p, length, false
		}
		p.labels = n
	}
	body = body[digits:]
	if body != "" && body[0]|0x20 == 'r' {
		p.reverse = true
		body = body[1:]
	}
	p.delimiters = body
	return p, length, strings.Trim(body, delimiters) == ""
}
