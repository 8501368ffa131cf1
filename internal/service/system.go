package service

import (
	"context"
	"errors"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/store"
)

// Teams returns all teams by name.
func (s *System) Teams(ctx context.Context) ([]dmarcd.Team, error) {
	return operate(s, func() ([]dmarcd.Team, error) { return s.store.Teams(ctx) })
}

// TeamByID returns a team.
func (s *System) TeamByID(ctx context.Context, id dmarcd.TeamID) (dmarcd.Team, error) {
	return operate(s, func() (dmarcd.Team, error) { return s.store.TeamByID(ctx, id) })
}

// TeamByName returns a team.
func (s *System) TeamByName(ctx context.Context, name string) (dmarcd.Team, error) {
	return operate(s, func() (dmarcd.Team, error) { return s.store.TeamByName(ctx, name) })
}

// TeamOfToken returns the team of a token.
func (s *System) TeamOfToken(ctx context.Context, id dmarcd.TokenID) (dmarcd.TeamID, error) {
	return operate(s, func() (dmarcd.TeamID, error) { return s.store.TeamOfToken(ctx, id) })
}

// TeamOfMailbox returns the team of a mailbox.
func (s *System) TeamOfMailbox(ctx context.Context, id dmarcd.MailboxID) (dmarcd.TeamID, error) {
	return operate(s, func() (dmarcd.TeamID, error) { return s.store.TeamOfMailbox(ctx, id) })
}

// TeamSize is a team with its usage.
type TeamSize = store.TeamSize

// TeamSizes returns all teams with their usage, and the messages of some days.
func (s *System) TeamSizes(ctx context.Context, days dmarcd.Days) ([]TeamSize, error) {
	return operate(s, func() ([]TeamSize, error) { return s.store.TeamSizes(ctx, days) })
}

// Users returns all users by their addresses.
func (s *System) Users(ctx context.Context) ([]dmarcd.User, error) {
	return operate(s, func() ([]dmarcd.User, error) { return s.store.Users(ctx) })
}

// UserByEmail returns a user; email is as from dmarcd.ParseEmail.
func (s *System) UserByEmail(ctx context.Context, email string) (dmarcd.User, error) {
	return operate(s, func() (dmarcd.User, error) { return s.store.UserByEmail(ctx, email) })
}

// AllMemberships returns the teams of each user.
func (s *System) AllMemberships(ctx context.Context) (map[dmarcd.UserID][]dmarcd.Membership, error) {
	return operate(s, func() (map[dmarcd.UserID][]dmarcd.Membership, error) { return s.store.AllMemberships(ctx) })
}

// Audit returns up to limit audit entries of the installation and all teams, newest first,
// older than the cursor.
func (s *System) Audit(ctx context.Context, before Cursor, limit int) ([]dmarcd.AuditEntry, error) {
	return operate(s, func() ([]dmarcd.AuditEntry, error) { return s.store.Audit(ctx, store.AuditFilter{}, before, limit) })
}

// Backup writes a snapshot of an SQLite database to a new file.
func (s *System) Backup(ctx context.Context, file string) error {
	if err := s.may(); err != nil {
		return err
	}
	// No audit entry: a backup beside a busy daemon would wait for its writes. It changes nothing.
	return s.service.store.Backup(ctx, file)
}

// ZoneState is the zone of managed records.
type ZoneState = store.ZoneState

// ZoneState returns the zone as the database has it. Without one it is dmarcd.ErrNotFound.
func (s *System) ZoneState(ctx context.Context) (ZoneState, error) {
	return operate(s, func() (ZoneState, error) { return s.store.ZoneState(ctx) })
}

// DropOrphans removes the records of names in the zone that the database did not have when it was
// restored, and returns how many there were.
func (s *System) DropOrphans(ctx context.Context) (int64, error) {
	return operate(s, func() (int64, error) { return s.store.DropOrphans(ctx, s.actor.to("zone.drop", "", "")) })
}

