package spf

import (
	"errors"
	"fmt"
	"net/netip"
)

// ErrNotSPF is returned by Parse for text that is not an SPF record: it does not start
// with the version of RFC 7208 §4.5.
var ErrNotSPF = errors.New("text does not begin with v=spf1")

// Kind is a type of problem. The values are stable and may be stored.
type Kind string

// Problems of syntax. Any of them, anywhere in a record, makes the evaluation of
// the whole record a permerror (RFC 7208 §4.6).
const (
	// InvalidCharacter: a byte that is not printable ASCII. Text is the byte.
	InvalidCharacter Kind = "invalid-character"
	// MalformedTerm: neither a mechanism nor a modifier by its shape.
	MalformedTerm Kind = "malformed-term"
	// UnknownMechanism: Text is the name that no mechanism has.
	UnknownMechanism Kind = "unknown-mechanism"
	// QualifiedModifier: a modifier with one of + - ~ ? before it.
	QualifiedModifier Kind = "qualified-modifier"
	// RepeatedModifier: a second redirect or exp (§6). Other is the first.
	RepeatedModifier Kind = "repeated-modifier"
	// MissingValue: a term without the domain or network that it needs.
	MissingValue Kind = "missing-value"
	// UnexpectedValue: Text follows a mechanism that has no value.
	UnexpectedValue Kind = "unexpected-value"
	// InvalidDomain: Text is not a domain-spec, for example because it does not end in a
	// top-level label (§7.1).
	InvalidDomain Kind = "invalid-domain"
	// AddressAsDomain: Text is an IP address where a domain is needed; ip4 or
	// ip6 was meant.
	AddressAsDomain Kind = "address-as-domain"
	// InvalidMacro: Text begins with a percent sign that begins no macro, or
	// a macro that is not allowed here (§7.2).
	InvalidMacro Kind = "invalid-macro"
	// InvalidAddress: Text is not an address of the family of ip4 or ip6.
	InvalidAddress Kind = "invalid-address"
	// InvalidPrefixLength: Text is not a prefix length of its family.
	InvalidPrefixLength Kind = "invalid-prefix-length"
)

// Problems of a record that can be evaluated, seen in its text alone.
const (
	// PassAll: all with the qualifier +, which authorizes everyone.
	PassAll Kind = "pass-all"
	// NeutralAll: all with the qualifier ?, which decides nothing.
	NeutralAll Kind = "neutral-all"
	// NoAll: neither all nor redirect, so that the rest is neutral (§4.7).
	NoAll Kind = "no-all"
	// TermsAfterAll: Count mechanisms after all are never reached (§5.1); Term is the first of
	// them.
	TermsAfterAll Kind = "terms-after-all"
	// RedirectIgnored: a redirect next to all has no effect (§6.1).
	RedirectIgnored Kind = "redirect-ignored"
	// PTRUsed: the ptr mechanism should not be published (§5.5).
	PTRUsed Kind = "ptr-used"
	// BroadRange: the prefix of a network is shorter than Limit bits. Count is its length, and
	// Family its address family. Range is set for ip4 and ip6.
	BroadRange Kind = "broad-range"
	// HostBits: Range has bits set beyond its length; they are ignored.
	HostBits Kind = "host-bits"
	// DuplicateTerm: the record has the same mechanism already, at Other.
	DuplicateTerm Kind = "duplicate-term"
	// UnknownModifier: a modifier without a meaning, which is ignored (§6).
	UnknownModifier Kind = "unknown-modifier"
	// LongRecord: the record has Count bytes, more than Limit: 450 should fit
	// a DNS answer of 512 (§3.4), 512 does not.
	LongRecord Kind = "long-record"
)

