package backend

import (
	"context"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
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
	email, err := dmarcd.ParseEmail(email)
	if err != nil {
		return "", err
	}
	as, err := dmarcd.ParseRole(role)
	if err != nil {
		return "", err
	}
	secret, hash := auth.NewInvite()
	link, err := auth.WelcomeLink(i.options.BaseURL, secret)
	if err != nil {
		return "", err
	}
	err = i.team.Invite(ctx, hash, dmarcd.Invite{
		Email: email, Role: as, CreatedBy: i.user, ExpiresAt: i.options.Now().Add(dmarcd.InviteLife),
	})
	if err != nil {
		return "", err
	}
	i.note(ctx, "member.invite", email, role)
	return link, nil
}

func (i invites) WithdrawInvite(ctx context.Context, email string) error {
	if err := i.team.CancelInvite(ctx, email); err != nil {
		return err
	}
	i.note(ctx, "member.uninvite", email, "")
	return nil
}
