package backend

import (
	"context"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/web"
)

// Viewer implements web.Accounts.
func (b *Backend) Viewer(ctx context.Context, secret string) (web.Viewer, error) {
	session, err := b.options.Sessions.Resolve(ctx, secret)
	if err != nil {
		return web.Viewer{}, err
	}
	memberships, err := b.options.Store.Memberships(ctx, session.User.ID)
	if err != nil {
		return web.Viewer{}, err
	}
	if session.Team.ID == 0 {
		if err := b.chooseFirst(ctx, &session, memberships); err != nil {
			return web.Viewer{}, err
		}
	}
	user := session.User
	viewer := web.Viewer{
		ID: user.ID.String(), Name: user.Name, Email: user.Email, Operator: user.Operator,
		Role: string(session.Role), Access: accessOf(session.Role),
	}
	if viewer.Name == "" {
		viewer.Name = user.Email
	}
	for _, m := range memberships {
		viewer.Teams = append(viewer.Teams, teamChoice(m.Team))
	}
	if session.Team.ID == 0 {
		return viewer, nil
	}
	viewer.Team = teamChoice(session.Team)
	if !slices.Contains(viewer.Teams, viewer.Team) { // an operator looks at it
		viewer.Teams = append(viewer.Teams, viewer.Team)
	}
	return viewer, nil
}

func teamChoice(team dmarcd.Team) web.TeamChoice {
	return web.TeamChoice{ID: team.ID.String(), Name: team.Name}
}

func accessOf(role dmarcd.Role) web.Access {
	switch {
	case role.Can(dmarcd.RightManage):
		return web.AccessOwn
	case role.Can(dmarcd.RightChange):
		return web.AccessEdit
	case role.Can(dmarcd.RightSee):
		return web.AccessView
	}
	return 0
}

// chooseFirst has somebody who looks at no team, because they were taken out of it
// or are an operator, look at the first that they may see.
func (b *Backend) chooseFirst(ctx context.Context, session *dmarcd.Session, memberships []dmarcd.Membership) error {
	var first dmarcd.Membership
	switch {
	case len(memberships) > 0:
		first = memberships[0]
	case session.User.Operator:
		teams, err := b.options.Store.Teams(ctx)
		if err != nil || len(teams) == 0 {
			return err
		}
		first = dmarcd.Membership{Team: teams[0]}
	default:
		return nil
	}
	if session.User.Operator {
		first.Role = dmarcd.RoleOwner
	}
	if err := b.options.Store.SelectTeam(ctx, session.Hash, first.Team.ID); err != nil {
		return err
	}
	session.Team, session.Role = first.Team, first.Role
	return nil
}

// SignIn implements web.Accounts.
func (b *Backend) SignIn(ctx context.Context, attempt web.SignInAttempt) (string, error) {
	user, err := b.options.Passwords.User(ctx, attempt.Email, attempt.Password, attempt.Browser.Address)
	if err != nil {
		return "", err
	}
	return b.begin(ctx, user, attempt.Browser)
}

// begin signs a user in on a browser.
func (b *Backend) begin(ctx context.Context, user dmarcd.UserID, browser web.Browser) (string, error) {
	client := auth.Client{Address: browser.Address, UserAgent: browser.UserAgent}
	return b.options.Sessions.Begin(ctx, user, client, browser.Session)
}

// SignOut implements web.Accounts.
func (b *Backend) SignOut(ctx context.Context, secret string) error {
	return b.options.Sessions.End(ctx, secret)
}

// ChooseTeam implements web.Accounts.
func (b *Backend) ChooseTeam(ctx context.Context, secret, team string) error {
	id, err := dmarcd.ParseTeamID(team)
	if err != nil {
		return dmarcd.ErrNotFound
	}
	session, err := b.options.Sessions.Resolve(ctx, secret)
	if err != nil {
		return err
	}
	return b.options.Store.SelectTeam(ctx, session.Hash, id)
}
