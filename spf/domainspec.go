package spf

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd/dns"
)

const (
	// anyLetter are the macro letters of explanation text.
	anyLetter = "slodiphvcrt"
	// domainLetters are the macro letters of a domain-spec: c, r and t are for explanations
	// only (RFC 7208 §7.2).
	domainLetters = "slodiphv"
	// delimiters are the delimiters of a macro (§7.1).
	delimiters = ".-+,/_="
)

// DomainSpec is the domain of a term: a name that may contain macros (RFC 7208 §7.1). The zero
// value means that the term has none.
type DomainSpec struct {
	text  string
	parts []part
}

// String returns the domain-spec as published.
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

// Dynamic reports whether the name depends on the client or on the local part of the sender,
// and not only on the domain.
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

// escapeSequence returns the value of a macro without braces at the start of s: %%, %_ or %-.
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

// parseMacro parses the macro at the start of s, "%{" letter digits "r" delimiters "}", and
// returns its length. If it is invalid, length is that of the text to show in the problem.
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

// splitAny splits s at every separator byte. Unlike strings.FieldsFunc it returns empty fields
// too.
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
