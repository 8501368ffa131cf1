package dnscheck

import (
	"context"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dane"
)

// checkDANE looks up the TLSA records of the MX hosts. It connects to mail servers only if
// Options.DialMX is set.
func (e *examination) checkDANE(ctx context.Context) {
	found := dane.Lookup(ctx, e.dns, e.Domain)
	f := &e.facts.DANE
	f.Status, f.Reason = found.Status.String(), found.Reason
	for _, host := range found.Hosts {
		fact := dmarcd.DANEHost{Name: host.Name, Status: host.Status.String()}
		for _, record := range host.Records {
			fact.Records = append(fact.Records, cut(record.String(), maxNested))
		}
		f.Hosts = append(f.Hosts, fact)
		if f.Reason == "" {
			f.Reason = host.Reason
		}
	}
	f.Problems = daneProblems(found.AllProblems())
	if e.options.DialMX == nil {
		return
	}
	for _, host := range found.Hosts {
		if host.Status != dane.StatusOK {
			continue
		}
		matched, err := host.Probe(ctx, e.options.DialMX, e.Domain, e.options.Now())
		if err == nil { // an unreachable server says nothing about its records
			f.Problems = append(f.Problems, daneProblems(matched.Problems)...)
		}
	}
}

func daneProblems(problems []dane.Problem) []dmarcd.Problem {
	var facts []dmarcd.Problem
	for _, p := range problems {
		facts = append(facts, dmarcd.Problem{Kind: string(p.Kind), At: p.Host, Text: cut(printable(p.Text), maxNested)})
	}
	return facts
}
