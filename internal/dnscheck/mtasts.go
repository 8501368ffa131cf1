package dnscheck

import (
	"context"
	"slices"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/mtasts"
)

// checkMTASTS looks up the record and fetches the policy. It needs the MX facts.
func (e *examination) checkMTASTS(ctx context.Context) {
	found := mtasts.LookupRecord(ctx, e.dns, e.Domain)
	f := &e.facts.MTASTS
	f.Status, f.Reason = found.Status.String(), found.Answer.Reason
	f.Problems = fieldProblems(mtasts.QueryName(e.Domain), e.lookupProblems(ctx, found.Answer, found.Problems))
	if len(found.Records) == 1 {
		record := found.Records[0]
		f.Record = storable(record.Text)
		f.Problems = append(f.Problems, fieldProblems(mtasts.QueryName(e.Domain), record.Problems)...)
	}
	if found.Status != mtasts.StatusOK {
		return
	}
	fetched := mtasts.Fetch(ctx, e.client(), e.Domain)
	f.Fetch, f.FetchReason = fetched.Status.String(), storableReason(fetched.Reason)
	f.HTTPStatus, f.Location = fetched.Code, storable(fetched.Location)
	f.Mode, f.MaxAge = fetched.Policy.Mode.String(), int64(fetched.Policy.MaxAge.Seconds())
	f.MX = fetched.Policy.MX
	f.PolicyProblems = fieldProblems(fetched.URL, slices.Concat(fetched.Problems, fetched.ExpiresSoon(e.options.Now()), fetched.Policy.Problems))
	if fetched.Status == mtasts.FetchOK && fetched.Policy.Mode != mtasts.ModeNone {
		compareMX(f, e.facts.MX.Hosts)
	}
}

// compareMX compares the patterns of the policy with the MX hosts.
func compareMX(f *facts.MTASTS, hosts []facts.MXHost) {
	used := map[string]bool{}
	for _, host := range hosts {
		covered := false
		for _, pattern := range f.MX {
			if mtasts.MatchMX(pattern, host.Name) {
				covered, used[pattern] = true, true
			}
		}
		if !covered && host.Name != "" {
			f.Uncovered = append(f.Uncovered, host.Name)
		}
	}
	for _, pattern := range f.MX {
		if len(hosts) > 0 && !used[pattern] && !slices.Contains(f.Unused, pattern) {
			f.Unused = append(f.Unused, pattern)
		}
	}
}

func fieldProblems(at string, problems []mtasts.Problem) []facts.Problem {
	var stored []facts.Problem
	for _, p := range problems {
		stored = append(stored, facts.Problem{
			Kind: string(p.Kind), At: at, Part: storable(p.Field), Text: storable(p.Text), Count: p.Count, Limit: p.Limit,
		})
	}
	return stored
}

// lookupProblems returns the problems of a lookup. An alias that a wildcard causes is none.
func (e *examination) lookupProblems(ctx context.Context, a dns.Answer, problems []mtasts.Problem) []mtasts.Problem {
	if !e.wildcardAlias(ctx, a) {
		return problems
	}
	return slices.DeleteFunc(problems, func(p mtasts.Problem) bool { return p.Kind == mtasts.DanglingAlias })
}
