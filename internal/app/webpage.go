package app

import (
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/outbound"
	"github.com/dmarcd/dmarcd/internal/web"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// webPage returns the web interface.
func (a *App) webPage() (*web.Web, error) {
	options := web.Options{
		Service:       a.service,
		ReportDomain:  a.config.ReportDomain,
		MinPassword:   auth.MinPassword,
		APIDocs:       a.config.BaseURL + "/docs",
		SecureCookies: strings.HasPrefix(a.config.BaseURL, "https:"),
		MaxUpload:     int64(a.config.Limit.Upload),
		Uploads:       a.uploads,
		Now:           time.Now,
		Log:           a.log,
	}
	for _, whose := range a.atlas.Attributions() {
		options.Attributions = append(options.Attributions, ui.Link{Text: whose.Text, Href: whose.URL})
	}
	return web.New(options)
}

// singleSignOn returns the OIDC sign-in, nil if it is not configured.
func (a *App) singleSignOn() (*auth.OIDC, error) {
	if a.config.OIDC.Issuer == "" {
		return nil, nil
	}
	return auth.NewOIDC(auth.OIDCOptions{
		Issuer: a.config.OIDC.Issuer, ClientID: a.config.OIDC.ClientID, ClientSecret: a.config.OIDC.ClientSecret,
		BaseURL: a.config.BaseURL, Domains: a.config.OIDC.Domains, Dial: outbound.Trusted(a.config.DNS).DialContext, Now: time.Now,
	}, a.store)
}
