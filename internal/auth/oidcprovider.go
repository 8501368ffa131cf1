package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/dmarcd/dmarcd"
)

const (
	// providerTimeout is for one request to the provider.
	providerTimeout = 10 * time.Second
	// discoverEvery is the time between attempts to discover a provider that cannot be reached:
	// anyone can ask for it.
	discoverEvery = 5 * time.Second
	// maxProviderAnswer limits a response, in bytes.
	maxProviderAnswer = 1 << 20
)

// personClaims are the claims about a person (OpenID Connect Core 1.0 §5.1).
type personClaims struct {
	Email         string `json:"email"`
	EmailVerified any    `json:"email_verified"`
	Name          string `json:"name"`
}

// verified reports whether the provider has verified the email address. Some providers
// write the value as a string; a missing value means no.
func (c personClaims) verified() bool { return c.EmailVerified == true || c.EmailVerified == "true" }

// discover returns the provider. Its discovery document is fetched once, even if the client
// leaves.
func (o *OIDC) discover(ctx context.Context) (*oauth2.Config, *oidc.Provider, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.provider == nil {
		if o.failure != nil && o.options.Now().Sub(o.failedAt) < discoverEvery {
			return nil, nil, o.failure
		}
		provider, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), o.client), o.options.Issuer)
		if err != nil {
			o.failure, o.failedAt = fmt.Errorf("%w: discover the OpenID provider: %w", dmarcd.ErrTemporary, err), o.options.Now()
			return nil, nil, o.failure
		}
		o.provider = provider
	}
	return &oauth2.Config{
		ClientID:     o.options.ClientID,
		ClientSecret: o.options.ClientSecret,
		Endpoint:     o.provider.Endpoint(),
		RedirectURL:  o.redirect,
		Scopes:       []string{oidc.ScopeOpenID, "email", "profile"},
	}, o.provider, nil
}

// userInfo fetches the claims of a person.
func userInfo(ctx context.Context, provider *oidc.Provider, tokens oauth2.TokenSource, subject string) (personClaims, error) {
	var claims personClaims
	info, err := provider.UserInfo(ctx, tokens)
	if err != nil {
		return claims, providerError("ask for the person's claims", err)
	}
	// OpenID Connect Core 1.0 §5.3.2: claims of another subject must not be used.
	if info.Subject != subject {
		return claims, fmt.Errorf("%w: the provider's claims are for another user", dmarcd.ErrUnauthorized)
	}
	if err := info.Claims(&claims); err != nil {
		return claims, fmt.Errorf("%w: read the user's claims: %w", dmarcd.ErrUnauthorized, err)
	}
	return claims, nil
}

// providerError distinguishes a provider that denies the request from one that cannot be
// reached.
func providerError(what string, err error) error {
	kind := dmarcd.ErrTemporary
	var rejected *oauth2.RetrieveError
	if errors.As(err, &rejected) && rejected.Response != nil && rejected.Response.StatusCode < http.StatusInternalServerError {
		kind = dmarcd.ErrUnauthorized
	}
	return fmt.Errorf("%w: %s: %w", kind, what, err)
}

// newProviderClient returns a client without keep-alive and with bounded responses.
func newProviderClient(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Client {
	return &http.Client{
		Timeout:   providerTimeout,
		Transport: limitedTransport{&http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: dial, DisableKeepAlives: true}},
	}
}

// limitedTransport truncates long responses.
type limitedTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(response.Body, maxProviderAnswer), response.Body}
	return response, nil
}
