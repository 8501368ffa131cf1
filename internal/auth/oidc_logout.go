package auth

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/dmarcd/dmarcd"
)

const (
	// logoutEvent is the member that makes a token a logout token (OpenID Connect Back-Channel Logout 1.0 §2.4).
	logoutEvent = "http://schemas.openid.net/event/backchannel-logout"
	// logoutLife is how long after it was issued a logout token is accepted, clockSkew how far it may be
	// ahead of our clock.
	logoutLife = 5 * time.Minute
	clockSkew  = time.Minute
)

// logoutClaims are the claims of a logout token.
type logoutClaims struct {
	ID      string                     `json:"jti"`
	Session string                     `json:"sid"`
	Issued  int64                      `json:"iat"`
	Expires int64                      `json:"exp"`
	Nonce   any                        `json:"nonce"`
	Events  map[string]json.RawMessage `json:"events"`
}

// Logout validates a logout token (OpenID Connect Back-Channel Logout 1.0 §2.6), except that it was not used before. It
// returns dmarcd.ErrUnauthorized for one that is not valid, and dmarcd.ErrTemporary if the provider
// could not be reached. The texts of these errors are for the log.
func (o *OIDC) Logout(ctx context.Context, raw string) (dmarcd.ProviderLogout, error) {
	rejected := func(reason string) (dmarcd.ProviderLogout, error) {
		return dmarcd.ProviderLogout{}, fmt.Errorf("%w: the logout token %s", dmarcd.ErrUnauthorized, reason)
	}
	_, provider, err := o.discover(ctx)
	if err != nil {
		return dmarcd.ProviderLogout{}, err
	}
	// Some providers set no end: ours applies.
	verifier := provider.Verifier(&oidc.Config{ClientID: o.options.ClientID, Now: o.options.Now, SkipExpiryCheck: true})
	token, err := verifier.Verify(oidc.ClientContext(ctx, o.client), raw)
	if err != nil {
		return dmarcd.ProviderLogout{}, fmt.Errorf("%w: verify the logout token: %w", dmarcd.ErrUnauthorized, err)
	}
	var claims logoutClaims
	if err := token.Claims(&claims); err != nil {
		return dmarcd.ProviderLogout{}, fmt.Errorf("%w: read the logout token: %w", dmarcd.ErrUnauthorized, err)
	}
	now, issued := o.options.Now(), time.Unix(claims.Issued, 0)
	var event map[string]any
	switch {
	case claims.Issued == 0 || now.Sub(issued) >= logoutLife || issued.Sub(now) > clockSkew:
		return rejected("is too old, or of the future")
	case claims.Expires != 0 && !now.Before(time.Unix(claims.Expires, 0).Add(clockSkew)):
		return rejected("has expired")
	case json.Unmarshal(claims.Events[logoutEvent], &event) != nil || event == nil:
		return rejected("is about something else")
	case claims.Nonce != nil:
		return rejected("has a nonce")
	case claims.ID == "":
		return rejected("has no id")
	case token.Subject == "" && claims.Session == "":
		return rejected("names no user")
	}
	return dmarcd.ProviderLogout{
		Issuer: o.options.Issuer, Subject: token.Subject, Session: claims.Session,
		Hash: sha256.Sum256([]byte(claims.ID)), ExpiresAt: issued.Add(logoutLife + clockSkew),
	}, nil
}
