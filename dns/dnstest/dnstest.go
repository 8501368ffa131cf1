// Package dnstest answers DNS questions from memory, for the tests of packages
// that ask through a dns.Resolver.
//
// A Zone is the whole of the Domain Name System as one test sees it: what is not
// in it does not exist. It tells a missing name from a missing type, knows empty
// non-terminals (RFC 8020), wildcards (RFC 4592), CNAME and DNAME, can be told
// that a name cannot be looked up, and remembers every question.
package dnstest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd/dns"
)

const (
	// defaultTTL is given to records whose line names no TTL.
	defaultTTL = time.Hour
	// negativeTTL is given to answers without records.
	negativeTTL = 5 * time.Minute
	// maxAliases is how many CNAME or DNAME redirections are followed.
	maxAliases = 8
	// everyType marks a name as failing for all types; 255 is "ANY".
	everyType dns.Type = 255
)

// Zone is a dns.Resolver over records held in memory. It is safe for concurrent
// use.
type Zone struct {
	mu        sync.Mutex
	records   map[dns.Question][]dns.Record
	failing   map[dns.Question]bool
	existing  map[string]bool // every owner and all of its ancestors
	authentic map[string]bool
	asked     []dns.Question
}

// New returns a zone with the records of text, one on a line in the manner of a
// master file: name, TTL in seconds (optional), type, data.
//
//	_dmarc.example.com   TXT   "v=DMARC1; " "p=none"   ; strings of one record
//	example.com      60  MX    10 mail.example.com
//	mail.example.com     A     192.0.2.1
//	www.example.com      CNAME example.com
//	*.example.net        AAAA  2001:db8::1
//	_25._tcp.example.com TLSA  030101 00ff               ; wire form in hexadecimal
//	slow.example.com     INCONCLUSIVE                    ; for every type
//	odd.example.com      MX INCONCLUSIVE                 ; for one type
//
// Names are absolute with or without the trailing dot. SOA, DS, RRSIG, DNSKEY and
// TLSA are written like the TLSA record above. New panics on text that it cannot
// read: a wrong fixture is a mistake in the test.
func New(text string) *Zone {
	z := &Zone{
		records:   make(map[dns.Question][]dns.Record),
		failing:   make(map[dns.Question]bool),
		existing:  map[string]bool{"": true},
		authentic: make(map[string]bool),
	}
	for n, line := range strings.Split(text, "\n") {
		if err := z.addLine(line); err != nil {
			panic(fmt.Sprintf("dnstest: line %d %q: %v", n+1, line, err))
		}
	}
	return z
}

// Add puts records into the zone. Names are brought into the form of dns.Name.
func (z *Zone) Add(records ...dns.Record) {
	z.mu.Lock()
	defer z.mu.Unlock()
	for _, r := range records {
		r.Name, r.Host = dns.Name(r.Name), dns.Name(r.Host)
		q := dns.Question{Name: r.Name, Type: r.Type}
		z.records[q] = append(z.records[q], r)
		z.markExisting(r.Name)
	}
}

// Fail makes every question for the name inconclusive, or, where types are given,
// the questions for those types. The name and its ancestors count as existing.
func (z *Zone) Fail(name string, types ...dns.Type) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if len(types) == 0 {
		types = []dns.Type{everyType}
	}
	name = dns.Name(name)
	for _, t := range types {
		z.failing[dns.Question{Name: name, Type: t}] = true
	}
	z.markExisting(name)
}

// Authenticate makes the answers to questions at and below the name carry the
// mark of DNSSEC validation.
func (z *Zone) Authenticate(name string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.authentic[dns.Name(name)] = true
}

// Asked returns the questions asked so far, in the order of their arrival.
func (z *Zone) Asked() []dns.Question {
	z.mu.Lock()
	defer z.mu.Unlock()
	return slices.Clone(z.asked)
}

// Resolve answers q. A cancelled context makes the answer inconclusive.
func (z *Zone) Resolve(ctx context.Context, q dns.Question) dns.Answer {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.asked = append(z.asked, q)
	if err := ctx.Err(); err != nil {
		return dns.Answer{Question: q, Reason: err.Error()}
	}
	a := z.follow(q)
	if a.Outcome == dns.Inconclusive {
		return dns.Answer{Question: q, Aliases: a.Aliases, Reason: a.Reason}
	}
	a.Authentic = z.isAuthentic(q.Name)
	for _, alias := range a.Aliases {
		a.Authentic = a.Authentic && z.isAuthentic(alias)
	}
	return a
}

// follow answers q and the questions that aliases lead to.
func (z *Zone) follow(q dns.Question) dns.Answer {
	a := dns.Answer{Question: q, TTL: defaultTTL}
	name := dns.Name(q.Name)
	for range maxAliases + 1 {
		if z.fails(name, q.Type) {
			a.Outcome, a.Reason = dns.Inconclusive, "the zone says that "+name+" cannot be looked up"
			return a
		}
		if target, ttl, ok := z.alias(name, q.Type); ok {
			a.Aliases = append(a.Aliases, target)
			a.TTL = min(a.TTL, ttl)
			name = target
			continue
		}
		a.Outcome, a.Records = z.look(name, q.Type)
		if a.Outcome != dns.Data {
			a.TTL = min(a.TTL, negativeTTL)
		}
		for _, r := range a.Records {
			a.TTL = min(a.TTL, r.TTL)
		}
		return a
	}
	a.Outcome, a.Reason = dns.Inconclusive, "too many aliases"
	return a
}

// alias returns where a CNAME at the name or a DNAME above it leads to.
func (z *Zone) alias(name string, asked dns.Type) (target string, ttl time.Duration, ok bool) {
	if asked != dns.CNAME {
		if _, records := z.look(name, dns.CNAME); len(records) > 0 {
			return records[0].Host, records[0].TTL, true
		}
	}
	for above := dns.Parent(name); above != ""; above = dns.Parent(above) {
		if records := z.records[dns.Question{Name: above, Type: dns.DNAME}]; len(records) > 0 {
			return strings.TrimSuffix(name, above) + records[0].Host, records[0].TTL, true
		}
	}
	return "", 0, false
}

// look returns what there is at exactly this name, or at the wildcard that stands
// in for it.
func (z *Zone) look(name string, t dns.Type) (dns.Outcome, []dns.Record) {
	source := name
	if !z.existing[name] {
		source = z.wildcard(name)
		if !z.existing[source] {
			return dns.NoSuchName, nil
		}
	}
	records := slices.Clone(z.records[dns.Question{Name: source, Type: t}])
	if len(records) == 0 {
		return dns.NoData, nil
	}
	for i := range records {
		records[i].Name = name
	}
	return dns.Data, records
}

// wildcard returns the name of the wildcard at the closest ancestor of name that
// exists: the only one that may stand in for it (RFC 4592 §3.3.1).
func (z *Zone) wildcard(name string) string {
	encloser := dns.Parent(name)
	for !z.existing[encloser] {
		encloser = dns.Parent(encloser)
	}
	return strings.TrimSuffix("*."+encloser, ".")
}

func (z *Zone) fails(name string, t dns.Type) bool {
	return z.failing[dns.Question{Name: name, Type: everyType}] || z.failing[dns.Question{Name: name, Type: t}]
}

func (z *Zone) isAuthentic(name string) bool {
	for ; name != ""; name = dns.Parent(name) {
		if z.authentic[name] {
			return true
		}
	}
	return z.authentic[""]
}

func (z *Zone) markExisting(name string) {
	for ; name != ""; name = dns.Parent(name) {
		z.existing[name] = true
	}
}
