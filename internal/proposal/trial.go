package proposal

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/spf"
)

// trial evaluates records with stored answers.
type trial struct {
	answers

	ctx context.Context //nolint:containedctx // a trial is one call
	// published are the SPF records of the domain, base the record to change.
	published []string
	base      string
	sources   []source
}

// outcome is the result for an address.
type outcome uint8

const (
	// unknown means that it depends on an answer that is not stored.
	unknown outcome = iota
	fails
	passes
)

// check evaluates records at the domain for an address. After the end of the context, results are
// unknown.
func (t *trial) check(records []string, addr netip.Addr) outcome {
	if t.ctx.Err() != nil {
		return unknown
	}
	w := &world{answers: &t.answers, records: records}
	v := spf.Check(t.ctx, w, spf.Identity{IP: addr, Helo: t.domain, MailFrom: "postmaster@" + t.domain})
	switch {
	case w.unknown.Load():
		return unknown
	case v.Result == spf.Pass:
		return passes
	}
	return fails
}

// explain counts the lookups of records at the domain.
func (t *trial) explain(records []string) spf.Explanation {
	return spf.Explain(t.ctx, &world{answers: &t.answers, records: records}, t.domain, spf.Limits{})
}

// matches evaluates one term for an address, without its qualifier and without the others. A
// redirect matches if its record passes.
func (t *trial) matches(term spf.Term, addr netip.Addr) outcome {
	switch term.Kind {
	case spf.IP4, spf.IP6:
		if term.Network.Contains(addr) {
			return passes
		}
		return fails
	case spf.All:
		return passes
	case spf.Redirect:
		return t.check([]string{"v=spf1 include:" + term.Domain.String() + " -all"}, addr)
	case spf.Exp, spf.Unknown, spf.Invalid:
		return fails
	}
	return t.check([]string{"v=spf1 " + strings.TrimLeft(term.Text, "+-~?") + " -all"}, addr)
}

// lists reports whether the record of a draft passes for an address, without the limits of
// receivers.
func (t *trial) lists(d draft, addr netip.Addr) bool {
	for _, term := range d.evaluated() {
		switch t.matches(term, addr) {
		case unknown:
			return false
		case passes:
			return term.Qualifier == spf.Pass || term.Kind == spf.Redirect
		}
	}
	return false
}

// unsound returns why receivers may be unable to evaluate the record of a draft, or "".
func (t *trial) unsound(d draft, before spf.Explanation) string {
	const prefix = "No SPF record could be shown to help: "
	text := d.String()
	record, err := spf.Parse(text)
	if err != nil {
		return prefix + "its terms cannot be parsed."
	}
	if len(text) > max(maxLength, len(t.base)) {
		return prefix + fmt.Sprintf("it would have %d bytes, and should have at most %d.", len(text), maxLength)
	}
	for _, p := range record.Problems {
		if p.Kind == spf.PassAll {
			return prefix + p.Term + " lets every server pass."
		}
	}
	x := t.explain([]string{text})
	for _, p := range x.Problems {
		if p.Kind == spf.Inconclusive || p.Kind == spf.Truncated {
			return prefix + "the last check has no complete answer for " + p.Term + ". Check the DNS of the domain again."
		}
	}
	if name := dynamicRecord(x.Root); name != "" {
		return prefix + "the record of " + name + " depends on the message."
	}
	switch {
	case x.Lookups > spf.MaxLookups:
		return prefix + fmt.Sprintf("it would need %d lookups without the includes that pass for no mail, and the limit is %d.", x.Lookups, spf.MaxLookups)
	case x.Voids.IPv4 > spf.MaxVoids || x.Voids.IPv6 > max(spf.MaxVoids, before.Voids.IPv6):
		return prefix + fmt.Sprintf("more than %d of its lookups would return nothing.", spf.MaxVoids)
	case x.Status != spf.StatusOK:
		return prefix + "an included record cannot be evaluated."
	}
	return ""
}

// dynamicRecord returns an include or redirect whose record, and so the lookups, are unknown.
func dynamicRecord(n *spf.Node) string {
	for _, s := range n.Terms {
		if s.Dynamic && (s.Term.Kind == spf.Include || s.Term.Kind == spf.Redirect) {
			return s.Term.Text
		}
		if s.Child != nil {
			if name := dynamicRecord(s.Child); name != "" {
				return name
			}
		}
	}
	return ""
}

// effect returns the number of failing messages that pass with the record of a draft. broken is
// why it must not be proposed, because mail that passes today may fail; "" if it may be.
// Unknown results do not matter: the removed terms match no mail, and the added ones only pass.
func (t *trial) effect(d draft) (fixed int64, broken string) {
	record := []string{d.String()}
	var lost int64
	for _, s := range t.sources {
		after := t.check(record, s.addr)
		if after == passes && s.today != passes {
			fixed += s.fails
		}
		if s.today == passes && after != passes || s.today == unknown && after == fails {
			lost += s.passes
		}
	}
	if lost > 0 {
		return 0, fmt.Sprintf("No SPF record could be shown to help: %s that pass today would fail.", phrase.Count(lost, "message"))
	}
	return fixed, ""
}

// remaining describes the failing mail that the record of a draft does not fix.
func (t *trial) remaining(d draft) string {
	record := []string{d.String()}
	bySender := make(map[string]int64)
	var senders []string
	for _, s := range t.sources {
		if s.fails == 0 || s.today == passes || t.check(record, s.addr) == passes {
			continue
		}
		if bySender[s.service] == 0 {
			senders = append(senders, s.service)
		}
		bySender[s.service] += s.fails
	}
	slices.Sort(senders)
	var texts []string
	for _, name := range senders {
		if name == "" {
			texts = append(texts, fmt.Sprintf("%s from further own addresses still fail, because a record should not list so many.", phrase.Count(bySender[name], "message")))
			continue
		}
		texts = append(texts, fmt.Sprintf("%s of %s still fail: no SPF record in the last check lists its addresses. Add the include that %s documents, or sign with DKIM.",
			phrase.Count(bySender[name], "message"), name, name))
	}
	return strings.Join(texts, " ")
}

// exchanger is the prefix of pseudo hosts for the mail exchangers of a domain, whose addresses
// are stored together.
const exchanger = "_."

// hostKey identifies the addresses of one family of a host or, if mx is set, of the mail
// exchangers of a domain.
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

// ParseTerm parses the text of one term. Its kind is Invalid if the text is not a term.
func ParseTerm(text string) spf.Term {
	record, _ := spf.Parse("v=spf1 " + text)
	if len(record.Terms) != 1 {
		return spf.Term{}
	}
	return record.Terms[0]
}

// world is a dns.Resolver that returns the stored answers, and the given records for the domain
// itself.
type world struct {
	*answers

	records []string
	// unknown is set once an answer that is not stored was needed.
	unknown atomic.Bool
}

// Resolve answers from the stored answers. Everything else is inconclusive.
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
