package spf

import (
	"net/netip"
	"strconv"
	"strings"
)

// TermKind tells the mechanisms and modifiers apart.
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
	// Unknown is a modifier that this version of SPF does not know (§6).
	Unknown
)

// termNames holds the names as they are written, in lower case, by kind.
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

// mechanismKind returns the kind of the mechanism called name, in any case,
// Invalid if there is none.
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
	// Text is the term as it is written, Offset its position in the record in
	// bytes.
	Text   string
	Offset int
	Kind   TermKind
	// Qualifier is what a match leads to, None for modifiers and for terms
	// that are Invalid.
	Qualifier Result
	// Name is the name of an Unknown modifier as it is written, and Value what
	// follows its equals sign.
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

// String returns the term in its shortest form: the name in lower case, without
// the qualifier + and without prefix lengths that are the default. A term that
// is Invalid is returned as it is written.
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

// position returns where the term stands in the record of domain.
func (t Term) position(domain string) Position {
	return Position{Domain: domain, Term: t.Text, Offset: t.Offset}
}
