package backend

import (
	"context"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web"
)

// Installation returns what an operator may ask. That the viewer is one is for the
// caller to see to.
func (b *Backend) Installation(viewer web.Viewer) web.Installation {
	who := b.journalOf(viewer)
	return installation{
		Backend: b,
		system:  b.options.Service.System(service.User(who.user, who.actor, "", viewer.Operator, who.address)),
	}
}

type installation struct {
	*Backend
	system *service.System
}

// recentDays is over how many days the messages of teams are counted.
const recentDays = 30

func (i installation) Teams(ctx context.Context) ([]web.TeamRow, error) {
	today := dmarcd.DayOf(i.options.Now())
	sizes, err := i.system.TeamSizes(ctx, daysOf(web.Period{From: today - recentDays + 1, To: today}))
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
	_, err := i.system.CreateTeam(ctx, name, api)
	return err
}

func (i installation) SetAPI(ctx context.Context, team string, allowed bool) error {
	id, err := dmarcd.ParseTeamID(team)
	if err != nil {
		return dmarcd.ErrNotFound
	}
	known, err := i.system.TeamByID(ctx, id)
	if err != nil {
		return err
	}
	return i.system.SetAPI(ctx, known.Name, allowed)
}

func (i installation) Users(ctx context.Context) ([]web.UserRow, error) {
	users, err := i.system.Users(ctx)
	if err != nil {
		return nil, err
	}
	teams, err := i.system.AllMemberships(ctx)
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
	_, err = i.system.RemoveUser(ctx, id)
	return err
}
