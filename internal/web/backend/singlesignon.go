package backend

import (
	"context"
	"net/url"

	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/web"
)

// SingleSignOn lets people in whom an OpenID provider vouches for. It implements
// web.SingleSignOn.
type SingleSignOn struct {
	Backend *Backend
	OIDC    *auth.OIDC
}

// Begin implements web.SingleSignOn.
func (s SingleSignOn) Begin(ctx context.Context, next string) (location, kept string, err error) {
	return s.OIDC.Begin(ctx, next)
}

// Finish implements web.SingleSignOn.
func (s SingleSignOn) Finish(ctx context.Context, kept string, answer url.Values, browser web.Browser) (session, next string, err error) {
	user, next, err := s.OIDC.Finish(ctx, kept, answer)
	if err != nil {
		return "", "", err
	}
	session, err = s.Backend.begin(ctx, user.ID, browser)
	return session, next, err
}
