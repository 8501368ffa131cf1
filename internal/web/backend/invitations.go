package backend

import (
	"context"
	"errors"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/web"
)

// Invitation implements web.Invitations.
func (b *Backend) Invitation(ctx context.Context, token, session string) (web.Invitation, error) {
	invite, err := b.options.Welcome.Look(ctx, token)
	if err != nil {
		return web.Invitation{}, err
	}
	invitation := web.Invitation{Email: invite.Email, Role: string(invite.Role)}
	if invite.Team != 0 {
		team, err := b.options.Store.TeamByID(ctx, invite.Team)
		if err != nil {
			return web.Invitation{}, err
		}
		invitation.Team = team.Name
	}
	user, err := b.signedIn(ctx, session)
	if err != nil {
		return web.Invitation{}, err
	}
	invitation.SignedIn = user.Email
	if invite.Email == "" {
		return invitation, nil
	}
	switch _, err := b.options.Store.UserByEmail(ctx, invite.Email); {
	case err == nil:
		invitation.Known = true
		invitation.SignInFirst = invite.CreatedBy != 0 && user.ID == 0 // see dmarcd.Invite
	case !errors.Is(err, dmarcd.ErrNotFound):
		return web.Invitation{}, err
	}
	return invitation, nil
}

// signedIn returns whose session it is, the zero User for nobody's.
func (b *Backend) signedIn(ctx context.Context, secret string) (dmarcd.User, error) {
	session, err := b.options.Sessions.Resolve(ctx, secret)
	if errors.Is(err, dmarcd.ErrUnauthorized) {
		return dmarcd.User{}, nil
	}
	return session.User, err
}

// AcceptInvitation implements web.Invitations.
func (b *Backend) AcceptInvitation(ctx context.Context, token string, account web.NewAccount) (string, error) {
	invite, err := b.options.Welcome.Look(ctx, token)
	if err != nil {
		return "", err
	}
	present, err := b.signedIn(ctx, account.Browser.Session)
	if err != nil {
		return "", err
	}
	user, err := b.options.Welcome.Accept(ctx, token, auth.Answer{
		SignedIn: present.ID, Email: account.Email, Name: account.Name, Password: account.Password,
	})
	if err != nil {
		return "", err
	}
	secret, err := b.begin(ctx, user.ID, account.Browser)
	if err != nil {
		return "", err
	}
	j := b.journalOf(web.Viewer{ID: user.ID.String(), Email: user.Email, Address: account.Browser.Address})
	if invite.Team == 0 {
		j.write(ctx, b.options.Store, "user.join", user.Email, "")
		return secret, nil
	}
	j.write(ctx, b.options.Store.Team(invite.Team), "member.join", user.Email, string(invite.Role))
	// What they were invited to is what they want to see.
	return secret, b.ChooseTeam(ctx, secret, invite.Team.String())
}
