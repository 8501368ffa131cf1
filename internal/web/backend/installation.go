package backend

import (
	"context"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/web"
)

// Installation returns what an operator may ask. That the viewer is one is for the
// caller to see to.
func (b *Backend) Installation(viewer web.Viewer) web.Installation {
	return installation{Backend: b, journal: b.journalOf(viewer), store: b.options.Store}
}

type installation struct {
	*Backend
	journal
	store *store.Store
}

// note writes into the audit log of the installation.
func (i installation) note(ctx context.Context, action, target, detail string) {
	i.write(ctx, i.store, action, target, detail)
}

// recentDays is over how many days the messages of teams are counted.
const recentDays = 30

func (i installation) Teams(ctx context.Context) ([]web.TeamRow, error) {
	today := dmarcd.DayOf(i.options.Now())
	sizes, err := i.store.TeamSizes(ctx, daysOf(web.Period{From: today - recentDays + 1, To: today}))
	rows := make([]web.TeamRow, len(sizes))
	for n, size := range sizes {
		rows[n] = web.TeamRow{
			ID: size.ID.String(), Name: size.Name, API: size.API, Domains: size.Domains, Members: size.Members,
			Messages: size.Messages, Stored: size.Stored, StoredQuota: size.StoredQuota, CreatedAt: size.CreatedAt,
		}
	}
	return rows, err
}

func (i installation) CreateTeam(ctx context.Context, name string, api bool) error {
	team, err := i.store.CreateTeam(ctx, name, api)
	if err != nil {
		return err
	}
	i.note(ctx, "team.create", team.Name, "")
	return nil
}

func (i installation) SetAPI(ctx context.Context, team string, allowed bool) error {
	id, err := dmarcd.ParseTeamID(team)
	if err != nil {
		return dmarcd.ErrNotFound
	}
	known, err := i.store.TeamByID(ctx, id)
	if err != nil {
		return err
	}
	if err := i.store.SetAPI(ctx, known.Name, allowed); err != nil {
		return err
	}
	action := "team.deny"
	if allowed {
		action = "team.allow"
	}
	i.note(ctx, action, known.Name, "")
	return nil
}

func (i installation) Users(ctx context.Context) ([]web.UserRow, error) {
	users, err := i.store.Users(ctx)
	if err != nil {
		return nil, err
	}
	teams, err := i.store.AllMemberships(ctx)
	if err != nil {
		return nil, err
	}
	rows := make([]web.UserRow, len(users))
	for n, user := range users {
		rows[n] = web.UserRow{
			ID: user.ID.String(), Name: user.Name, Email: user.Email, Operator: user.Operator,
			CreatedAt: user.CreatedAt, SignedInAt: user.SignedInAt,
		}
		for _, m := range teams[user.ID] {
			rows[n].Teams = append(rows[n].Teams, web.Fact{Name: m.Team.Name, Value: string(m.Role)})
		}
	}
	return rows, nil
}

func (i installation) RemoveUser(ctx context.Context, user string) error {
	id, err := dmarcd.ParseUserID(user)
	if err != nil {
		return dmarcd.ErrNotFound
	}
	if id == i.user {
		return &dmarcd.InvalidError{Field: "user", Message: "You cannot remove yourself: another operator can, or `dmarcd user remove`."}
	}
	users, err := i.store.Users(ctx)
	if err != nil {
		return err
	}
	ownerless, err := i.store.RemoveUser(ctx, id)
	if err != nil {
		return err
	}
	var email, detail string
	for _, known := range users {
		if known.ID == id {
			email = known.Email
		}
	}
	if len(ownerless) > 0 {
		detail = "left without an owner: " + strings.Join(ownerless, ", ")
	}
	i.note(ctx, "user.remove", email, detail)
	return nil
}
