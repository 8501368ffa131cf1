package backend

import (
	"context"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web"
)

// tokens implements web.Tokens.
type tokens struct{ desk }

func (t tokens) Tokens(ctx context.Context) ([]dmarcd.Token, error) { return t.team.Tokens(ctx) }

func (t tokens) CreateToken(ctx context.Context, wanted web.NewToken) (string, error) {
	return t.team.CreateToken(ctx, service.NewToken(wanted))
}

func (t tokens) RevokeToken(ctx context.Context, id string) error {
	parsed, err := dmarcd.ParseTokenID(id)
	if err != nil {
		return dmarcd.ErrNotFound
	}
	return t.team.RevokeToken(ctx, parsed)
}
