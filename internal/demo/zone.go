package demo

import (
	"context"
	"net/netip"
	"time"

	"github.com/dmarcd/dmarcd/dns"
)

// timeToLive is that of all records.
const timeToLive = 5 * time.Minute

// Zone is all DNS data at one moment of the scenario: other names do not exist. It is a
// dns.Resolver, and safe for concurrent use.
type Zone struct {
	records map[dns.Question][]dns.Record
	names   map[string]bool // all that exist, also those that only have names below
	signed  map[string]bool // the domains whose records are authentic
}

func newZone() *Zone {
	return &Zone{records: map[dns.Question][]dns.Record{}, names: map[string]bool{}, signed: map[string]bool{}}
}

// Resolve answers a question.
func (z *Zone) Resolve(_ context.Context, q dns.Question) dns.Answer {
	answer := dns.Answer{Question: q, Outcome: dns.NoSuchName, TTL: timeToLive, Authentic: z.isSigned(q.Name)}
	if records := z.records[q]; len(records) > 0 {
		answer.Outcome, answer.Records = dns.Data, records
	} else if z.names[q.Name] {
		answer.Outcome = dns.NoData
	}
	return answer
}

func (z *Zone) isSigned(name string) bool {
	for ; name != ""; name = dns.Parent(name) {
		if z.signed[name] {
			return true
		}
	}
	return false
}

// apex returns the nearest name at or above another one that has an SOA record, ""
// where there is none.
func (z *Zone) apex(name string) string {
	for ; name != ""; name = dns.Parent(name) {
		if len(z.records[dns.Question{Name: name, Type: dns.SOA}]) > 0 {
			return name
		}
	}
	return ""
}

// add adds a record. Its name and all above it exist from then on.
func (z *Zone) add(r dns.Record) {
	r.TTL = timeToLive
	q := dns.Question{Name: r.Name, Type: r.Type}
	z.records[q] = append(z.records[q], r)
	for name := r.Name; name != "" && !z.names[name]; name = dns.Parent(name) {
		z.names[name] = true
	}
}

// text adds a TXT record, in strings of at most 255 octets (RFC 1035 §3.3).
func (z *Zone) text(name, text string) {
	const most = 255
	var parts []string
	for len(text) > most {
		parts, text = append(parts, text[:most]), text[most:]
	}
	z.add(dns.Record{Name: name, Type: dns.TXT, Text: append(parts, text)})
}

// host adds the address of a host.
func (z *Zone) host(name string, addr netip.Addr) {
	kind := dns.A
	if addr.Is6() {
		kind = dns.AAAA
	}
	z.add(dns.Record{Name: name, Type: kind, Addr: addr})
}

// pointTo adds a record that leads to a name.
func (z *Zone) pointTo(kind dns.Type, name, target string) {
	z.add(dns.Record{Name: name, Type: kind, Host: target})
}
