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
	if err := s.may(); err != nil {
		return nil, err
	}
	return s.service.store.Teams(ctx)
}

// TeamByID returns a team.
func (s *System) TeamByID(ctx context.Context, id dmarcd.TeamID) (dmarcd.Team, error) {
	if err := s.may(); err != nil {
		return dmarcd.Team{}, err
	}
	return s.service.store.TeamByID(ctx, id)
}

// TeamByName returns a team.
func (s *System) TeamByName(ctx context.Context, name string) (dmarcd.Team, error) {
	if err := s.may(); err != nil {
		return dmarcd.Team{}, err
	}
	return s.service.store.TeamByName(ctx, name)
}

// TeamOfToken returns the team of a token.
func (s *System) TeamOfToken(ctx context.Context, id dmarcd.TokenID) (dmarcd.TeamID, error) {
	if err := s.may(); err != nil {
		return 0, err
	}
	return s.service.store.TeamOfToken(ctx, id)
}

// TeamOfMailbox returns the team of a mailbox.
func (s *System) TeamOfMailbox(ctx context.Context, id dmarcd.MailboxID) (dmarcd.TeamID, error) {
	if err := s.may(); err != nil {
		return 0, err
	}
	return s.service.store.TeamOfMailbox(ctx, id)
}

// TeamSize is a team with what it has.
type TeamSize = store.TeamSize

// TeamSizes returns all teams with what they have, and the messages of some days.
func (s *System) TeamSizes(ctx context.Context, days dmarcd.Days) ([]TeamSize, error) {
	if err := s.may(); err != nil {
		return nil, err
	}
	return s.service.store.TeamSizes(ctx, days)
}

// Users returns all users by their addresses.
func (s *System) Users(ctx context.Context) ([]dmarcd.User, error) {
	if err := s.may(); err != nil {
		return nil, err
	}
	return s.service.store.Users(ctx)
}

// UserByEmail returns the user with an address that is as dmarcd.ParseEmail returns it.
func (s *System) UserByEmail(ctx context.Context, email string) (dmarcd.User, error) {
	if err := s.may(); err != nil {
		return dmarcd.User{}, err
	}
	return s.service.store.UserByEmail(ctx, email)
}

// AllMemberships returns the teams of each user.
func (s *System) AllMemberships(ctx context.Context) (map[dmarcd.UserID][]dmarcd.Membership, error) {
	if err := s.may(); err != nil {
		return nil, err
	}
	return s.service.store.AllMemberships(ctx)
}

// Audit returns up to limit entries of the audit logs of the installation and of all
// teams, the latest first, older than the cursor.
func (s *System) Audit(ctx context.Context, before Cursor, limit int) ([]dmarcd.AuditEntry, error) {
	if err := s.may(); err != nil {
		return nil, err
	}
	return s.service.store.Audit(ctx, store.AuditFilter{}, before, limit)
}

// Backup writes the whole database, as it is at one moment, into a new SQLite file. Where
// progress is not nil, it is told now and then how many rows are written.
func (s *System) Backup(ctx context.Context, file string, progress func(rows int)) error {
	if err := s.may(); err != nil {
		return err
	}
	return s.service.store.Backup(ctx, file, progress)
}

// CreateTeam makes a team, on the API whitelist or not. A name that is taken is
// dmarcd.ErrConflict.
func (s *System) CreateTeam(ctx context.Context, name string, api bool) (dmarcd.Team, error) {
	if err := s.may(); err != nil {
		return dmarcd.Team{}, err
	}
	return s.service.store.CreateTeam(ctx, name, api, s.actor.to("team.create", "", ""))
}

// SetAPI puts the team with that name on the API whitelist or takes it off.
func (s *System) SetAPI(ctx context.Context, name string, allowed bool) error {
	if err := s.may(); err != nil {
		return err
	}
	action := "team.deny"
	if allowed {
		action = "team.allow"
	}
	return s.service.store.SetAPI(ctx, name, allowed, s.actor.to(action, name, ""))
}

// SetQuotas sets quotas of a team, all or none: 0 is any amount, dmarcd.QuotaDefault
// that of the installation.
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
	return s.service.store.Team(team.ID).SetQuotas(ctx, quota, s.actor.to("team.quota", team.Name, strings.Join(set, " ")))
}

// quotaText writes a quota as dmarcd.ParseQuota reads it.
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

// RemoveUser removes a user and ends their sessions. It returns the names of the teams
// that are left without an owner. Operators cannot remove themselves: that is an
// *dmarcd.InvalidError.
func (s *System) RemoveUser(ctx context.Context, user dmarcd.UserID) (ownerless []string, err error) {
	if err := s.may(); err != nil {
		return nil, err
	}
	if user == s.actor.entry.User {
		return nil, &dmarcd.InvalidError{Field: "user", Message: "You cannot remove yourself. Another operator can, or `dmarcd user remove`."}
	}
	return s.service.store.RemoveUser(ctx, user, s.actor.to("user.remove", "", ""))
}

// ErrNothingToDo means that an invited person would be able to do nothing.
var ErrNothingToDo = &dmarcd.InvalidError{Field: "team", Message: "A new user needs a team, or must be an operator."}

// Invite invites a person: into a team, as an operator, or to choose another password. One
// who is new and would be able to do nothing is ErrNothingToDo. It returns a one-time link,
// which is never shown again.
func (s *System) Invite(ctx context.Context, invite dmarcd.Invite) (link string, err error) {
	if err := s.may(); err != nil {
		return "", err
	}
	if invite.Team == 0 && !invite.Operator {
		_, err := s.service.store.UserByEmail(ctx, invite.Email)
		if errors.Is(err, dmarcd.ErrNotFound) {
			return "", ErrNothingToDo
		}
		if err != nil {
			return "", err
		}
	}
	secret, hash := auth.NewInvite()
	if link, err = auth.WelcomeLink(s.service.options.BaseURL, secret); err != nil {
		return "", err
	}
	invite.ExpiresAt = s.service.options.Now().Add(dmarcd.InviteLife)
	if err := s.service.store.CreateInvite(ctx, hash, invite, s.actor.to("user.invite", invite.Email, string(invite.Role))); err != nil {
		return "", err
	}
	return link, nil
}
