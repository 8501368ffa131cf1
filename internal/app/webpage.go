package app

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/intake/imap"
	"github.com/dmarcd/dmarcd/internal/secret"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/web"
	"github.com/dmarcd/dmarcd/internal/web/backend"
)

// webPage returns the pages for people.
func (a *App) webPage() (*web.Web, error) {
	behind := a.pageBackend()
	options := web.Options{
		Accounts:      behind,
		Invitations:   behind,
		Team:          behind.Team,
		Installation:  behind.Installation,
		ProviderName:  a.config.OIDC.Name,
		MinPassword:   auth.MinPassword,
		APIDocs:       a.config.BaseURL + "/docs",
		SecureCookies: strings.HasPrefix(a.config.BaseURL, "https:"),
		MaxUpload:     int64(a.config.Limit.Upload),
		Now:           time.Now,
		Log:           a.log,
	}
	for _, whose := range a.atlas.Attributions() {
		options.Attributions = append(options.Attributions, web.Link{Text: whose.Text, Href: whose.URL})
	}
	if a.config.OIDC.Issuer != "" {
		oidc, err := auth.NewOIDC(auth.OIDCOptions{
			Issuer: a.config.OIDC.Issuer, ClientID: a.config.OIDC.ClientID, ClientSecret: a.config.OIDC.ClientSecret,
			BaseURL: a.config.BaseURL, Domains: a.config.OIDC.Domains, Now: time.Now,
		}, a.store)
		if err != nil {
			return nil, err
		}
		options.SingleSignOn = backend.SingleSignOn{Backend: behind, OIDC: oidc}
	}
	return web.New(options)
}

// pageBackend returns what the pages ask.
func (a *App) pageBackend() *backend.Backend {
	passwords := auth.NewPasswords()
	return backend.New(backend.Options{
		Store:     a.store,
		Sessions:  auth.NewSessions(a.store, time.Now, a.log),
		Passwords: &auth.PasswordSignIn{Store: a.store, Passwords: passwords, Throttle: auth.NewThrottle(time.Now)},
		Welcome:   &auth.Welcome{Store: a.store, Passwords: passwords, Now: time.Now},
		Checker:   a.checker,
		Examine: func(ctx context.Context, team *store.Team, name string) error {
			return examine(ctx, a.checker, team, name, a.config.ReportDomain, dnscheck.Requested)
		},
		Insight:      a.sources,
		Acceptor:     a.acceptor,
		MaxUpload:    int64(a.config.Limit.Upload),
		Verify:       a.uploadVerdict,
		AddMailbox:   a.addMailbox,
		BaseURL:      a.config.BaseURL,
		ReportDomain: a.config.ReportDomain,
		Retention:    a.retention(),
		Now:          time.Now,
		Log:          a.log,
	})
}

// tryTimeout bounds the login that somebody waits for.
const tryTimeout = 15 * time.Second

// addMailbox has a team keep a mailbox that can be logged in to.
func (a *App) addMailbox(ctx context.Context, team *store.Team, m dmarcd.Mailbox, password string) (dmarcd.Mailbox, error) {
	credentials := imap.Credentials{Password: password}
	if err := credentials.Validate(); err != nil {
		return dmarcd.Mailbox{}, err
	}
	trying, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	if err := (&imap.Reader{Mailbox: m, Login: credentials.Login(nil, nil)}).Try(trying); err != nil {
		return dmarcd.Mailbox{}, mailboxProblem(err)
	}
	key, err := secret.Load(a.config.Secret.File)
	if err != nil {
		return dmarcd.Mailbox{}, err
	}
	return team.AddMailbox(ctx, m, func(added dmarcd.Mailbox) ([]byte, error) {
		return key.Seal(credentials.Encode(), added.SecretContext()), nil
	})
}

// mailboxProblem puts why a mailbox cannot be read at the field of the form that it
// is most likely about.
func mailboxProblem(err error) error {
	if errors.Is(err, imap.ErrLogin) {
		return &dmarcd.InvalidError{Field: "password", Message: "The server refuses the login. Look at user name and password; some providers want a password for programs."}
	}
	return &dmarcd.InvalidError{Field: "server", Message: "The mailbox cannot be read: " + err.Error() + "."}
}
