package dmarcd

import "time"

// Role is what a user is in a team.
type Role string

// The roles, from the one that may most.
const (
	RoleOwner  Role = "owner"
	RoleEditor Role = "editor"
	RoleViewer Role = "viewer"
)

// ParseRole returns the role named s, or an InvalidError.
func ParseRole(s string) (Role, error) {
	switch role := Role(s); role {
	case RoleOwner, RoleEditor, RoleViewer:
		return role, nil
	}
	return "", &InvalidError{Field: "role", Message: "The role must be owner, editor or viewer."}
}

// Right is something that a role allows.
type Right int

const (
	// RightSee allows looking at everything of a team but its secrets.
	RightSee Right = iota + 1
	// RightChange allows adding and changing domains, and sending in reports.
	RightChange
	// RightManage allows deciding who has access, what this server connects to and
	// what goes for good: members, tokens, mailboxes, retention, the deletion of
	// domains.
	RightManage
)

// Can reports whether the role allows it. No role, "", allows nothing.
func (r Role) Can(right Right) bool { return right > 0 && right <= r.rights() }

// rights is the greatest right of a role: each includes those below it.
func (r Role) rights() Right {
	switch r {
	case RoleOwner:
		return RightManage
	case RoleEditor:
		return RightChange
	case RoleViewer:
		return RightSee
	}
	return 0
}

// Greater returns the role of the two that may more.
func (r Role) Greater(other Role) Role {
	if other.rights() > r.rights() {
		return other
	}
	return r
}

// Member is a user in one team.
type Member struct {
	User     User
	Role     Role
	JoinedAt time.Time
}

// Membership is a team as one of its members sees it.
type Membership struct {
	Team Team
	Role Role
}

// Invite is a link that lets a person in once, as a user, as a member of a team
// or both. The secret in the link is not known: only its hash is kept.
type Invite struct {
	// Email is whom it is for; "" lets the person say who they are.
	Email string
	// Team is the team that the person joins, with Role; 0 is none.
	Team TeamID
	Role Role
	// Operator tells that the person becomes an operator.
	Operator bool
	// CreatedBy is the member who invited; 0 is the command line or the first
	// start. Only those links sign in to a user that exists: a member must not
	// get into another's account by inviting them.
	CreatedBy UserID
	ExpiresAt time.Time
	UsedAt    time.Time // zero: not yet
}

// InviteLife is how long an invite can be used.
const InviteLife = 7 * 24 * time.Hour

// Valid reports whether the invite may be used at that moment.
func (i Invite) Valid(now time.Time) bool {
	return i.UsedAt.IsZero() && now.Before(i.ExpiresAt)
}

// Claim is who uses an invite, and with what.
type Claim struct {
	// User is who is signed in already; 0 is nobody.
	User UserID
	// Email counts where the invite names nobody.
	Email string
	Name  string
	// PasswordHash is the new password's; "" leaves the user's as it is.
	PasswordHash string
}