// Problems of the DNS data.
const (
	// LookupLimit: Count terms cause queries, more than Limit (§4.6.4). Position is the first
	// term over the limit. Permerror.
	LookupLimit Kind = "lookup-limit"
	// VoidLimit: Count void lookups, more than Limit (§4.6.4), for clients of Family.
	// Permerror for them.
	VoidLimit Kind = "void-limit"
	// MXLimit: Name has Count MX records, more than Limit (§4.6.4). Permerror
	// unless one of the first matches.
	MXLimit Kind = "mx-limit"
	// MultipleRecords: Name has Count SPF records (§4.5). Permerror.
	MultipleRecords Kind = "multiple-records"
	// NoRecord: the domain Name that a term leads to has no SPF record (§5.2,
	// §6.1). Permerror.
	NoRecord Kind = "no-record"
	// NoSuchName: as NoRecord, and the name does not exist at all. Permerror.
	NoSuchName Kind = "no-such-name"
	// Loop: the term leads back to Name, which is being evaluated. Permerror.
	Loop Kind = "loop"
	// MalformedName: Name cannot be queried in DNS (§4.3, §4.8). Permerror for include and
	// redirect.
	MalformedName Kind = "malformed-name"
	// VoidLookup: nothing was found at Name for clients of Family, or of both families if it is
	// AnyFamily (§4.6.4).
	VoidLookup Kind = "void-lookup"
	// Inconclusive: the lookup of Name failed; Reason is why.
	Inconclusive Kind = "inconclusive"
	// Truncated: the explanation stopped here because Limit, the number of queries, levels
	// or terms, was reached. Reason is which.
	Truncated Kind = "truncated"
	// Overlap: Range is covered by Covering at Other, so the term, or this part of it, has
	// no effect.
	Overlap Kind = "overlap"
	// LongString: a character-string of the record has Count bytes, more than
	// the Limit of 255 that the DNS can carry.
	LongString Kind = "long-string"
	// NearMiss: Text is a TXT record that is probably a malformed SPF record.
	NearMiss Kind = "near-miss"
	// SenderID: Text is a record of the obsolete Sender ID (RFC 4406).
	SenderID Kind = "sender-id"
)

// Permanent reports whether a problem of this kind makes an evaluation that
// comes across it a permerror. VoidLimit does so for clients of its family only,
// and MalformedName only where a record is looked for, so neither is.
func (k Kind) Permanent() bool {
	switch k {
	case InvalidCharacter, MalformedTerm, UnknownMechanism, QualifiedModifier,
		RepeatedModifier, MissingValue, UnexpectedValue, InvalidDomain, AddressAsDomain,
		InvalidMacro, InvalidAddress, InvalidPrefixLength,
		LookupLimit, MXLimit, MultipleRecords, NoRecord, NoSuchName, Loop:
		return true
	default:
		return false
	}
}

// Family is the address family of the clients that a problem concerns.
type Family uint8

const (
	// AnyFamily means clients of either family.
	AnyFamily Family = iota
	// IPv4 means clients with an IPv4 address.
	IPv4
	// IPv6 means clients with an IPv6 address.
	IPv6
)

var familyWords = [...]string{IPv4: "IPv4", IPv6: "IPv6"}

// String returns the name of the family, "" for AnyFamily.
func (f Family) String() string { return familyWords[f] }

// Position is the position of a term.
type Position struct {
	// Domain is the name whose record has the term, "" in the results of Parse, which does not
	// know it.
	Domain string
	// Term is the term as published, "" for the whole record.
	Term string
	// Offset is the position in the record in bytes, from 0.
	Offset int
}

// Problem is an error or a doubtful part of a record. The kind determines which fields other
// than Position are set.
type Problem struct {
	Kind Kind
	// Position is the affected term. In syntax problems Offset is the start of Text, otherwise
	// that of Term.
	Position
	Text     string
	Name     string
	Reason   string
	Family   Family
	Count    int
	Limit    int
	Range    netip.Prefix
	Covering netip.Prefix
	Other    Position
}

// SyntaxError is the first problem of syntax in a record.
type SyntaxError struct {
	Problem Problem
}

// Error returns the kind of the problem with the offending text and its
// position.
func (e *SyntaxError) Error() string {
	text := e.Problem.Text
	const shown = 80
	if len(text) > shown {
		text = text[:shown] + "..."
	}
	return fmt.Sprintf("%s %q at byte %d", e.Problem.Kind, text, e.Problem.Offset)
}
