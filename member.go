package dmarcd

import "time"

// Role is the role of a user in a team.
type Role string

// The roles, the most powerful first.
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

// Right is an action that a role permits.
type Right int

const (
	// RightSee allows reading everything of a team except secrets.
	RightSee Right = iota + 1
	// RightChange allows adding and changing domains, and uploading reports.
	RightChange
	// RightManage allows managing access, outgoing connections and permanent deletion:
	// members, tokens, mailboxes, retention, deletion of domains.
	RightManage
)

// Can reports whether the role permits it. The empty role permits nothing.
func (r Role) Can(right Right) bool { return right > 0 && right <= r.rights() }

// rights returns the highest right of a role, which includes the lower ones.
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

// Greater returns the more powerful role.
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

// Membership is a team from the point of view of a member.
type Membership struct {
	Team Team
	Role Role
}

// Invitation is a link that can be used once to create a user, join a team or both. Only
// the hash of its secret is stored.
type Invitation struct {
	// Email is the address of the invited person; "" lets them choose it.
	Email string
	// Team is the team to join with Role; 0 is none.
	Team TeamID
	Role Role
	// Operator is true if the person becomes an operator.
	Operator bool
	// CreatedBy is the member who created it; 0 is the command line or the first start.
	// Only the latter sign in to existing users: a member must not get access to another
	// account by inviting its owner.
	CreatedBy UserID
	ExpiresAt time.Time
	UsedAt    time.Time // zero: not yet
}

// InvitationLife is how long an invitation is valid.
const InvitationLife = 7 * 24 * time.Hour

// Valid reports whether the invitation is valid at the given time.
func (i Invitation) Valid(now time.Time) bool {
	return i.UsedAt.IsZero() && now.Before(i.ExpiresAt)
}

// Claim is the input for using an invitation.
type Claim struct {
	// User is the signed-in user; 0 if there is none.
	User UserID
	// Email is used if the invitation does not contain an address.
	Email string
	Name  string
	// PasswordHash is the hash of the new password; "" keeps the current one.
	PasswordHash string
}
