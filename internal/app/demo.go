package app

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
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
	s, err := store.Open(ctx, cfg.Database, store.Options{Secrets: secretKeys(cfg), Now: func() time.Time { return clock }})
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
		acceptor: NewAcceptor(cfg, slog.New(slog.DiscardHandler)), changes: scenario.Changes(), steps: scenario.Steps(), now: now,
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
	changes  []time.Time // still to check
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
	for len(r.changes) > 0 && r.changes[0].Before(day.AddDate(0, 0, 1)) {
		if err := r.check(ctx, r.changes[0]); err != nil {
			return err
		}
		r.changes = r.changes[1:]
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
		var authentication dmarcd.Authentication
		if document.Kind != "" {
			authentication.Genuine = dmarcd.GenuineYes
		}
		opened, err := acceptor.Read(ctx, intake.Message{
			Intake: document.Intake, Name: document.Name, Authentication: authentication,
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

// loader applies the actions of users of a scenario to a database.
type loader struct {
	store        *store.Store
	reportDomain string
	clock        *time.Time
	teams        map[string]dmarcd.Team
	users        map[string]dmarcd.User
	tokens       map[string]dmarcd.TokenID
	// token is the first one, which stays valid.
	token string
	// teamOf maps domains to their teams, addresses to their reporting addresses.
	teamOf    map[string]*store.Team
	addresses map[string]string
	// password is the hash of a random password: users sign in with a link.
	password string
}

// newLoader creates the teams. It adds the reporting addresses to addresses.
func newLoader(ctx context.Context, s *store.Store, reportDomain string, addresses map[string]string, clock *time.Time) (*loader, error) {
	o := &loader{
		store: s, reportDomain: reportDomain, clock: clock, teams: map[string]dmarcd.Team{}, users: map[string]dmarcd.User{},
		tokens: map[string]dmarcd.TokenID{}, teamOf: map[string]*store.Team{}, addresses: addresses,
	}
	for name, api := range map[string]bool{demo.FirstTeam: true, demo.SecondTeam: false} {
		team, err := s.CreateTeam(ctx, name, api)
		if err != nil {
			return nil, err
		}
		o.teams[name] = team
	}
	var err error
	o.password, err = auth.NewPasswords().Hash(ctx, "", "", rand.Text())
	return o, err
}

// do applies a step at its time, and writes it to the audit log of its team.
func (o *loader) do(ctx context.Context, step demo.Step) error {
	*o.clock = step.At
	entry := dmarcd.AuditEntry{
		Actor: step.By, Action: string(step.Action), Target: step.Target, Detail: step.Detail, Address: step.Address,
	}
	team := o.store.Team(o.teams[step.Team].ID)
	var err error
	switch step.Action {
	case demo.Joined:
		err = o.join(ctx, step)
	case demo.Invited:
		err = o.invite(ctx, team, step)
	case demo.AddedDomain:
		err = o.addDomain(ctx, team, step.Target)
	case demo.SetPurpose:
		err = team.SetPurpose(ctx, step.Target, dmarcd.Purpose(step.Detail))
	case demo.SetParked:
		err = team.SetParked(ctx, step.Target, true)
	case demo.CreatedToken:
		entry.Target, err = o.createToken(ctx, team, step)
		entry.Detail = step.Target + ", " + step.Detail
	case demo.RevokedToken:
		entry.Target = o.tokens[step.Target].String()
		err = team.RevokeToken(ctx, o.tokens[step.Target])
	case demo.AddedMailbox:
		entry.Target, err = addUnreadMailbox(ctx, team, step)
		entry.Detail = step.Target + " at " + step.Detail
	case demo.UploadedReport: // the scenario contains it
	}
	if err != nil {
		return err
	}
	entry.User = o.users[step.By].ID
	return team.Note(ctx, entry)
}

// join adds a user to a team as if by an invitation, and signs them in.
func (o *loader) join(ctx context.Context, step demo.Step) error {
	_, hash := auth.NewInvitation()
	err := o.store.CreateInvitation(ctx, hash, dmarcd.Invitation{
		Email: step.By, Team: o.teams[step.Team].ID, Role: dmarcd.Role(step.Detail), ExpiresAt: step.At.Add(time.Hour),
	})
	if err != nil {
		return err
	}
	claim := dmarcd.Claim{User: o.users[step.By].ID, Name: demo.NameOf(step.By)}
	if claim.User == 0 {
		claim.PasswordHash = o.password
	}
	user, err := o.store.UseInvitation(ctx, hash, claim)
	if err != nil {
		return err
	}
	o.users[step.By] = user.User
	_, session := auth.NewInvitation() // with an unknown secret
	return o.store.CreateSession(ctx, dmarcd.NewSession{
		Hash: session, User: user.ID, PasswordHash: user.PasswordHash, ExpiresAt: step.At.Add(dmarcd.SessionLife), Address: step.Address,
	})
}

func (o *loader) invite(ctx context.Context, team *store.Team, step demo.Step) error {
	_, hash := auth.NewInvitation()
	return team.Invite(ctx, hash, dmarcd.Invitation{
		Email: step.Target, Role: dmarcd.Role(step.Detail), CreatedBy: o.users[step.By].ID, ExpiresAt: step.At.Add(dmarcd.InvitationLife),
	})
}

func (o *loader) addDomain(ctx context.Context, team *store.Team, name string) error {
	added, err := team.AddDomain(ctx, name, *o.clock)
	o.teamOf[name], o.addresses[name] = team, added.ReportAddress(o.reportDomain)
	return err
}

func (o *loader) createToken(ctx context.Context, team *store.Team, step demo.Step) (id string, err error) {
	token := auth.NewToken()
	o.token = cmp.Or(o.token, token)
	made, err := team.CreateToken(ctx, store.NewToken{
		Name: step.Target, Scope: dmarcd.Scope(step.Detail), Hash: auth.HashToken(token),
	})
	o.tokens[step.Target] = made.ID
	return made.ID.String(), err
}

// addUnreadMailbox adds a mailbox that is never read: see loader.close.
func addUnreadMailbox(ctx context.Context, team *store.Team, step demo.Step) (id string, err error) {
	added, err := team.AddMailbox(ctx, dmarcd.Mailbox{
		Host: step.Detail, Port: dmarcd.SecurityTLS.Port(), Security: dmarcd.SecurityTLS, Username: step.Target,
		Method: dmarcd.LoginPassword, Folder: "INBOX", After: dmarcd.AfterFlag,
	}, func(dmarcd.Mailbox) ([]byte, error) { return []byte("no secret"), nil })
	return added.ID.String(), err
}

// forEver is longer than any demo runs.
const forEver = 100 * 365 * 24 * time.Hour

// close leases the mailboxes for ever, so that the daemon never connects to them, and returns
// the sign-in link of the owner, as an operator, and a token.
func (o *loader) close(ctx context.Context) (Invitation, error) {
	const many = 100
	held, err := o.store.ClaimMailboxes(ctx, forEver, many)
	if err != nil {
		return Invitation{}, err
	}
	for _, m := range held {
		if err := o.store.Team(m.Team).SaveMailboxStatus(ctx, m.ID, ""); err != nil {
			return Invitation{}, fmt.Errorf("save a mailbox status: %w", err)
		}
	}
	secret, hash := auth.NewInvitation()
	err = o.store.CreateInvitation(ctx, hash, dmarcd.Invitation{
		Email: demo.Ada, Operator: true, ExpiresAt: o.clock.Add(dmarcd.InvitationLife),
	})
	return Invitation{Secret: secret, Token: o.token, For: demo.NameOf(demo.Ada) + ", who owns two teams and operates the installation"}, err
}
