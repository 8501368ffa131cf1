package dnscheck

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
)

// checkManaged looks for the CNAME records of managed records whose parts do not have them. A CNAME record
// answers for all types.
func (e *examination) checkManaged(ctx context.Context) {
	for _, m := range e.Managed {
		if m.Target == "" || m.Kind != dmarcd.RecordMTASTS && m.Kind != dmarcd.RecordBIMI {
			continue
		}
		for _, name := range m.Kind.Aliases(e.Domain) {
			answer := e.dns.Resolve(ctx, dns.Question{Name: name, Type: dns.TXT})
			if answer.Outcome != dns.Inconclusive && !m.among(answer.Aliases) {
				e.facts.Elsewhere = append(e.facts.Elsewhere, name)
			}
		}
	}
}

// among reports whether a CNAME record leads to the name in the zone.
func (m Managed) among(aliases []string) bool {
	return slices.ContainsFunc(aliases, func(alias string) bool { return strings.EqualFold(alias, m.Target) })
}

// arrived returns the target of a record whose CNAME records all lead to it.
func (e *evaluation) arrived(m Managed) []string {
	for _, name := range m.Kind.Aliases(e.facts.Domain) {
		if slices.Contains(e.facts.Elsewhere, name) {
			return nil
		}
	}
	return []string{m.Target}
}

// managed compares the DNS with the records that this installation answers for.
func (e *evaluation) managed() {
	for _, m := range e.request.Managed {
		var part, status string
		var aliases, texts []string
		switch f := e.facts; m.Kind {
		case dmarcd.RecordDMARC:
			part, status, aliases, texts = "dmarc", f.DMARC.Status, f.DMARC.Aliases, f.DMARC.OwnRecords
		case dmarcd.RecordTLSRPT:
			part, status, aliases, texts = "tls_rpt", f.TLSRPT.Status, f.TLSRPT.Aliases, []string{f.TLSRPT.Record}
		case dmarcd.RecordSPF:
			part, status = "spf", f.SPF.Status
			for _, t := range f.SPF.Tree {
				if f.SPF.Record != "" && strings.EqualFold(strings.Trim(t.Term, "+."), m.Term) {
					aliases, texts = []string{m.Target}, []string{t.Record}
				}
			}
		case dmarcd.RecordBIMI:
			part, status, texts = "bimi", f.BIMI.Status, []string{f.BIMI.Record}
			if f.BIMI.RecordDomain != f.Domain {
				texts = nil // it is that of the organizational domain
			}
			aliases = e.arrived(m)
		case dmarcd.RecordMTASTS:
			part, texts, aliases = "mta_sts", []string{m.Content}, e.arrived(m) // the policy itself is served here
		}
		text := strings.Join(texts, "; ")
		switch w := (words{"at": m.Kind.Owner(e.facts.Domain), "target": m.Target, "term": m.Term, "text": cmp.Or(text, "none")}); {
		case status == inconclusive:
		case m.Target != "" && !m.among(aliases):
			e.add(part+".managed_elsewhere", w)
		case text != m.Content && (text != "" || m.Target == ""): // an alias without a record has a finding of its own
			e.add(part+".managed_differs", w)
		}
	}
}
