// Package dns says what a question to the Domain Name System can come back
// with. It is the contract between the protocol packages, which ask, and a
// client, which answers; it sends nothing itself.
//
// The distinction it exists for: "there is no such record" is a fact about a
// domain, "nobody could tell me" is not. The two must never be confused, so
// every answer carries one of four outcomes, and the zero value is the one that
// claims nothing.
package dns

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"time"
)

// ErrNoAddress says that a host name has no address. Unlike a lookup without an
// answer it is a fact about the name.
var ErrNoAddress = errors.New("the host has no address")

// Outcome tells what a question came back with.
type Outcome uint8

const (
	// Inconclusive means that no server gave a usable answer: a timeout,
	// SERVFAIL, REFUSED, a broken or looping reply, no server configured.
	// Nothing may be concluded about the name.
	Inconclusive Outcome = iota
	// Data means that there is at least one record of the type asked for.
	Data
	// NoData means that the name exists but has no record of that type.
	NoData
	// NoSuchName means NXDOMAIN: neither the name nor anything below it
	// exists (RFC 8020).
	NoSuchName
)

// String returns the word used in logs and metrics.
func (o Outcome) String() string {
	switch o {
	case Data:
		return "data"
	case NoData:
		return "no data"
	case NoSuchName:
		return "no such name"
	default:
		return "inconclusive"
	}
}

// Type is a DNS resource record type, with the numbers of the IANA registry.
type Type uint16

// The types that the protocol packages ask for.
const (
	A      Type = 1
	NS     Type = 2
	CNAME  Type = 5
	SOA    Type = 6
	PTR    Type = 12
	MX     Type = 15
	TXT    Type = 16
	AAAA   Type = 28
	DNAME  Type = 39
	DS     Type = 43
	RRSIG  Type = 46
	DNSKEY Type = 48
	TLSA   Type = 52
)

// Question is a name and the type of record wanted at it. The name is in lower
// case A-labels without a trailing dot; see Name.
type Question struct {
	Name string
	Type Type
}

// Record is one resource record. Which fields are set depends on the type:
// Text for TXT, Addr for A and AAAA, Host for CNAME, DNAME, NS, PTR and MX
// (with Preference), Raw for every other type.
type Record struct {
	Name       string        // owner, as in Question
	Type       Type          //
	TTL        time.Duration //
	Text       []string      // the character-strings of one TXT record, in order
	Host       string        // a name, as in Question; "" is the root
	Preference uint16        // of an MX record
	Addr       netip.Addr    //
	Raw        []byte        // the record data as on the wire
}

// Joined returns the character-strings of a TXT record as one string, joined
// without a separator as RFC 9989 §4.5, RFC 7208 §3.3 and RFC 6376 §3.6.2.2
// all ask for.
func (r Record) Joined() string { return strings.Join(r.Text, "") }

// Answer is what came back for a question.
type Answer struct {
	Question

	Outcome Outcome
	// Records holds the records of the type asked for, found at the end of
	// the chain of aliases. It is empty unless Outcome is Data.
	Records []Record
	// Aliases holds the targets of the CNAME records that were followed, in
	// order. The last one is where the records are, or are missing.
	Aliases []string
	// Authentic reports that the resolver says it validated the answer with
	// DNSSEC (the AD bit). It is worth as much as the path to the resolver.
	Authentic bool
	// TTL is how long the answer may be kept: the smallest TTL on the way, or
	// the negative TTL of the zone (RFC 2308). Zero means not at all.
	TTL time.Duration
	// Reason says in words why the outcome is Inconclusive.
	Reason string
}

// Texts returns each TXT record of the answer as one joined string.
func (a Answer) Texts() []string {
	var texts []string
	for _, r := range a.Records {
		if r.Type == TXT {
			texts = append(texts, r.Joined())
		}
	}
	return texts
}

// Resolver answers questions. An implementation must be safe for concurrent
// use, must return by the deadline of ctx, and tells every failure as an
// Inconclusive answer with a Reason.
type Resolver interface {
	Resolve(ctx context.Context, q Question) Answer
}
