package proposal

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
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

// check evaluates records at the domain for an address. After the end of the context nothing is
// known.
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

// unsound returns why receivers may not be able to evaluate the record of a draft, "" if they are.
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

// dynamicRecord returns an include or redirect whose record, and so its lookups, are not known.
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

// effect returns how many failing messages pass with the record of a draft. Broken says why it is
// not to be proposed: mail that passes today may fail. An unknown result stays as it is, because
// the removed terms match no mail, and the added ones only pass.
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
		return 0, fmt.Sprintf("No SPF record could be shown to help: %s that pass today would fail.", dmarcd.FormatCount(lost, "message"))
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
			texts = append(texts, fmt.Sprintf("%s from further own addresses still fail, because a record should not list so many.", dmarcd.FormatCount(bySender[name], "message")))
			continue
		}
		texts = append(texts, fmt.Sprintf("%s of %s still fail: no SPF record in the last check lists its addresses. Add the include that %s documents, or sign with DKIM.",
			dmarcd.FormatCount(bySender[name], "message"), name, name))
	}
	return strings.Join(texts, " ")
}
