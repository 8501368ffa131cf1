package spf

import (
	"net/netip"
	"strconv"
	"strings"
)

// TermKind is a mechanism or modifier.
type TermKind uint8

const (
	// Invalid is a term that could not be read.
	Invalid TermKind = iota
	// All matches every client (RFC 7208 §5.1).
	All
	// Include matches where another domain's record passes (§5.2).
	Include
	// A matches the addresses of a name (§5.3).
	A
	// MX matches the addresses of a domain's mail exchangers (§5.4).
	MX
	// PTR matches clients whose validated name is below a domain (§5.5).
	PTR
	// IP4 matches an IPv4 network (§5.6).
	IP4
	// IP6 matches an IPv6 network (§5.6).
	IP6
	// Exists matches where a constructed name has an address (§5.7).
	Exists
	// Redirect is the modifier that continues with another record (§6.1).
	Redirect
	// Exp is the modifier that names the text to explain a fail with (§6.2).
	Exp
	// Unknown is a modifier that RFC 7208 does not define (§6).
	Unknown
)

// termNames are the names in lower case, by kind.
var termNames = [...]string{
	All: "all", Include: "include", A: "a", MX: "mx", PTR: "ptr", IP4: "ip4", IP6: "ip6",
	Exists: "exists", Redirect: "redirect", Exp: "exp", Unknown: "unknown",
}

// String returns the name of the mechanism or modifier, in lower case.
func (k TermKind) String() string {
	if k == Invalid || int(k) >= len(termNames) {
		return "invalid"
	}
	return termNames[k]
}

// Modifier reports whether terms of this kind are written name=value.
func (k TermKind) Modifier() bool { return k >= Redirect }

// AsksDNS reports whether evaluating a term of this kind counts towards the
// limit of ten (RFC 7208 §4.6.4).
func (k TermKind) AsksDNS() bool {
	switch k {
	case Include, A, MX, PTR, Exists, Redirect:
		return true
	default:
		return false
	}
}

// mechanismKind returns the kind of the mechanism with that name, in any case; Invalid if there
// is none.
func mechanismKind(name string) TermKind {
	for k := All; k < Redirect; k++ {
		if strings.EqualFold(name, termNames[k]) {
			return k
		}
	}
	return Invalid
}

// The lengths of a prefix that covers one address.
const (
	fullIPv4 = 32
	fullIPv6 = 128
)

// Term is one mechanism or modifier of a record.
type Term struct {
	// Text is the term as published, Offset its position in the record in bytes.
	Text   string
	Offset int
	Kind   TermKind
	// Qualifier is what a match leads to, None for modifiers and for terms
	// that are Invalid.
	Qualifier Result
	// Name is the name of an Unknown modifier as published, and Value the text after its equals
	// sign.
	Name  string
	Value string
	// Domain is the domain-spec; it is empty where the term has none, and the
	// domain of the record is meant.
	Domain DomainSpec
	// Network is the argument of ip4 and ip6, with host bits as written.
	Network netip.Prefix
	// Bits4 and Bits6 are the prefix lengths of a and mx for the two families;
	// where none is written they are 32 and 128.
	Bits4 int
	Bits6 int
}

// String returns the term in its shortest form: the name in lower case, without the qualifier +
// and default prefix lengths. An Invalid term is returned as published.
func (t Term) String() string {
	return t.Qualifier.qualifier() + t.unqualified()
}

// unqualified returns the shortest form of the term without its qualifier.
func (t Term) unqualified() string {
	switch t.Kind {
	case Invalid:
		return t.Text
	case Unknown:
		return strings.ToLower(t.Name) + "=" + t.Value
	case Redirect, Exp:
		return t.Kind.String() + "=" + t.Domain.String()
	case IP4, IP6:
		if t.Network.IsSingleIP() {
			return t.Kind.String() + ":" + t.Network.Addr().String()
		}
		return t.Kind.String() + ":" + t.Network.String()
	}
	var b strings.Builder
	b.WriteString(t.Kind.String())
	if !t.Domain.IsZero() {
		b.WriteString(":" + t.Domain.String())
	}
	if t.Kind == A || t.Kind == MX {
		if t.Bits4 != fullIPv4 {
			b.WriteString("/" + strconv.Itoa(t.Bits4))
		}
		if t.Bits6 != fullIPv6 {
			b.WriteString("//" + strconv.Itoa(t.Bits6))
		}
	}
	return b.String()
}

// position returns the position of the term in the record of domain.
func (t Term) position(domain string) Position {
	return Position{Domain: domain, Term: t.Text, Offset: t.Offset}
}

// fault returns a problem of syntax with the part of the term that begins at.
func (t Term) fault(kind Kind, at int, part string) Problem {
	return Problem{Kind: kind, Position: Position{Term: t.Text, Offset: t.Offset + at}, Text: part}
}

// parseTerm parses one term, which has no space (RFC 7208 §4.6.1). With a problem, the kind of
// the term is Invalid.
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

// nameLength returns the number of bytes at the start of s that are a name: a letter, then
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

// parseModifier parses the text after the equals sign. A known modifier with an invalid value
// is an error, not an unknown modifier.
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

// parsePrefixLengths parses the dual-cidr-length at the end of an a or mx term and returns its
// start. It searches from the right, because a domain-spec may contain slashes, but cannot end
// in one.
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
	// A record cannot have an address with a zone. A slash instead of the colon leaves nothing
	// to parse.
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
