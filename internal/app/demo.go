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
	"github.com/dmarcd/dmarcd/internal/senders"
	"github.com/dmarcd/dmarcd/internal/store"
)

// demoSeed selects the scenario of the demo.
const demoSeed = 1

// Demo is two sample teams with a year of reports, in a database of its own.
type Demo struct {
	// Config is the configuration to serve it with.
	Config config.Config
	// Known recognizes the senders of the scenario.
	Known []senders.Sender
	// Invite is the link by which the owner of the teams signs in.
	Invite Invite

	dns *demo.Server
}

// Run serves the DNS of the scenario until ctx ends.
func (d *Demo) Run(ctx context.Context) error { return d.dns.Run(ctx) }

// NewDemo fills the data folder of a configuration, which must be empty, with the
// sample teams. progress is told how much of it is done, of 1.
func NewDemo(ctx context.Context, cfg config.Config, progress func(done float64)) (_ *Demo, err error) {
	cfg.Database, cfg.ReportDomain, cfg.SMTPListen = filepath.Join(cfg.Data, "demo.db"), demo.ReportDomain, ""
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return nil, err
	}
	// The clock is set to the moment that is being told.
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
	telling := &telling{
		scenario: scenario, loader: loader, config: cfg, clock: &clock,
		acceptor: NewAcceptor(cfg, slog.New(slog.DiscardHandler)), turns: scenario.Turns(), steps: scenario.Steps(), now: now,
	}
	for day := scenario.Begin(); day.Before(now); day = day.AddDate(0, 0, 1) {
		if err := telling.day(ctx, day); err != nil {
			return nil, fmt.Errorf("generate the reports of %s: %w", day.Format(time.DateOnly), err)
		}
		progress(float64(day.Sub(scenario.Begin())) / float64(now.Sub(scenario.Begin())))
	}
	clock = now
	for more := true; more; { // so that the first look at a year is fast, too
		if more, err = s.BuildRollups(ctx); err != nil {
			return nil, err
		}
	}
	made, err := newDemo(cfg, scenario, now)
	if err != nil {
		return nil, err
	}
	made.Invite, err = loader.close(ctx)
	return made, err
}

func newDemo(cfg config.Config, scenario *demo.Scenario, now time.Time) (*Demo, error) {
	var networks bytes.Buffer
	if err := scenario.WriteNetworks(&networks); err != nil {
		return nil, err
	}
	file := filepath.Join(cfg.Data, "demo.mmdb")
	if err := os.WriteFile(file, networks.Bytes(), 0o600); err != nil {
		return nil, err
	}
	server, err := demo.Listen(scenario.Zone(now))
	if err != nil {
		return nil, err
	}
	cfg.DNS = []string{server.Addr()}
	cfg.Senders.Networks, cfg.Senders.Countries = file, file
	return &Demo{Config: cfg, Known: scenario.Senders(), dns: server}, nil
}

// telling loads a scenario into a database, day by day.
type telling struct {
	scenario *demo.Scenario
	loader   *loader
	config   config.Config
	clock    *time.Time
	acceptor *intake.Acceptor
	turns    []time.Time // those still to load
	steps    []demo.Step // likewise
	now      time.Time   // what is sent later has not arrived yet
}

// day loads one day: actions of users, DNS changes, then reports.
func (t *telling) day(ctx context.Context, day time.Time) error {
	for len(t.steps) > 0 && t.steps[0].At.Before(day.AddDate(0, 0, 1)) {
		if err := t.loader.do(ctx, t.steps[0]); err != nil {
			return fmt.Errorf("%s: %w", t.steps[0].Action, err)
		}
		t.steps = t.steps[1:]
	}
	for len(t.turns) > 0 && t.turns[0].Before(day.AddDate(0, 0, 1)) {
		if err := t.look(ctx, t.turns[0]); err != nil {
			return err
		}
		t.turns = t.turns[1:]
	}
	for _, nonReports := range t.scenario.NonReports() {
		if !nonReports.SentAt.Before(day) && nonReports.SentAt.Before(day.AddDate(0, 0, 1)) {
			if err := t.deliver(ctx, slices.Values([]demo.Document{nonReports})); err != nil {
				return err
			}
		}
	}
	return t.deliver(ctx, t.scenario.DocumentsAbout(day))
}

// deliver brings in what was sent, each to the team that has the domain.
func (t *telling) deliver(ctx context.Context, documents iter.Seq[demo.Document]) error {
	var opened []*intake.Opened
	defer func() {
		for _, o := range opened {
			o.Close()
		}
	}()
	deliveries := map[*store.Team][]*dmarcd.Delivery{}
	for document := range documents {
		if document.SentAt.After(t.now) {
			continue
		}
		*t.clock = document.SentAt
		var verdict dmarcd.Verdict
		if document.Kind != "" {
			verdict.Genuine = dmarcd.GenuineYes
		}
		o, err := t.acceptor.Read(ctx, intake.Message{
			Intake: document.Intake, Name: document.Name, Verdict: verdict,
			Content: bytes.NewReader(document.Content), Size: int64(len(document.Content)),
		})
		if err != nil {
			return err
		}
		opened = append(opened, o)
		team := t.loader.teamOf[document.Domain]
		deliveries[team] = append(deliveries[team], o.Delivery)
	}
	for team, sent := range deliveries {
		if _, err := team.Receive(ctx, sent); err != nil {
			return err
		}
	}
	return nil
}

// look examines all domains as they were at a moment.
func (t *telling) look(ctx context.Context, at time.Time) error {
	*t.clock = at
	checker := dnscheck.New(dnscheck.Options{
		Resolver: t.scenario.Zone(at), ReportDomain: t.config.ReportDomain,
		Interval: t.config.Schedule.Interval, FullInterval: t.config.Schedule.FullInterval,
		Now: func() time.Time { return at },
	})
	for _, domain := range t.scenario.Domains() {
		if err := examine(ctx, checker, t.loader.teamOf[domain.Name], domain.Name, t.config, dnscheck.Scheduled); err != nil {
			return err
		}
	}
	return nil
}
