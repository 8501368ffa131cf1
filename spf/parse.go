package spf

import (
	"net/netip"
	"strconv"
	"strings"
)

// fault returns a problem of syntax with the part of the term that begins at.
func (t Term) fault(kind Kind, at int, part string) Problem {
	return Problem{Kind: kind, Position: Position{Term: t.Text, Offset: t.Offset + at}, Text: part}
}

// parseTerm reads one term, which holds no space, as RFC 7208 §4.6.1 has it. If
// there is a problem, the term is returned with the kind Invalid.
func parseTerm(text string, offset int) (Term, *Problem) {
	t := Term{Text: text, Offset: offset}
	invalid := func(p Problem) (Term, *Problem) {
		return Term{Text: text, Offset: offset}, &p
	}
	for i := range len(text) {
		if text[i] < '!' || text[i] > '~' {
			return invalid(t.fault(InvalidCharacter, i, text[i:i+1]))
		}
	}
	start := 0
	qualifier := qualifierOf(text[0])
	if qualifier != None {
		start = 1
	}
	end := start + nameLength(text[start:])
	name := text[start:end]
	if name == "" {
		return invalid(t.fault(MalformedTerm, 0, text))
	}
	switch rest := text[end:]; {
	case rest != "" && rest[0] == '=':
		if qualifier != None {
			return invalid(t.fault(QualifiedModifier, 0, text))
		}
		if p := t.parseModifier(name, end+1); p != nil {
			return invalid(*p)
		}
	case rest == "" || rest[0] == ':' || rest[0] == '/':
		t.Kind = mechanismKind(name)
		if t.Kind == Invalid {
			return invalid(t.fault(UnknownMechanism, start, name))
		}
		t.Qualifier = Pass
		if qualifier != None {
			t.Qualifier = qualifier
		}
		if p := t.parseArguments(end); p != nil {
			return invalid(*p)
		}
	default:
		return invalid(t.fault(MalformedTerm, 0, text))
	}
	return t, nil
}

// nameLength returns how many bytes at the start of s are a name: a letter, then
// letters, digits, hyphens, underscores and dots (RFC 7208 §12).
func nameLength(s string) int {
	for i := range len(s) {
		letter := isLetter(s[i])
		inner := isDigit(s[i]) || strings.IndexByte("-_.", s[i]) >= 0
		if !letter && (!inner || i == 0) {
			return i
		}
	}
	return len(s)
}

// parseModifier reads what follows the equals sign. A known modifier with a bad
// value is an error and never taken for an unknown one.
func (t *Term) parseModifier(name string, at int) *Problem {
	switch {
	case strings.EqualFold(name, "redirect"):
		t.Kind = Redirect
	case strings.EqualFold(name, "exp"):
		t.Kind = Exp
	default:
		t.Kind, t.Name, t.Value = Unknown, name, t.Text[at:]
		_, bad := parseMacroString(t.Value, anyLetter)
		if bad != nil {
			return new(t.fault(InvalidMacro, at+bad.at, bad.text))
		}
		return nil
	}
	return t.parseDomain(at, len(t.Text))
}

// parseArguments reads what follows the name of a mechanism.
func (t *Term) parseArguments(at int) *Problem {
	end := len(t.Text)
	switch t.Kind {
	case All:
		if at < end {
			return new(t.fault(UnexpectedValue, at, t.Text[at:]))
		}
		return nil
	case IP4, IP6:
		return t.parseNetwork(at)
	case A, MX:
		var p *Problem
		if end, p = t.parsePrefixLengths(at); p != nil {
			return p
		}
	}
	switch {
	case at == end && (t.Kind == Include || t.Kind == Exists):
		p := t.fault(MissingValue, 0, t.Text)
		return &p
	case at == end:
		return nil
	case t.Text[at] != ':':
		return new(t.fault(UnexpectedValue, at, t.Text[at:]))
	}
	return t.parseDomain(at+1, end)
}

// parseDomain reads the domain-spec between at and end.
func (t *Term) parseDomain(at, end int) *Problem {
	text := t.Text[at:end]
	if text == "" {
		return new(t.fault(MissingValue, 0, t.Text))
	}
	spec, bad := parseDomainSpec(text)
	if bad != nil {
		return new(t.fault(bad.kind, at+bad.at, bad.text))
	}
	t.Domain = spec
	return nil
}

// parsePrefixLengths reads the dual-cidr-length at the end of an a or mx term
// and returns where it begins. It is looked for from the right, because a
// domain-spec may hold slashes too, but cannot end in one.
func (t *Term) parsePrefixLengths(at int) (end int, p *Problem) {
	t.Bits4, t.Bits6 = fullIPv4, fullIPv6
	rest, digits6, has6 := cutPrefixLength(t.Text[at:], "//")
	rest, digits4, has4 := cutPrefixLength(rest, "/")
	ok4, ok6 := true, true
	if has4 {
		t.Bits4, ok4 = parsePrefixLength(digits4, fullIPv4)
	}
	if has6 {
		t.Bits6, ok6 = parsePrefixLength(digits6, fullIPv6)
	}
	end = at + len(rest)
	if !ok4 || !ok6 {
		fault := t.fault(InvalidPrefixLength, end, t.Text[end:])
		return end, &fault
	}
	return end, nil
}

// parseNetwork reads the argument of ip4 and ip6.
func (t *Term) parseNetwork(at int) *Problem {
	if at == len(t.Text) || t.Text[at:] == ":" {
		return new(t.fault(MissingValue, 0, t.Text))
	}
	bits := fullIPv4
	if t.Kind == IP6 {
		bits = fullIPv6
	}
	rest, digits, found := cutPrefixLength(t.Text[at:], "/")
	if found {
		var ok bool
		if bits, ok = parsePrefixLength(digits, bits); !ok {
			return new(t.fault(InvalidPrefixLength, at+len(rest), t.Text[at+len(rest):]))
		}
	}
	host, ok := strings.CutPrefix(rest, ":")
	addr, err := netip.ParseAddr(host)
	// An address with a zone is none in a record; a slash alone in place of the
	// colon leaves nothing to read.
	if !ok || err != nil || addr.Zone() != "" || addr.Is4() != (t.Kind == IP4) {
		return new(t.fault(InvalidAddress, at+len(rest)-len(host), host))
	}
	t.Network = netip.PrefixFrom(addr, bits)
	return nil
}

// cutPrefixLength cuts separator and the digits after it off the end of s.
func cutPrefixLength(s, separator string) (before, digits string, found bool) {
	i := len(s)
	for i > 0 && isDigit(s[i-1]) {
		i--
	}
	before, found = strings.CutSuffix(s[:i], separator)
	if !found {
		return s, "", false
	}
	return before, s[i:], true
}

// parsePrefixLength reads a number up to limit. RFC 7208 §12 writes it without
// leading zeros.
func parsePrefixLength(digits string, limit int) (int, bool) {
	if digits == "" || len(digits) > 3 || (digits[0] == '0' && len(digits) > 1) {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n <= limit
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
