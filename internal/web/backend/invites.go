package backend

import (
	"context"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web"
)

// invites implements web.Invites.
type invites struct{ desk }

func (i invites) Invites(ctx context.Context) ([]web.Invite, error) {
	open, err := i.team.Invites(ctx)
	if err != nil {
		return nil, err
	}
	found, err := i.team.Members(ctx)
	if err != nil {
		return nil, err
	}
	// What a member who has left made is void: what is left was made by an operator.
	by := map[dmarcd.UserID]string{0: "command line"}
	for _, member := range found {
		by[member.User.ID] = member.User.Email
	}
	shown := make([]web.Invite, len(open))
	for n, invite := range open {
		shown[n] = web.Invite{Email: invite.Email, Role: string(invite.Role), By: by[invite.CreatedBy], ExpiresAt: invite.ExpiresAt}
		if shown[n].By == "" {
			shown[n].By = "operator"
		}
	}
	return shown, nil
}

func (i invites) InviteMember(ctx context.Context, email, role string) (string, error) {
	as, err := dmarcd.ParseRole(role)
	if err != nil {
		return "", err
	}
	return i.team.InviteMember(ctx, email, as)
}

func (i invites) WithdrawInvite(ctx context.Context, email string) error {
	return i.team.WithdrawInvite(ctx, email)
}
