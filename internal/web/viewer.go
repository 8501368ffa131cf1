package web

import (
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/clientaddr"
)

// Viewer is who looks at the page, and for which team.
type Viewer struct {
	// ID names the user.
	ID string
	// Address is from where they look, for the audit log.
	Address string
	// Name is how the page calls the user: a name, or the e-mail address.
	Name string
	// Email is the address that the user signs in with.
	Email string
	// Team is the chosen team, the zero value for somebody in none; Teams are all
	// that the user belongs to, by name.
	Team  TeamChoice
	Teams []TeamChoice
	// Role is the role in Team, for people to read: owner, editor or viewer.
	Role string
	// Access is what the role allows.
	Access Access
	// Operator tells that the user sees the whole installation.
	Operator bool
}

// TeamChoice is a team that can be switched to.
type TeamChoice struct {
	ID   string
	Name string
}

// Access is how far somebody may go. Each level includes those before it.
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

func (v Viewer) may(access Access) bool {
	switch access {
	case accessOperate:
		return v.Operator
	case accessSignedIn:
		return true // nobody else is a Viewer
	}
	return v.Access >= access
}

// MayEdit reports whether the viewer may change domains and reports.
func (v Viewer) MayEdit() bool { return v.may(AccessEdit) }

// MayOwn reports whether the viewer may change the team itself.
func (v Viewer) MayOwn() bool { return v.may(AccessOwn) }

// sessionCookie holds the secret of a session. The prefix __Host- would forbid
// plain http, by which a first look at a new installation is had.
const sessionCookie = "dmarcd_session"

// identify finds the viewer of a call, or returns dmarcd.ErrUnauthorized.
func (s *Web) identify(c *call) error {
	if c.session = heldSession(c.r); c.session == "" {
		return dmarcd.ErrUnauthorized
	}
	var err error
	c.viewer, err = s.options.Accounts.Viewer(c.r.Context(), c.session)
	c.viewer.Address = clientaddr.Of(c.r)
	return err
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
// not Strict: whoever follows a link from a mail to a page is signed in there.
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
