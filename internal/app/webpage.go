package app

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/fair"
	"github.com/dmarcd/dmarcd/internal/intake/imap"
	"github.com/dmarcd/dmarcd/internal/outbound"
	"github.com/dmarcd/dmarcd/internal/secret"
	"github.com/dmarcd/dmarcd/internal/service"
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
		TryMailbox:   a.tryMailbox,
		AddMailbox:   addMailbox,
		LoginRefused: imap.ErrLogin.Error(),
		BaseURL:      a.config.BaseURL,
		ReportDomain: a.config.ReportDomain,
		Now:          time.Now,
		Log:          a.log,
	})
}

// tryMailbox logs in to a mailbox, and puts what its server refuses at the field of
// the form that it is about.
func (a *App) tryMailbox(ctx context.Context, m dmarcd.Mailbox, password string) error {
	credentials := imap.Credentials{Password: password}
	if err := credentials.Validate(); err != nil {
		return err
	}
	err := (&imap.Reader{Mailbox: m, Login: credentials.Login(nil, nil), Dial: a.dialer.DialContext}).Try(ctx)
	switch {
	case errors.Is(err, imap.ErrLogin):
		return &dmarcd.InvalidError{Field: "password", Message: "The server refuses the login. Look at user name and password; some providers want a password for programs."}
	case errors.Is(err, outbound.ErrRefused):
		return &dmarcd.InvalidError{Field: "host", Message: backend.AddressRefused}
	case errors.Is(err, imap.ErrFolder):
		return &dmarcd.InvalidError{Field: "folder", Message: "The login works, but the server does not open this folder. Look at its name."}
	}
	return err
}

// addMailbox has a team read a mailbox with that password.
func addMailbox(ctx context.Context, team *service.Team, m dmarcd.Mailbox, password string) error {
	_, err := team.AddMailbox(ctx, m, imap.Credentials{Password: password}.Encode())
	return err
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

// SealMailboxes returns what seals the secrets of mailboxes for an installation.
func SealMailboxes(cfg config.Config) func(m dmarcd.Mailbox, plain []byte) ([]byte, error) {
	return func(m dmarcd.Mailbox, plain []byte) ([]byte, error) {
		return secret.File(cfg.Secret.File).Seal(plain, m.SecretContext())
	}
}
