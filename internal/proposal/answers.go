package proposal

import (
	"context"
	"net/netip"
	"strings"
	"sync/atomic"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/spf"
)

// exchanger begins the names of the hosts that stand for the mail exchangers of a domain: the
// addresses of all of them together are stored.
const exchanger = "_."

// hostKey is a host name or, if mx is set, the mail exchangers of a domain, in a family.
type hostKey struct {
	name     string
	mx, ipv6 bool
}

// hostAddresses are the addresses of a host, known up to the prefix length bits.
type hostAddresses struct {
	bits  int
	addrs []netip.Addr
}

// answers are the DNS answers below an SPF record, as a check stored them.
type answers struct {
	domain string
	// records are the SPF records of included names.
	records map[string][]string
	hosts   map[hostKey]hostAddresses
}

func newAnswers(f *facts.Facts) answers {
	a := answers{domain: dns.Name(f.Domain), records: make(map[string][]string), hosts: make(map[hostKey]hostAddresses)}
	a.read(f.SPF.Tree)
	return a
}

func (a *answers) read(terms []facts.SPFTerm) {
	for _, t := range terms {
		name := dns.Name(t.Target)
		term := ParseTerm(t.Term)
		switch {
		case term.Kind == spf.Include || term.Kind == spf.Redirect:
			switch {
			case t.Record != "":
				a.records[name] = []string{t.Record}
			case t.Note == facts.SPFNoRecord:
				a.records[name] = []string{}
			case t.Note == facts.SPFMultipleRecords:
				a.records[name] = []string{"v=spf1", "v=spf1"}
			}
			a.read(t.Terms)
		case t.Complete && (term.Kind == spf.A || term.Kind == spf.MX):
			a.readHost(hostKey{name, term.Kind == spf.MX, false}, term.Bits4, t.Addresses)
			a.readHost(hostKey{name, term.Kind == spf.MX, true}, term.Bits6, t.Addresses)
		}
	}
}

// readHost stores the addresses of a family. Several terms may refer to a host with different
// prefix lengths: the longest has them all.
func (a *answers) readHost(key hostKey, bits int, networks []netip.Prefix) {
	if known, found := a.hosts[key]; found && known.bits >= bits {
		return
	}
	host := hostAddresses{bits: bits}
	for _, n := range networks {
		if n.Addr().Is6() == key.ipv6 {
			host.addrs = append(host.addrs, n.Addr())
		}
	}
	a.hosts[key] = host
}

// ParseTerm parses the text of one term; its kind is Invalid if it is not one.
func ParseTerm(text string) spf.Term {
	record, _ := spf.Parse("v=spf1 " + text)
	if len(record.Terms) != 1 {
		return spf.Term{}
	}
	return record.Terms[0]
}

// world is a dns.Resolver of the stored answers, with these records at the domain itself.
type world struct {
	*answers

	records []string
	// unknown is set once an answer that is not stored was needed.
	unknown atomic.Bool
}

// Resolve answers from what is stored. Anything else is inconclusive.
func (w *world) Resolve(_ context.Context, q dns.Question) dns.Answer {
	answer := dns.Answer{Question: q, Outcome: dns.NoData}
	name := dns.Name(q.Name)
	known := false
	switch q.Type {
	case dns.TXT:
		var records []string
		if records, known = w.answers.records[name]; name == w.domain {
			records, known = w.records, true
		}
		for _, record := range records {
			answer.Records = append(answer.Records, dns.Record{Name: name, Type: dns.TXT, Text: []string{record}})
		}
	case dns.A, dns.AAAA:
		var host hostAddresses
		domain, mx := strings.CutPrefix(name, exchanger)
		host, known = w.hosts[hostKey{domain, mx, q.Type == dns.AAAA}]
		for _, addr := range host.addrs {
			answer.Records = append(answer.Records, dns.Record{Name: name, Type: q.Type, Addr: addr})
		}
	case dns.MX:
		var ipv4, ipv6 hostAddresses
		ipv4, known = w.hosts[hostKey{name: name, mx: true}]
		ipv6 = w.hosts[hostKey{name: name, mx: true, ipv6: true}]
		if len(ipv4.addrs)+len(ipv6.addrs) > 0 {
			answer.Records = []dns.Record{{Name: name, Type: dns.MX, Host: exchanger + name}}
		}
	}
	switch {
	case !known:
		w.unknown.Store(true)
		answer.Outcome, answer.Reason = dns.Inconclusive, "the answer is not stored"
	case len(answer.Records) > 0:
		answer.Outcome = dns.Data
	}
	return answer
}
