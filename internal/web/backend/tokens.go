package backend

import (
	"context"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/web"
)

// tokens implements web.Tokens.
type tokens struct{ desk }

func (t tokens) Tokens(ctx context.Context) ([]dmarcd.Token, error) { return t.team.Tokens(ctx) }

func (t tokens) CreateToken(ctx context.Context, wanted web.NewToken) (string, error) {
	secret := auth.NewToken()
	made, err := t.team.CreateToken(ctx, store.NewToken{
		Name: wanted.Name, Scope: wanted.Scope, ExpiresAt: wanted.ExpiresAt, Hash: auth.HashToken(secret),
	})
	if err != nil {
		return "", err
	}
	t.note(ctx, "token.create", made.ID.String(), made.Name+", "+string(made.Scope))
	return secret, nil
}

func (t tokens) RevokeToken(ctx context.Context, id string) error {
	parsed, err := dmarcd.ParseTokenID(id)
	if err != nil {
		return dmarcd.ErrNotFound
	}
	if err := t.team.RevokeToken(ctx, parsed); err != nil {
		return err
	}
	t.note(ctx, "token.revoke", id, "")
	return nil
}
