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
	// ExpiresAt is when it ends; the zero value is never.
	ExpiresAt time.Time
}

// CreateToken makes a token, and returns its secret, which is never shown again.
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

// RevokeToken ends a token for good.
func (t *Team) RevokeToken(ctx context.Context, id dmarcd.TokenID) error {
	if err := t.may(dmarcd.RightManage); err != nil {
		return err
	}
	return t.team.RevokeToken(ctx, id, t.actor.to("token.revoke", id.String(), ""))
}

// SetRole gives a member another role. The last owner stays one: that is an
// *dmarcd.InvalidError.
func (t *Team) SetRole(ctx context.Context, user dmarcd.UserID, role dmarcd.Role) error {
	if err := t.may(dmarcd.RightManage); err != nil {
		return err
	}
	return t.team.SetRole(ctx, user, role, t.actor.to("member.role", "", string(role)))
}

// RemoveMember takes a member out of the team. The last owner stays: that is an
// *dmarcd.InvalidError.
func (t *Team) RemoveMember(ctx context.Context, user dmarcd.UserID) error {
	if err := t.may(dmarcd.RightManage); err != nil {
		return err
	}
	return t.team.RemoveMember(ctx, user, t.actor.to("member.remove", "", ""))
}

// InviteMember invites a person into the team, and returns a one-time link, which is
// never shown again.
func (t *Team) InviteMember(ctx context.Context, email string, role dmarcd.Role) (link string, err error) {
	if err := t.may(dmarcd.RightManage); err != nil {
		return "", err
	}
	if email, err = dmarcd.ParseEmail(email); err != nil {
		return "", err
	}
	secret, hash := auth.NewInvite()
	if link, err = auth.WelcomeLink(t.service.options.BaseURL, secret); err != nil {
		return "", err
	}
	err = t.team.Invite(ctx, hash, dmarcd.Invite{
		Email: email, Role: role, CreatedBy: t.actor.entry.User, ExpiresAt: t.service.options.Now().Add(dmarcd.InviteLife),
	}, t.actor.to("member.invite", email, string(role)))
	if err != nil {
		return "", err
	}
	return link, nil
}

// WithdrawInvite makes every open link for an address void. None is dmarcd.ErrNotFound.
func (t *Team) WithdrawInvite(ctx context.Context, email string) error {
	if err := t.may(dmarcd.RightManage); err != nil {
		return err
	}
	return t.team.CancelInvite(ctx, email, t.actor.to("member.uninvite", email, ""))
}
