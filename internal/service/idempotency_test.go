package service_test

import (
	"errors"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
)

// keyUses are the use cases of idempotency keys.
var keyUses = map[string]use{
	"ClaimKey": {
		needs: change, wants: dmarcd.ErrConflict,
		team: func(_ *world, t *service.Team) error {
			claim, _, err := t.ClaimKey(ctx, "key")
			return finds(claim, err)
		},
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			_, _, first := t.ClaimKey(ctx, "another")
			_, _, second := t.ClaimKey(ctx, "another")
			return errors.Join(first, second)
		},
	},
	"SaveAnswer": {
		needs: change, wants: dmarcd.ErrNotFound,
		team: func(_ *world, t *service.Team) error {
			claim, _, err := t.ClaimKey(ctx, "saved")
			if err != nil {
				return err
			}
			return t.SaveAnswer(ctx, claim, service.StoredAnswer{Answer: []byte("{}")})
		},
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return t.SaveAnswer(ctx, service.KeyClaim{}, service.StoredAnswer{})
		},
	},
	"ReleaseKey": {
		needs: change,
		team:  func(_ *world, t *service.Team) error { return t.ReleaseKey(ctx, service.KeyClaim{}) },
	},
}
