package service

import (
	"context"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/store"
)

// NewToken describes the token to create.
type NewToken struct {
	// Name is what the token is for, or "".
	Name  string
	Scope dmarcd.Scope
	// ExpiresAt is the end of the token; zero is never.
	ExpiresAt time.Time
}

// CreateToken creates a token and returns its secret, which is not shown again.
func (t *Team) CreateToken(ctx context.Context, wanted NewToken) (secret string, err error) {
	if err := t.may(dmarcd.RightManage); err != nil {
		return "", err
	}
	secret = auth.NewToken()
	_, err = t.team.CreateToken(ctx, store.NewToken{
		Name: wanted.Name, Scope: wanted.Scope, ExpiresAt: wanted.ExpiresAt, Hash: auth.HashToken(secret),
	}, t.actor.to("token.create", "", wanted.Name+", "+string(wanted.Scope)))
	if err != nil {
		return "", err
	}
	return secret, nil
}

// RevokeToken revokes a token.
func (t *Team) RevokeToken(ctx context.Context, id dmarcd.TokenID) error {
	if err := t.may(dmarcd.RightManage); err != nil {
		return err
	}
	return t.team.RevokeToken(ctx, id, t.actor.to("token.revoke", id.String(), ""))
}

// SetRole changes the role of a member. The last owner is an *dmarcd.InvalidError.
func (t *Team) SetRole(ctx context.Context, user dmarcd.UserID, role dmarcd.Role) error {
	if err := t.may(dmarcd.RightManage); err != nil {
		return err
	}
	return t.team.SetRole(ctx, user, role, t.actor.to("member.role", "", string(role)))
}

// RemoveMember removes a member. The last owner is an *dmarcd.InvalidError.
func (t *Team) RemoveMember(ctx context.Context, user dmarcd.UserID) error {
	if err := t.may(dmarcd.RightManage); err != nil {
		return err
	}
	return t.team.RemoveMember(ctx, user, t.actor.to("member.remove", "", ""))
}

// SentInvitation is an invitation that was just made. Its link is never shown again.
type SentInvitation struct {
	// Link works once. It is "" if only the recipient of the mail may use it.
	Link string
	// Mailed tells that it was sent by mail.
	Mailed bool
}

// mailInvitation sends the link of an invitation, if there is a relay, and reports whether it
// did. team is 0 for none.
func (s *Service) mailInvitation(ctx context.Context, email string, team dmarcd.TeamID, link string) (bool, error) {
	if s.options.Mail == nil || email == "" {
		return false, nil
	}
	var named dmarcd.Team
	var err error
	if team != 0 {
		named, err = s.store.TeamByID(ctx, team)
	}
	if err == nil {
		err = s.options.Mail.SendInvitation(ctx, email, named.Name, link)
	}
	if err != nil {
		s.options.Log.WarnContext(ctx, "invitation not sent", "error", err, "team", team)
	}
	return err == nil, err
}

// InviteMember invites a person into the team. If there is a relay, only that person gets the
// link, by mail: an owner who saw it could create the account of another person, whose address
// then counts as confirmed. An invitation that could not be sent is withdrawn.
func (t *Team) InviteMember(ctx context.Context, email string, role dmarcd.Role) (invitation SentInvitation, err error) {
	if err := t.may(dmarcd.RightManage); err != nil {
		return SentInvitation{}, err
	}
	if email, err = dmarcd.ParseEmail(email); err != nil {
		return SentInvitation{}, err
	}
	if t.service.options.Mail != nil {
		if err := t.service.throttleMail(t.team.ID(), email); err != nil {
			return SentInvitation{}, err
		}
	}
	secret, hash := auth.NewInvitation()
	link, err := auth.InvitationLink(t.service.options.BaseURL, secret)
	if err != nil {
		return SentInvitation{}, err
	}
	err = t.team.Invite(ctx, hash, dmarcd.Invitation{
		Email: email, Role: role, CreatedBy: t.actor.entry.User, ExpiresAt: t.service.options.Now().Add(dmarcd.InvitationLife),
	}, t.actor.to("member.invite", email, string(role)))
	if err != nil {
		return SentInvitation{}, err
	}
	mailed, err := t.service.mailInvitation(ctx, email, t.team.ID(), link)
	switch {
	case mailed:
		return SentInvitation{Mailed: true}, nil
	case err == nil: // no relay
		return SentInvitation{Link: link}, nil
	}
	if err := t.WithdrawInvitation(ctx, email); err != nil {
		return SentInvitation{}, err
	}
	return SentInvitation{}, &dmarcd.InvalidError{Field: "email", Message: "The email with the invitation could not be sent. Try again later, or ask the operator for a link."}
}

// WithdrawInvitation voids all open invitations of an address. Without one it is
// dmarcd.ErrNotFound.
func (t *Team) WithdrawInvitation(ctx context.Context, email string) error {
	if err := t.may(dmarcd.RightManage); err != nil {
		return err
	}
	return t.team.WithdrawInvitation(ctx, email, t.actor.to("member.uninvite", email, ""))
}
