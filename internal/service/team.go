package service

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/store"
)

// Self returns the team.
func (t *Team) Self(ctx context.Context) (dmarcd.Team, error) {
	return see(t, func() (dmarcd.Team, error) { return t.service.store.TeamByID(ctx, t.team.ID()) })
}

// Delete deletes the team with everything that it has, for good. name is its name, as a confirmation;
// another one is an *dmarcd.InvalidError. No token may.
func (t *Team) Delete(ctx context.Context, name string) error {
	team, err := t.whole(ctx)
	if err != nil {
		return err
	}
	if name != team.Name {
		return &dmarcd.InvalidError{Field: "confirm", Message: "The name does not match. Enter the name of the team to delete it."}
	}
	return t.team.Delete(ctx, t.actor.to("team.delete", team.ID.String(), ""))
}

// whole returns the team for a use case about all of it, which needs an owner who is no token.
func (t *Team) whole(ctx context.Context) (dmarcd.Team, error) {
	if err := t.may(dmarcd.RightManage); err != nil {
		return dmarcd.Team{}, err
	}
	if t.actor.token {
		return dmarcd.Team{}, dmarcd.ErrForbidden
	}
	return t.service.store.TeamByID(ctx, t.team.ID())
}

// NewToken describes the token to create.
type NewToken struct {
	// Name is what the token is for, or "".
	Name  string
	Scope dmarcd.Scope
	// ExpiresAt is the end of the token; zero is never.
	ExpiresAt time.Time
	// Networks are where the token may be used from; nil is everywhere.
	Networks []netip.Prefix
}

// CreateToken creates a token, and returns it with its secret, which is not shown again. A token
// creates none that grants more than it has.
func (t *Team) CreateToken(ctx context.Context, wanted NewToken) (created dmarcd.Token, secret string, err error) {
	if err := t.may(dmarcd.RightManage); err != nil {
		return dmarcd.Token{}, "", err
	}
	if !wanted.ExpiresAt.IsZero() && !wanted.ExpiresAt.After(t.service.options.Now()) {
		return dmarcd.Token{}, "", &dmarcd.InvalidError{Field: "expires_at", Message: "A token must expire in the future."}
	}
	secret = auth.NewToken()
	created, err = t.team.CreateToken(ctx, store.NewToken{
		Name: wanted.Name, Scope: wanted.Scope, ExpiresAt: wanted.ExpiresAt, Networks: wanted.Networks, Hash: auth.HashToken(secret), CreatedBy: t.actor.entry.User,
	}, t.actor.to("token.create", "", strings.Join(append([]string{wanted.Name, string(wanted.Scope)}, dmarcd.NetworkTexts(wanted.Networks)...), ", ")))
	if err != nil {
		return dmarcd.Token{}, "", err
	}
	return created, secret, nil
}

// RevokeToken revokes a token, with those that it created.
func (t *Team) RevokeToken(ctx context.Context, id dmarcd.TokenID) error {
	if err := t.may(dmarcd.RightManage); err != nil {
		return err
	}
	return t.team.RevokeToken(ctx, id, t.actor.to("token.revoke", id.String(), ""))
}

// grantRole returns an *dmarcd.InvalidError for a role that the actor may not give: a token makes no
// owner.
func (t *Team) grantRole(role dmarcd.Role) error {
	if t.actor.token && role == dmarcd.RoleOwner {
		return &dmarcd.InvalidError{Field: "role", Message: "A token makes no owner. An owner can do that on the page Members."}
	}
	return nil
}

// SetRole changes the role of a member. The last owner is an *dmarcd.InvalidError.
func (t *Team) SetRole(ctx context.Context, user dmarcd.UserID, role dmarcd.Role) error {
	if err := t.may(dmarcd.RightManage); err != nil {
		return err
	}
	if err := t.grantRole(role); err != nil {
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
	// Mailed is true if it was sent by mail.
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
	if err := t.grantRole(role); err != nil {
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
		Email: email, Role: role, CreatedBy: t.actor.entry.User, Token: t.actor.grant.Token, Mailed: t.service.options.Mail != nil, ExpiresAt: t.service.options.Now().Add(dmarcd.InvitationLife),
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

// Retention is in days; 0 means forever.
type Retention struct{ Counters, Records, Originals int }

const day = 24 * time.Hour

// Retention returns the effective retention of the team.
func (t *Team) Retention(ctx context.Context) (Retention, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return Retention{}, err
	}
	own, err := t.team.Retention(ctx)
	retention := own.Or(t.service.options.Retention)
	return Retention{Counters: wholeDays(retention.Counters), Records: wholeDays(retention.Records), Originals: wholeDays(retention.Originals)}, err
}

// wholeDays rounds up, so that an hour does not become 0, which means forever.
func wholeDays(d time.Duration) int { return int((d + day - 1) / day) }

// Quota returns the quotas and the usage of the team.
func (t *Team) Quota(ctx context.Context) (quota dmarcd.Quota, used dmarcd.Usage, err error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, nil, err
	}
	if quota, err = t.team.Quota(ctx); err != nil {
		return nil, nil, err
	}
	used, err = t.team.Usage(ctx)
	return quota, used, err
}

// maxRetention limits a number of days: a century.
const maxRetention = 36525

// SetRetention sets the retention of the team.
func (t *Team) SetRetention(ctx context.Context, retention Retention) error {
	if err := t.may(dmarcd.RightManage); err != nil {
		return err
	}
	for _, field := range []struct {
		name string
		days int
	}{{"counters", retention.Counters}, {"records", retention.Records}, {"originals", retention.Originals}} {
		if field.days < 0 || field.days > maxRetention {
			return &dmarcd.InvalidError{Field: field.name, Message: "Enter a number of days from 1 to 36,525, or 0 for no limit."}
		}
	}
	if retention.Counters != 0 && (retention.Records == 0 || retention.Records > retention.Counters) {
		return &dmarcd.InvalidError{Field: "counters", Message: "Daily totals must be stored at least as long as the records."}
	}
	return t.team.SetRetention(ctx, store.Retention{
		Counters: time.Duration(retention.Counters) * day, Records: time.Duration(retention.Records) * day,
		Originals: time.Duration(retention.Originals) * day,
	}, t.actor.to("retention.set", "", fmt.Sprintf("counters %d days, records %d, originals %d; 0 means forever", retention.Counters, retention.Records, retention.Originals)))
}
