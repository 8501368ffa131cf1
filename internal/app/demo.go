package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/demo"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/resolver/zone"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
)

// demoSeed selects the scenario of the demo.
const demoSeed = 1

// Demo is two sample teams with a year of reports, in a database of its own.
type Demo struct {
	// Config is the configuration to serve it with.
	Config config.Config
	// Invitation is the sign-in link of the teams' owner.
	Invitation Invitation

	dns *zone.Server
}

// Run serves the DNS of the scenario until ctx ends.
func (d *Demo) Run(ctx context.Context) error { return d.dns.Run(ctx) }

// NewDemo fills the data folder of a configuration, which must be empty, with the sample
// teams. progress receives the completed fraction.
func NewDemo(ctx context.Context, cfg config.Config, progress func(done float64)) (_ *Demo, err error) {
	cfg.Database, cfg.ReportDomain, cfg.SMTPListen = filepath.Join(cfg.Data, "demo.db"), demo.ReportDomain, ""
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return nil, err
	}
	// The clock follows the scenario.
	now := time.Now()
	clock := now
	s, err := store.Open(ctx, cfg.Database, store.Options{Now: func() time.Time { return clock }})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if _, err := s.Migrate(ctx); err != nil {
		return nil, err
	}
	addresses := make(map[string]string)
	scenario := demo.New(demo.Options{Seed: demoSeed, End: now, ReportAddress: func(domain string) string { return addresses[domain] }})
	clock = scenario.Steps()[0].At
	loader, err := newLoader(ctx, s, cfg.ReportDomain, addresses, &clock)
	if err != nil {
		return nil, err
	}
	replay := &replay{
		scenario: scenario, loader: loader, config: cfg, clock: &clock,
		acceptor: NewAcceptor(cfg, slog.New(slog.DiscardHandler)), turns: scenario.Turns(), steps: scenario.Steps(), now: now,
	}
	for day := scenario.Begin(); day.Before(now); day = day.AddDate(0, 0, 1) {
		if err := replay.day(ctx, day); err != nil {
			return nil, fmt.Errorf("generate the reports of %s: %w", day.Format(time.DateOnly), err)
		}
		progress(float64(day.Sub(scenario.Begin())) / float64(now.Sub(scenario.Begin())))
	}
	clock = now
	for more := true; more; { // build rollups, so that the first request for a year is fast
		if more, err = s.BuildRollups(ctx); err != nil {
			return nil, err
		}
	}
	made, err := newDemo(cfg, scenario, now)
	if err != nil {
		return nil, err
	}
	made.Invitation, err = loader.close(ctx)
	return made, err
}

func newDemo(cfg config.Config, scenario *demo.Scenario, now time.Time) (*Demo, error) {
	server, err := zone.Listen(scenario.Zone(now))
	if err != nil {
		return nil, err
	}
	cfg.DNS = []string{server.Addr()}
	return &Demo{Config: cfg, dns: server}, nil
}

// replay loads a scenario into a database, day by day.
type replay struct {
	scenario *demo.Scenario
	loader   *loader
	config   config.Config
	clock    *time.Time
	acceptor *intake.Acceptor
	turns    []time.Time // still to check
	steps    []demo.Step // still to apply
	now      time.Time   // later reports have not arrived yet
}

// day loads one day: actions of users, DNS changes, then reports.
func (r *replay) day(ctx context.Context, day time.Time) error {
	for len(r.steps) > 0 && r.steps[0].At.Before(day.AddDate(0, 0, 1)) {
		if err := r.loader.do(ctx, r.steps[0]); err != nil {
			return fmt.Errorf("%s: %w", r.steps[0].Action, err)
		}
		r.steps = r.steps[1:]
	}
	for len(r.turns) > 0 && r.turns[0].Before(day.AddDate(0, 0, 1)) {
		if err := r.check(ctx, r.turns[0]); err != nil {
			return err
		}
		r.turns = r.turns[1:]
	}
	for _, nonReports := range r.scenario.NonReports() {
		if !nonReports.SentAt.Before(day) && nonReports.SentAt.Before(day.AddDate(0, 0, 1)) {
			if err := r.deliver(ctx, slices.Values([]demo.Document{nonReports})); err != nil {
				return err
			}
		}
	}
	return r.deliver(ctx, r.scenario.DocumentsAbout(day))
}

// deliver stores documents for the teams of their domains.
func (r *replay) deliver(ctx context.Context, documents iter.Seq[demo.Document]) error {
	return receive(ctx, r.acceptor, documents, func(document *demo.Document) *store.Team {
		if document.SentAt.After(r.now) {
			return nil
		}
		*r.clock = document.SentAt
		return r.loader.teamOf[document.Domain]
	})
}

// receive stores documents for the team that teamOf returns, or not at all if it is nil.
// teamOf may change them.
func receive(ctx context.Context, acceptor *intake.Acceptor, documents iter.Seq[demo.Document], teamOf func(*demo.Document) *store.Team) error {
	deliveries := map[*store.Team][]*dmarcd.Delivery{}
	for document := range documents {
		team := teamOf(&document)
		if team == nil {
			continue
		}
		var verdict dmarcd.Verdict
		if document.Kind != "" {
			verdict.Genuine = dmarcd.GenuineYes
		}
		opened, err := acceptor.Read(ctx, intake.Message{
			Intake: document.Intake, Name: document.Name, Verdict: verdict,
			Content: bytes.NewReader(document.Content), Size: int64(len(document.Content)),
		})
		if err != nil {
			return err
		}
		defer opened.Close()
		deliveries[team] = append(deliveries[team], opened.Delivery)
	}
	for team, sent := range deliveries {
		if _, err := team.Receive(ctx, sent); err != nil {
			return err
		}
	}
	return nil
}

// check checks all domains as of a point in time.
func (r *replay) check(ctx context.Context, at time.Time) error {
	*r.clock = at
	checks := service.Checks{ReportDomain: r.config.ReportDomain, BaseURL: r.config.BaseURL, Checker: dnscheck.New(dnscheck.Options{
		Resolver: r.scenario.Zone(at), ReportDomain: r.config.ReportDomain,
		Interval: r.config.Schedule.Interval, FullInterval: r.config.Schedule.FullInterval(),
		Now: func() time.Time { return at },
	})}
	for _, domain := range r.scenario.Domains() {
		if err := checks.Full(ctx, r.loader.teamOf[domain.Name], domain.Name, dnscheck.Scheduled); err != nil {
			return err
		}
	}
	return nil
}
