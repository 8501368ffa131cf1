package app

import (
	"context"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/jobs"
	"github.com/dmarcd/dmarcd/internal/store"
)

// checks returns the job that checks domains by schedule.
func (a *App) checks() *jobs.Checks {
	return &jobs.Checks{
		Log:       a.log,
		Recovered: a.recovered,
		Rate:      a.config.Schedule.Rate,
		Teams:     a.store.DueTeams,
		Claim:     a.store.ClaimDueDomains,
		Check: func(ctx context.Context, due dmarcd.DueDomain) (err error) {
			began := time.Now()
			defer func() { a.metrics.observeCheck(due.Full, time.Since(began), err) }()
			team := a.store.Team(due.Team)
			if due.Full {
				return examine(ctx, a.checker, team, due.Name, a.config, dnscheck.Scheduled)
			}
			_, _, err = a.checker.Check(ctx, team, due.Name, dnscheck.Scheduled)
			return err
		},
		Ended: func(ctx context.Context, due dmarcd.DueDomain) error {
			return a.store.Team(due.Team).CheckEnded(ctx, due.Name)
		},
	}
}

// examine runs a full check of a domain and saves it.
func examine(ctx context.Context, checker *dnscheck.Checker, team *store.Team, name string, cfg config.Config, occasion dnscheck.Occasion) error {
	domain, err := team.Domain(ctx, name)
	if err != nil {
		return err
	}
	selectors, err := reportedSelectors(ctx, team, name)
	if err != nil {
		return err
	}
	used, err := passes(ctx, team, name)
	if err != nil {
		return err
	}
	check := checker.Examine(dns.ForClient(ctx, int64(team.ID())), dnscheck.Request{
		Domain: name, Purpose: domain.Purpose, Selectors: selectors, Used: used, Parked: domain.Parked,
		ReportAddress: domain.ReportAddress(cfg.ReportDomain), TLSReportURIs: domain.TLSReportURIs(cfg.ReportDomain, cfg.BaseURL),
	})
	check.Asked = occasion != dnscheck.Scheduled
	return checker.Save(ctx, name, func(ctx context.Context, plan dmarcd.Plan) error {
		_, err := team.SaveCheck(ctx, name, check, plan)
		return err
	})
}

// A domain is used if at least usedMessages of it pass within usedDays: fewer may be mistakes of
// one reporter.
const (
	usedMessages = 10
	usedDays     = 30
)

// passes reports whether mail of the domain or its subdomains passes DMARC, as reports say.
func passes(ctx context.Context, team *store.Team, name string) (bool, error) {
	from := dmarcd.DayOf(time.Now()) - usedDays
	summary, err := team.DomainSummary(ctx, name, dmarcd.Days{From: &from})
	return summary.Compliant >= usedMessages, err
}

// maxReported limits the selectors from reports that are checked.
const maxReported = 20

// reportedSelectors returns the DKIM selectors of a domain that reports mention.
func reportedSelectors(ctx context.Context, team *store.Team, name string) ([]dnscheck.Selector, error) {
	names, err := team.Selectors(ctx, name, maxReported)
	selectors := make([]dnscheck.Selector, len(names))
	for i, selector := range names {
		selectors[i] = dnscheck.Selector{Name: selector, From: dnscheck.FromReport}
	}
	return selectors, err
}
