package dnscheck

import (
	"cmp"
	"context"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/bimi"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/mtasts"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// Part is a protocol whose record can be tried before it is published.
type Part string

// The parts, by the first word of the ids of their findings.
const (
	PartDMARC  Part = "dmarc"
	PartSPF    Part = "spf"
	PartMTASTS Part = "mta_sts"
	PartTLSRPT Part = "tls_rpt"
	PartBIMI   Part = "bimi"
)

// QueryName returns the name at which the record of a domain is published.
func (p Part) QueryName(domain string) string {
	switch p {
	case PartDMARC:
		return dmarc.QueryName(domain)
	case PartMTASTS:
		return mtasts.QueryName(domain)
	case PartTLSRPT:
		return tlsrpt.QueryName(domain)
	case PartBIMI:
		return bimi.QueryName(bimi.DefaultSelector, domain)
	}
	return domain
}

// Draft is a record that is not published yet.
type Draft struct {
	Part Part
	// Record is the text of the TXT record.
	Record string
	// Policy is the text of the MTA-STS policy that the record announces.
	Policy string
}

// Tried is what a check would find if a draft were published.
type Tried struct {
	Facts facts.Facts
	// Findings are those of the part, the most severe first.
	Findings []dmarcd.Finding
	// Logo is the SVG that a BIMI record refers to, uncompressed; nil if it is not available
	// or contains what no logo may contain.
	Logo []byte
}

// Try checks one part of a domain as if the draft were published, until the deadline of ctx.
func (c *Checker) Try(ctx context.Context, request Request, draft Draft) Tried {
	ctx, cancel := context.WithTimeout(ctx, maxExamination)
	defer cancel()
	published := published{c.options.Resolver, draft.Part.QueryName(request.Domain), draft.Record}
	e := &examination{Request: request, options: c.options, dns: newBudget(published, c.options.Budget), policy: draft.Policy}
	e.facts.Domain = request.Domain
	found := &evaluation{request: request, counts: map[string]int{}}
	var evaluate func()
	switch draft.Part {
	case PartDMARC:
		e.checkDMARC(ctx, dmarc.Discover(ctx, e.dns, request.Domain))
		evaluate = found.dmarc
	case PartSPF:
		e.checkSPF(ctx)
		evaluate = found.spf
	case PartMTASTS:
		e.checkMX(ctx)
		e.checkMTASTS(ctx)
		evaluate = found.mtasts
	case PartTLSRPT:
		e.checkTLSRPT(ctx)
		evaluate = found.tlsrpt
	case PartBIMI:
		e.checkDMARC(ctx, dmarc.Discover(ctx, e.dns, request.Domain))
		e.checkBIMI(ctx)
		evaluate = found.bimi
	}
	found.facts = e.facts
	evaluate()
	found.agree()
	return Tried{Facts: e.facts, Findings: bySeverity(found.findings), Logo: e.logo}
}

// bySeverity sorts findings, the most severe first.
func bySeverity(findings []dmarcd.Finding) []dmarcd.Finding {
	slices.SortStableFunc(findings, func(a, b dmarcd.Finding) int {
		return cmp.Or(cmp.Compare(rank(a.Level), rank(b.Level)), cmp.Compare(weight(b), weight(a)))
	})
	return findings
}

// published is a resolver that answers with one text record for a name.
type published struct {
	dns.Resolver

	name, record string
}

// maxString is the length of a character-string of the DNS (RFC 1035 §3.3).
const maxString = 255

// Resolve answers the query for the record itself.
func (p published) Resolve(ctx context.Context, q dns.Question) dns.Answer {
	if q.Name != p.name || q.Type != dns.TXT {
		return p.Resolver.Resolve(ctx, q)
	}
	record := dns.Record{Name: q.Name, Type: dns.TXT}
	for part := range slices.Chunk([]byte(p.record), maxString) {
		record.Text = append(record.Text, string(part))
	}
	return dns.Answer{Question: q, Outcome: dns.Data, Records: []dns.Record{record}}
}
