package web

import (
	"cmp"
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
)

// Viewer is the user who sees a page, with the team that they chose.
type Viewer struct {
	// Name is what the page calls the user: a name, or the email address.
	Name string
	// Email is the address that the user signs in with.
	Email string
	// Team is the chosen team, the zero value for a user in none; Teams are all that
	// the user can choose, by name.
	Team  dmarcd.Team
	Teams []dmarcd.Team
	// Role is the role in Team.
	Role dmarcd.Role
	// Access is what the role allows.
	Access Access
	// Operator tells that the user sees the whole installation.
	Operator bool
}

func newViewer(account *service.Account) Viewer {
	return Viewer{
		Name: cmp.Or(account.User.Name, account.User.Email), Email: account.User.Email, Team: account.Team, Teams: account.Teams,
		Role: account.Role, Access: accessOf(account.Role), Operator: account.User.Operator,
	}
}

// Access is what a user may do. Each level includes those before it.
type Access uint8

// The levels.
const (
	accessAnybody Access = iota
	// AccessView allows reading.
	AccessView
	// AccessEdit allows changes to domains and reports.
	AccessEdit
	// AccessOwn allows changes to the team itself: members, tokens, mailboxes,
	// retention.
	AccessOwn
	// accessOperate is the operator's and comes from no role in a team.
	accessOperate
	// accessSignedIn is everybody's who is signed in, in whatever team or none.
	accessSignedIn
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

func (v Viewer) may(access Access) bool {
	switch access {
	case accessOperate:
		return v.Operator
	case accessSignedIn:
		return true // every Viewer is signed in
	}
	return v.Access >= access
}

// MayEdit reports whether the viewer may change domains and reports.
func (v Viewer) MayEdit() bool { return v.may(AccessEdit) }

// MayOwn reports whether the viewer may change the team itself.
func (v Viewer) MayOwn() bool { return v.may(AccessOwn) }

// sessionCookie holds the secret of a session. The prefix __Host- would forbid
// plain http, which a new installation uses at first.
const sessionCookie = "dmarcd_session"

// identify finds the user of a call, or returns dmarcd.ErrUnauthorized.
func (s *Web) identify(c *call) error {
	client := c.client()
	if c.session = client.Session; c.session == "" {
		return dmarcd.ErrUnauthorized
	}
	account, err := s.options.Service.Account(c.r.Context(), client)
	if err != nil {
		return err
	}
	c.account, c.viewer, c.team, c.system = account, newViewer(account), account.InTeam(), account.System()
	if c.tag = askedTag(c.r.URL.Query().Get("tag")); c.tag != "" {
		c.team = c.team.Tagged(c.tag)
	}
	return nil
}

// heldSession returns the secret of the session that the browser has, or "".
func heldSession(r *http.Request) string {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// setSession hands out a session, or takes it back where secret is "". Lax and
// not Strict: a user who follows a link from a mail is signed in there.
func (s *Web) setSession(c *call, secret string) {
	s.setCookie(c, sessionCookie, secret)
}

// setCookie gives the browser something to keep until it closes, which no script
// can read, or takes it back where value is "".
func (s *Web) setCookie(c *call, name, value string) {
	maxAge := 0
	if value == "" {
		maxAge = -1
	}
	http.SetCookie(c.w, &http.Cookie{ //nolint:gosec // Secure is what the installation has
		Name: name, Value: value, Path: Prefix + "/", MaxAge: maxAge,
		HttpOnly: true, Secure: s.options.SecureCookies, SameSite: http.SameSiteLaxMode,
	})
}
