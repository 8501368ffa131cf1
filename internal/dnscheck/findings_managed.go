package dnscheck

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
)

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
		case dmarcd.RecordMTASTS, dmarcd.RecordBIMI:
			continue
		}
		text := strings.Join(texts, "; ")
		switch w := (words{"at": m.Kind.Owner(e.facts.Domain), "target": m.Target, "term": m.Term, "text": cmp.Or(text, "none")}); {
		case status == inconclusive:
		case m.Target != "" && !slices.ContainsFunc(aliases, func(alias string) bool { return strings.EqualFold(alias, m.Target) }):
			e.add(part+".managed_elsewhere", w)
		case text != m.Content && (text != "" || m.Target == ""): // an alias without a record has a finding of its own
			e.add(part+".managed_differs", w)
		}
	}
}
