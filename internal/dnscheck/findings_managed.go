package dnscheck

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
)

// checkManaged looks for the CNAME records of managed records. A CNAME record answers for all types.
func (e *examination) checkManaged(ctx context.Context) {
	for _, m := range e.Managed {
		if m.Target == "" {
			continue
		}
		for _, name := range m.Kind.Aliases(e.Domain) {
			answer := e.dns.Resolve(ctx, dns.Question{Name: name, Type: dns.TXT})
			leads := slices.ContainsFunc(answer.Aliases, func(alias string) bool { return strings.EqualFold(alias, m.Target) })
			if answer.Outcome != dns.Inconclusive && !leads {
				e.facts.Elsewhere = append(e.facts.Elsewhere, name)
			}
		}
	}
}

// managed compares the DNS with the records that this installation answers for.
func (e *evaluation) managed() {
	for _, m := range e.request.Managed {
		f, part := e.facts, string(m.Kind)
		leads := !slices.ContainsFunc(m.Kind.Aliases(f.Domain), func(name string) bool { return slices.Contains(f.Elsewhere, name) })
		var status string
		var texts []string
		switch m.Kind {
		case dmarcd.RecordDMARC:
			status, texts = f.DMARC.Status, f.DMARC.OwnRecords
		case dmarcd.RecordTLSRPT:
			status, texts = f.TLSRPT.Status, []string{f.TLSRPT.Record}
		case dmarcd.RecordSPF:
			status, leads = f.SPF.Status, false
			for _, t := range f.SPF.Tree {
				if f.SPF.Record != "" && strings.EqualFold(strings.Trim(t.Term, "+."), m.Term) {
					leads, texts = true, []string{t.Record}
				}
			}
		case dmarcd.RecordBIMI:
			status = f.BIMI.Status
			if f.BIMI.RecordDomain == f.Domain { // not that of the organizational domain
				texts = []string{f.BIMI.Record}
			}
		case dmarcd.RecordMTASTS:
			texts = []string{m.Content} // the policy is served here
		}
		text := strings.Join(texts, "; ")
		switch w := (words{"at": m.Kind.Owner(f.Domain), "target": m.Target, "term": m.Term, "text": cmp.Or(text, "none")}); {
		case status == inconclusive:
		case m.Target != "" && !leads:
			e.add(part+".managed_elsewhere", w)
		case text != m.Content && (text != "" || m.Target == ""): // an alias without a record has a finding of its own
			e.add(part+".managed_differs", w)
		}
	}
}
