package web

import (
	"cmp"
	"net/http"

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

// Access is what a user may do. Each level includes the previous ones.
type Access uint8

const (
	accessAnybody Access = iota
	// AccessView allows reading.
	AccessView
	// AccessEdit allows changes to domains and reports.
	AccessEdit
	// AccessOwn allows changes to the team itself: members, tokens, mailboxes,
	// retention.
	AccessOwn
	// accessOperate is for operators, independent of roles in teams.
	accessOperate
	// accessSignedIn is for all signed-in users, even without a team.
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

// sessionCookie stores the secret of a session.
const sessionCookie = "dmarcd_session"

// identify authenticates the user of a call, or returns dmarcd.ErrUnauthorized.
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

// setSession sets the session cookie, or clears it if secret is "". It is Lax, not
// Strict, so that links in mail work for signed-in users.
func (s *Web) setSession(c *call, secret string) {
	s.setCookie(c, sessionCookie, secret)
}

// setCookie sets a session cookie that scripts cannot read, or clears it if value is "".
func (s *Web) setCookie(c *call, name, value string) {
	maxAge := 0
	if value == "" {
		maxAge = -1
	}
	path := Prefix + "/"
	if s.options.SecureCookies {
		path = "/" // the prefix requires it
	}
	http.SetCookie(c.w, &http.Cookie{ //nolint:gosec // Secure depends on the installation
		Name: s.cookieName(name), Value: value, Path: path, MaxAge: maxAge,
		HttpOnly: true, Secure: s.options.SecureCookies, SameSite: http.SameSiteLaxMode,
	})
}

// cookie returns the value of a cookie of setCookie, or "".
func (c *call) cookie(name string) string {
	cookie, err := c.r.Cookie(c.web.cookieName(name))
	if err != nil {
		return ""
	}
	return cookie.Value
}

// cookieName returns the name of a cookie. With https, the prefix keeps other hosts of the same
// domain from setting it, for example to have a user work in the account of an attacker.
func (s *Web) cookieName(name string) string {
	if s.options.SecureCookies {
		return "__Host-" + name
	}
	return name
}
