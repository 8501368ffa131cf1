package app

import (
	"context"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/fair"
	"github.com/dmarcd/dmarcd/internal/outbound"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/web"
	"github.com/dmarcd/dmarcd/internal/web/backend"
)

// webPage returns the pages for people.
func (a *App) webPage() (*web.Web, error) {
	behind := a.pageBackend()
	options := web.Options{
		Accounts:      behind,
		OwnAccount:    behind,
		Invitations:   behind,
		Team:          behind.Team,
		Installation:  behind.Installation,
		ProviderName:  a.config.OIDC.Name,
		MinPassword:   auth.MinPassword,
		APIDocs:       a.config.BaseURL + "/docs",
		SecureCookies: strings.HasPrefix(a.config.BaseURL, "https:"),
		MaxUpload:     int64(a.config.Limit.Upload),
		Uploads:       a.uploads,
		Now:           time.Now,
		Log:           a.log,
	}
	for _, whose := range a.atlas.Attributions() {
		options.Attributions = append(options.Attributions, web.Link{Text: whose.Text, Href: whose.URL})
	}
	if a.config.OIDC.Issuer != "" {
		oidc, err := auth.NewOIDC(auth.OIDCOptions{
			Issuer: a.config.OIDC.Issuer, ClientID: a.config.OIDC.ClientID, ClientSecret: a.config.OIDC.ClientSecret,
			BaseURL: a.config.BaseURL, Domains: a.config.OIDC.Domains, Dial: outbound.Trusted(a.config.DNS).DialContext, Now: time.Now,
		}, a.store)
		if err != nil {
			return nil, err
		}
		options.SingleSignOn = backend.SingleSignOn{Backend: behind, OIDC: oidc}
	}
	return web.New(options)
}

// Checks of everything that users ask for on the page: how many run at once, and how
// many of one team. As many of a team may wait.
const (
	maxExaminations     = 64
	maxTeamExaminations = 8
)

// pageBackend returns what the pages ask.
func (a *App) pageBackend() *backend.Backend {
	passwords := auth.NewPasswords()
	return backend.New(backend.Options{
		Store:        a.store,
		Service:      a.service,
		Sessions:     auth.NewSessions(a.store, time.Now, a.log),
		Passwords:    &auth.PasswordSignIn{Store: a.store, Passwords: passwords, Throttle: auth.NewThrottle(time.Now)},
		Welcome:      &auth.Welcome{Store: a.store, Passwords: passwords, Now: time.Now},
		Memory:       a.memory,
		Acceptor:     a.acceptor,
		MaxUpload:    int64(a.config.Limit.Upload),
		BaseURL:      a.config.BaseURL,
		ReportDomain: a.config.ReportDomain,
		Now:          time.Now,
		Log:          a.log,
	})
}

// examineOnRequest returns the full check that users ask for, limited fairly by team.
func (a *App) examineOnRequest() func(ctx context.Context, team *store.Team, name string) error {
	examining := fair.New[dmarcd.TeamID](fair.Options{Capacity: maxExaminations, PerKey: maxTeamExaminations, Waiting: maxTeamExaminations})
	return func(ctx context.Context, team *store.Team, name string) error {
		release, err := examining.Acquire(ctx, team.ID(), 1)
		if err != nil {
			return err
		}
		defer release()
		return examine(ctx, a.checker, team, name, a.config, dnscheck.Requested)
	}
}
