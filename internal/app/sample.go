package app

import (
	"context"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/demo"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
)

// sampleDays is how many days of reports the sample data of a team has.
const sampleDays = 45

// sample returns the sample data of teams: the domains of the demo's first team as they are
// today, with their latest reports.
func (a *App) sample() service.Sample {
	var names []string
	for _, domain := range demo.New(demo.Options{End: time.Now()}).Domains() {
		if domain.Team == demo.FirstTeam {
			names = append(names, domain.Name)
		}
	}
	return service.Sample{Domains: names, Load: a.loadSample}
}

// loadSample stores the reports and the checks of the sample domains of a team.
func (a *App) loadSample(ctx context.Context, team *store.Team) error {
	addresses := make(map[string]string)
	domains, err := team.Domains(ctx, "", 100)
	if err != nil {
		return err
	}
	for _, domain := range domains {
		addresses[domain.Name] = domain.ReportAddress(demo.ReportDomain)
	}
	now := time.Now()
	// Reports that were deleted a moment ago may still be there: each time has ids of its
	// own.
	seed := uint64(now.UnixNano())
	scenario := demo.New(demo.Options{Seed: seed, End: now, ReportAddress: func(domain string) string { return addresses[domain] }})
	for ago := sampleDays; ago > 0; ago-- {
		err := receive(ctx, a.acceptor, scenario.DocumentsAbout(now.AddDate(0, 0, -ago)), func(document *demo.Document) *store.Team {
			if _, ours := addresses[document.Domain]; !ours || document.SentAt.After(now) {
				return nil
			}
			document.Intake = dmarcd.IntakeImport
			return team
		})
		if err != nil {
			return fmt.Errorf("load sample reports: %w", err)
		}
	}
	checks := service.Checks{
		// The zone authorizes reports to that domain.
		Checker:      dnscheck.New(dnscheck.Options{Resolver: scenario.Zone(now), ReportDomain: demo.ReportDomain, Now: time.Now}),
		ReportDomain: demo.ReportDomain, BaseURL: a.config.BaseURL,
	}
	for _, domain := range scenario.Domains() {
		if domain.Parked && addresses[domain.Name] != "" {
			if err := team.SetParked(ctx, domain.Name, true); err != nil {
				return fmt.Errorf("park sample domain: %w", err)
			}
		}
	}
	for _, domain := range domains {
		if err := checks.Full(ctx, team, domain.Name, dnscheck.Requested); err != nil {
			return fmt.Errorf("check sample domain: %w", err)
		}
	}
	return nil
}