// CreateTeam creates a team. An existing name is dmarcd.ErrConflict.
func (s *System) CreateTeam(ctx context.Context, name string, api bool) (dmarcd.Team, error) {
	return operate(s, func() (dmarcd.Team, error) {
		return s.store.CreateTeam(ctx, name, api, s.actor.to("team.create", "", ""))
	})
}

// SetAPI adds a team to the API whitelist or removes it.
func (s *System) SetAPI(ctx context.Context, name string, allowed bool) error {
	if err := s.may(); err != nil {
		return err
	}
	action := "team.deny"
	if allowed {
		action = "team.allow"
	}
	return s.store.SetAPI(ctx, name, allowed, s.actor.to(action, name, ""))
}

// SetQuotas sets quotas of a team, all or none: 0 is unlimited, dmarcd.QuotaDefault the
// default of the installation.
func (s *System) SetQuotas(ctx context.Context, team dmarcd.Team, quota dmarcd.Quota) error {
	if err := s.may(); err != nil {
		return err
	}
	var set []string
	for _, name := range dmarcd.QuotaNames() {
		if amount, given := quota[name]; given {
			set = append(set, quotaText(name, amount))
		}
	}
	if len(set) == 0 {
		return nil
	}
	return s.store.Team(team.ID).SetQuotas(ctx, quota, s.actor.to("team.quota", team.Name, strings.Join(set, " ")))
}

// quotaText is the inverse of dmarcd.ParseQuota.
func quotaText(name dmarcd.QuotaName, amount int64) string {
	value := name.Format(amount)
	switch amount {
	case 0:
		value = "none"
	case dmarcd.QuotaDefault:
		value = "default"
	}
	return string(name) + "=" + value
}

// RemoveUser removes a user and ends their sessions. It returns the teams left without an
// owner. Operators cannot remove themselves: an *dmarcd.InvalidError.
func (s *System) RemoveUser(ctx context.Context, user dmarcd.UserID) (ownerless []string, err error) {
	if err := s.may(); err != nil {
		return nil, err
	}
	if user == s.actor.entry.User {
		return nil, &dmarcd.InvalidError{Field: "user", Message: "You cannot remove yourself. Another operator can, or `dmarcd user remove`."}
	}
	return s.store.RemoveUser(ctx, user, s.actor.to("user.remove", "", ""))
}

// ErrNoRights means that the invited user would have no rights.
var ErrNoRights = &dmarcd.InvalidError{Field: "team", Message: "A new user needs a team, or must be an operator."}

// Invite invites a person: into a team, as an operator, or to choose another password. One
// who is new and would be able to do nothing is ErrNoRights. The invitation is sent by
// mail too if there is a relay.
func (s *System) Invite(ctx context.Context, invitation dmarcd.Invitation) (SentInvitation, error) {
	if err := s.may(); err != nil {
		return SentInvitation{}, err
	}
	if invitation.Team == 0 && !invitation.Operator {
		_, err := s.store.UserByEmail(ctx, invitation.Email)
		if errors.Is(err, dmarcd.ErrNotFound) {
			return SentInvitation{}, ErrNoRights
		}
		if err != nil {
			return SentInvitation{}, err
		}
	}
	secret, hash := auth.NewInvitation()
	link, err := auth.InvitationLink(s.service.options.BaseURL, secret)
	if err != nil {
		return SentInvitation{}, err
	}
	invitation.Mailed = s.service.options.Mail != nil && invitation.Email != ""
	invitation.ExpiresAt = s.service.options.Now().Add(dmarcd.InvitationLife)
	if err := s.store.CreateInvitation(ctx, hash, invitation, s.actor.to("user.invite", invitation.Email, string(invitation.Role))); err != nil {
		return SentInvitation{}, err
	}
	mailed, _ := s.service.mailInvitation(ctx, invitation.Email, invitation.Team, link) // the link is shown, too
	return SentInvitation{Link: link, Mailed: mailed}, nil
}
