package dnscheck

import (
	"context"
	"net/netip"
	"slices"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/spf"
)

// maxPerKind limits the stored problems of a kind: each term of a hostile record can have one, and
// each is compared with the others.
const maxPerKind = 100

// checkSPF evaluates the tree of SPF records.
func (e *examination) checkSPF(ctx context.Context) {
	found := spf.Explain(ctx, e.dns, e.Domain, spf.Limits{})
	f := &e.facts.SPF
	f.Status = string(found.Status)
	// A host without an IPv6 address is not a problem, and not a void lookup for senders
	// over IPv4. Skip what affects IPv6 clients only.
	f.Lookups, f.VoidLookups = found.Lookups, found.Voids.IPv4
	if found.Root != nil {
		f.Records = storableAll(found.Root.Texts)
		f.Record = storable(found.Root.Record.Text)
		f.Tree = termFacts(found.Root)
		f.Reason = found.Root.Reason
	}
	if found.Status == spf.StatusMultiple {
		merged := published{e.dns, e.Domain, spf.Merge(f.Records)}
		f.Tree = termFacts(spf.Explain(ctx, merged, e.Domain, spf.Limits{}).Root)
	}
	counts := map[spf.Kind]int{}
	for _, p := range found.Problems {
		if p.Family == spf.IPv6 && (p.Kind == spf.VoidLookup || p.Kind == spf.VoidLimit) {
			continue
		}
		if counts[p.Kind]++; counts[p.Kind] > maxPerKind {
			continue
		}
		f.Problems = append(f.Problems, spfProblem(p))
		if p.Kind == spf.Inconclusive && f.Reason == "" {
			f.Reason = p.Name + ": " + p.Reason
		}
	}
}

func spfProblem(p spf.Problem) facts.Problem {
	fact := facts.Problem{
		Kind: string(p.Kind), At: p.Domain, Part: storable(p.Term), Text: storable(p.Text), Name: storable(p.Name),
		Count: p.Count, Limit: p.Limit, Reason: p.Reason, Other: storable(p.Other.Term),
	}
	if p.Range.IsValid() {
		fact.Text = p.Range.String()
	}
	if p.Covering.IsValid() {
		fact.Name = p.Covering.String()
	}
	return fact
}

// termFacts returns the terms of a record, including those of nested records.
func termFacts(node *spf.Node) []facts.SPFTerm {
	var terms []facts.SPFTerm
	for _, step := range node.Terms {
		term := facts.SPFTerm{
			Term: storable(step.Term.Text), Target: step.Target, Provider: step.Provider,
			Cost: step.Cost, Lookups: step.Lookups, Note: stepNote(step),
		}
		term.Addresses, term.Complete = addressFacts(step)
		if step.Child != nil {
			term.Record = storable(step.Child.Record.Text)
			term.Terms = termFacts(step.Child)
		}
		terms = append(terms, term)
	}
	return terms
}

// addressFacts returns the networks of an a or mx term, and whether they are all that receivers
// compare with. They do not depend on the order of the answers.
func addressFacts(step spf.Step) (networks []netip.Prefix, complete bool) {
	if step.Term.Kind != spf.A && step.Term.Kind != spf.MX || step.Questions == nil {
		return nil, false
	}
	// A receiver stops with an error at an exchanger beyond the limit.
	complete = step.Truncated == "" && step.Exchangers == len(step.Hosts)
	found := 0
	see := func(lookups []spf.Lookup) {
		for _, l := range lookups {
			complete = complete && l.Outcome != dns.Inconclusive
			if l.Type != dns.MX {
				found += l.Records
			}
		}
	}
	see(step.Questions)
	for _, host := range step.Hosts {
		see(host.Questions)
	}
	networks = slices.Clone(step.Ranges)
	complete = complete && found == len(networks)
	slices.SortFunc(networks, netip.Prefix.Compare)
	networks = slices.Compact(networks)
	if len(networks) > facts.MaxSPFAddresses {
		networks, complete = networks[:facts.MaxSPFAddresses:facts.MaxSPFAddresses], false
	}
	return networks, complete
}

// stepNote describes special cases of a term.
func stepNote(step spf.Step) string {
	switch {
	case step.Ignored:
		return "has no effect"
	case step.Loop:
		return "leads back to a record that includes it"
	case step.Repeated:
		return "shown above, counts again"
	case step.Truncated != "":
		return "not followed: " + step.Truncated
	case step.Child != nil && step.Child.Status == spf.StatusNone:
		return facts.SPFNoRecord
	case step.Child != nil && step.Child.Status == spf.StatusMultiple:
		return facts.SPFMultipleRecords
	case step.Child != nil && step.Child.Status == spf.StatusInconclusive:
		return "could not be looked up"
	case step.Void.IPv4 > 0:
		return "returns nothing"
	case step.Dynamic:
		return "depends on the message"
	}
	return ""
}
