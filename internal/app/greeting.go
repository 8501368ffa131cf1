package app

import (
	"context"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/demo"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/web"
)

// greet makes sure that the API and the web interface can be used, and prints how. A new token
// or link is shown only here; a configured token is never shown.
func (a *App) greet(ctx context.Context) error {
	token, err := a.firstToken(ctx)
	if err != nil {
		return err
	}
	link, err := a.firstLink(ctx)
	if err != nil {
		return err
	}
	switch {
	case token != "":
		err = a.print(`This is the first start. The team %q can use the API with this token, which is not shown again.
Save it, and try it:

    export TOKEN=%s
    curl -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \
        -d '{"domain": "example.com"}' %[3]s/domains
    curl -H "Authorization: Bearer $TOKEN" %[3]s/domains

Documentation: %[3]s/docs
`, dmarcd.DefaultTeam, token, a.config.BaseURL)
	case a.config.Token == "":
		err = a.print("dmarcd serves the API at %s (documentation: %[1]s/docs), and the web interface under %[2]s/.\n", a.config.BaseURL, web.Prefix)
	}
	if err != nil || link == "" {
		return err
	}
	if whom := a.options.Invitation.For; whom != "" {
		err = a.print("\nThis link opens the web interface as %s. Choose a password there, and you are signed in. The link can be used once:\n\n    %s\n", whom, link)
		if sample := a.options.Invitation.Token; err == nil && sample != "" {
			err = a.print("\nThis token reads the data of the team %q through the API:\n\n    curl -H \"Authorization: Bearer %s\" %s/domains\n", dmarcd.DefaultTeam, sample, a.config.BaseURL)
		}
		return err
	}
	return a.print(`
There are no users yet. This link creates the first one. It can be used once, within %d days:

    %s
`, int(dmarcd.InvitationLife.Hours()/24), link)
}

func (a *App) print(format string, args ...any) error {
	_, err := fmt.Fprintf(a.options.Out, format, args...)
	return err
}

// firstToken makes sure that there is a team with a token. It returns the token if it is new,
// else "".
func (a *App) firstToken(ctx context.Context) (string, error) {
	if configured := a.config.Token; configured != "" {
		return "", a.store.EnsureToken(ctx, auth.HashToken(configured))
	}
	token := auth.NewToken()
	made, err := a.store.FirstStart(ctx, auth.HashToken(token))
	if err != nil || !made {
		return "", err
	}
	return token, nil
}

// firstLink returns the sign-in link of the first user, or "" if there is a user or an open
// invitation.
func (a *App) firstLink(ctx context.Context) (string, error) {
	if secret := a.options.Invitation.Secret; secret != "" {
		return auth.InvitationLink(a.config.BaseURL, secret)
	}
	secret, hash := auth.NewInvitation()
	made, err := a.store.FirstInvitation(ctx, hash)
	if err != nil || !made {
		return "", err
	}
	return auth.InvitationLink(a.config.BaseURL, secret)
}

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
