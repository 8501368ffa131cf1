// Package dns defines DNS questions and answers. It is the contract between the protocol
// packages, which query, and a client, which resolves; it does no I/O itself.
//
// Its key distinction: "there is no such record" is a fact about a domain, "the lookup
// failed" is not. Every answer therefore has one of four outcomes, and the zero value is
// the inconclusive one.
package dns

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"time"
)

// ErrNoAddress means that a host name has no address. Unlike a failed lookup, this is a
// fact about the name.
var ErrNoAddress = errors.New("the host has no address")

// Outcome is the result of a query.
type Outcome uint8

const (
	// Inconclusive means that no server gave a usable answer: a timeout, SERVFAIL,
	// REFUSED, a malformed or looping reply, no server configured. Nothing is known about
	// the name.
	Inconclusive Outcome = iota
	// Data means that there is at least one record of the queried type.
	Data
	// NoData means that the name exists but has no record of that type.
	NoData
	// NoSuchName means NXDOMAIN: neither the name nor anything below it
	// exists (RFC 8020).
	NoSuchName
)

var outcomeWords = [...]string{Inconclusive: "inconclusive", Data: "data", NoData: "no data", NoSuchName: "no such name"}

// String returns the word used in logs and metrics.
func (o Outcome) String() string { return outcomeWords[o] }

// Type is a DNS resource record type, with the numbers of the IANA registry.
type Type uint16

// The types that the protocol packages query.
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

// Question is a name and a record type. The name is in lower-case A-labels without a
// trailing dot; see Name.
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

// Joined returns the character-strings of a TXT record joined without a separator, as RFC
// 9989 §4.5, RFC 7208 §3.3 and RFC 6376 §3.6.2.2 require.
func (r Record) Joined() string { return strings.Join(r.Text, "") }

// Answer is the answer to a question.
type Answer struct {
	Question

	Outcome Outcome
	// Records are the records of the queried type at the end of the alias chain. Empty
	// unless Outcome is Data.
	Records []Record
	// Aliases are the targets of the CNAME records that were followed, in order. The last
	// one has the records, or lacks them.
	Aliases []string
	// Authentic reports that the resolver validated the answer with DNSSEC (AD bit). It is
	// only as trustworthy as the path to the resolver.
	Authentic bool
	// TTL is how long the answer may be cached: the smallest TTL of the chain, or the
	// negative TTL of the zone (RFC 2308). Zero means not at all.
	TTL time.Duration
	// Reason is why the outcome is Inconclusive.
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

// Resolver answers questions. An implementation must be safe for concurrent use, must
// return by the deadline of ctx, and reports every failure as an Inconclusive answer with
// a Reason.
type Resolver interface {
	Resolve(ctx context.Context, q Question) Answer
}

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

// clientKey is the key of a client in a context.
type clientKey struct{}

// ForClient returns a context whose queries are attributed to a client, such as a tenant.
// A Resolver may share its capacity fairly between clients, so that one client cannot
// block the others.
func ForClient(ctx context.Context, client int64) context.Context {
	return context.WithValue(ctx, clientKey{}, client)
}

// ClientOf returns the client of a context, or 0.
func ClientOf(ctx context.Context) int64 {
	client, _ := ctx.Value(clientKey{}).(int64)
	return client
}

// userKey is the key of ForUser in a context.
type userKey struct{}

// ForUser returns a context whose queries are made for a user who waits. A Resolver does not
// answer them with a query of background work that is already in progress: it may have been sent
// before the user changed a record.
func ForUser(ctx context.Context) context.Context {
	return context.WithValue(ctx, userKey{}, true)
}

// IsForUser reports whether the context comes from ForUser.
func IsForUser(ctx context.Context) bool {
	return ctx.Value(userKey{}) != nil
}
