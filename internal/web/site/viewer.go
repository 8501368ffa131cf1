package site

import (
	"cmp"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
)

// Viewer is the user who views a page, with the selected team.
type Viewer struct {
	// Name is the display name: a name, or the email address.
	Name string
	// Email is the sign-in address.
	Email string
	// Team is the selected team, zero for a user without one; Teams are all teams of the
	// user, by name.
	Team  dmarcd.Team
	Teams []dmarcd.Team
	Role  dmarcd.Role
	// Access is derived from the role.
	Access Access
	// Operator means that the user sees the whole installation.
	Operator bool
}

func newViewer(account *service.Account) Viewer {
	return Viewer{
		Name: cmp.Or(account.User.Name, account.User.Email), Email: account.User.Email, Team: account.Team, Teams: account.Teams,
		Role: account.Role, Access: accessOf(account.Role), Operator: account.User.Operator,
	}
}

// Access is what a user may do. AccessView, AccessEdit and AccessOwn each include the previous one.
type Access uint8

const (
	// AccessPublic is for all clients, without a session.
	AccessPublic Access = iota
	// AccessView allows reading.
	AccessView
	// AccessEdit allows changes to domains and reports.
	AccessEdit
	// AccessOwn allows changes to the team itself: members, tokens, mailboxes,
	// retention.
	AccessOwn
	// AccessOperate is for operators, independent of roles in teams.
	AccessOperate
	// AccessSignedIn is for all signed-in users, even without a team.
	AccessSignedIn
)

func accessOf(role dmarcd.Role) Access {
	switch {
	case role.Can(dmarcd.RightManage):
		return AccessOwn
	case role.Can(dmarcd.RightChange):
		return AccessEdit
	case role.Can(dmarcd.RightSee):
		return AccessView
	}
	return 0
}

// May reports whether the viewer has the access that a route needs.
func (v Viewer) May(access Access) bool {
	switch access {
	case AccessOperate:
		return v.Operator
	case AccessSignedIn:
		return true // every Viewer is signed in
	}
	return v.Access >= access
}

// MayEdit reports whether the viewer may change domains and reports.
func (v Viewer) MayEdit() bool { return v.May(AccessEdit) }

// MayOwn reports whether the viewer may change the team itself.
func (v Viewer) MayOwn() bool { return v.May(AccessOwn) }

// maxSwitches is the number of teams up to which the menu has a button for each.
const maxSwitches = 5

// OtherTeams returns the teams that the viewer can switch to.
func (v Viewer) OtherTeams() []dmarcd.Team {
	return slices.DeleteFunc(slices.Clone(v.Teams), func(t dmarcd.Team) bool { return t.ID == v.Team.ID })
}

// ManyTeams reports whether the menu has a list instead of buttons.
func (v Viewer) ManyTeams() bool { return len(v.Teams) > maxSwitches }
