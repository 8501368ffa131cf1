package dmarcd

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// DefaultTeam is the name of the team created at the first start.
const DefaultTeam = "default"

// maxTeamName is in characters.
const maxTeamName = 100

// Team is a tenant. It owns domains, tokens and all their data.
type Team struct {
	ID   TeamID
	Name string
	// API is true if the team may use the API.
	API bool
	// SecondFactor is true if members need a second factor.
	SecondFactor bool
	// Approval is true if another user has to approve what is published for managed records.
	Approval  bool
	CreatedAt time.Time
}

// ParseTeamName trims the name. It returns an InvalidError if the name is empty, longer
// than 100 characters or not printable.
func ParseTeamName(s string) (string, error) {
	name := strings.TrimSpace(s)
	if name == "" || utf8.RuneCountInString(name) > maxTeamName || !utf8.ValidString(name) ||
		strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", &InvalidError{Field: "name", Message: "The name of a team must have 1 to 100 printable characters."}
	}
	return name, nil
}

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

// TeamRole is a role in the team with a name.
type TeamRole struct {
	Team string
	Role Role
}

// teamRole matches what ParseTeamRole parses.
var teamRole = regexp.MustCompile(`^(.+)=(owner|editor|viewer):(.+)$`)

// ParseTeamRole parses NAME=ROLE:TEAM, such as staff=viewer:acme, what the group or domain NAME grants.
func ParseTeamRole(s string) (name string, grants TeamRole, err error) {
	parts := teamRole.FindStringSubmatch(s)
	if parts == nil {
		return "", TeamRole{}, &InvalidError{Message: "A role in a team looks like staff=viewer:acme; the roles are owner, editor and viewer."}
	}
	return parts[1], TeamRole{Team: parts[3], Role: Role(parts[2])}, nil
}

// Invitation is a link that can be used once to create a user, join a team or both. Only
// the hash of its secret is stored.
type Invitation struct {
	// Email is the address of the invited person; "" lets them choose it.
	Email string
	// Team is the team to join with Role; 0 if the invitation is not for a team.
	Team TeamID
	Role Role
	// Operator is true if the person becomes an operator.
	Operator bool
	// CreatedBy is the member who created it, Token the token that did; without both it is from the
	// command line or the first start. See FromTeam.
	CreatedBy UserID
	Token     TokenID
	// Mailed is true if the link is mailed to Email: using it proves the address.
	Mailed    bool
	ExpiresAt time.Time
	UsedAt    time.Time // zero: not yet
}

// FromTeam reports whether a member or a token of the team created the invitation. Only others sign in
// to existing users: a member must not get access to another account by inviting its owner.
func (i Invitation) FromTeam() bool { return i.CreatedBy != 0 || i.Token != 0 }

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

// Scope is the permission of a token.
type Scope string

const (
	// ScopeRead allows reading.
	ScopeRead Scope = "read"
	// ScopeWrite allows reading and writing.
	ScopeWrite Scope = "write"
	// ScopeAdmin allows what an owner may, except making owners and publishing managed records.
	ScopeAdmin Scope = "admin"
	// ScopePublish allows reading, and publishing managed records.
	ScopePublish Scope = "publish"
)

// Scopes returns all scopes, in the order of lists.
func Scopes() []Scope { return []Scope{ScopeRead, ScopeWrite, ScopeAdmin, ScopePublish} }

// Includes reports whether a token of this scope may do what needs the other one.
func (s Scope) Includes(other Scope) bool { return slices.Contains(s.All(), other) }

// All returns the scopes that it includes, itself last.
func (s Scope) All() []Scope {
	if s == ScopePublish {
		return []Scope{ScopeRead, ScopePublish}
	}
	return Scopes()[:slices.Index(Scopes(), s)+1]
}

// ParseScope returns the scope named s, or an InvalidError.
func ParseScope(s string) (Scope, error) {
	if slices.Contains(Scopes(), Scope(s)) {
		return Scope(s), nil
	}
	return "", &InvalidError{Field: "scope", Message: "The scope must be read, write, admin or publish."}
}

// Token is the metadata of a bearer token. Only the hash of its secret is stored.
type Token struct {
	ID        TokenID
	Team      TeamID
	Name      string
	Scope     Scope
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
	UsedAt    time.Time // with a resolution of one minute; zero: not yet
	RevokedAt time.Time // zero: not revoked
	// Networks are where the token may be used from; nil is everywhere. UsedFrom is the address of
	// its last use, "" if there is none.
	Networks []netip.Prefix
	UsedFrom string
	// CreatedBy is the email address of the user who created it, or whose token did; "" for the command
	// line, and when the user is gone. Ownerless means that this user is no longer a member.
	CreatedBy string
	Ownerless bool
}

// maxTokenNetworks limits the networks of a token.
const maxTokenNetworks = 20

// ParseTokenNetworks returns the networks that a token may be used from. An *InvalidError names one
// that is none.
func ParseTokenNetworks(list []string) ([]netip.Prefix, error) {
	if len(list) > maxTokenNetworks {
		return nil, &InvalidError{Field: "networks", Message: fmt.Sprintf("A token has at most %d networks.", maxTokenNetworks)}
	}
	var networks []netip.Prefix
	for _, written := range list {
		network, ok := parseNetwork(written)
		if !ok {
			return nil, &InvalidError{Field: "networks", Message: fmt.Sprintf("%q is neither an address nor a network such as 192.0.2.0/24 or 2001:db8::/32.", written)}
		}
		networks = append(networks, network)
	}
	slices.SortFunc(networks, netip.Prefix.Compare)
	return slices.Compact(networks), nil
}

// NetworkTexts returns networks as texts; nil for nil.
func NetworkTexts(networks []netip.Prefix) (texts []string) {
	for _, network := range networks {
		texts = append(texts, network.String())
	}
	return texts
}

// MayComeFrom reports whether the token may be used from an address.
func (t Token) MayComeFrom(address string) bool {
	if t.Networks == nil {
		return true
	}
	from, err := netip.ParseAddr(address)
	return err == nil && slices.ContainsFunc(t.Networks, func(n netip.Prefix) bool { return n.Contains(from.Unmap()) })
}

// Within reports whether the token may be used only where the other one may.
func (t Token) Within(other Token) bool {
	if other.Networks == nil {
		return true
	}
	return t.Networks != nil && !slices.ContainsFunc(t.Networks, func(n netip.Prefix) bool {
		return !slices.ContainsFunc(other.Networks, func(o netip.Prefix) bool { return o.Bits() <= n.Bits() && o.Contains(n.Addr()) })
	})
}

// Valid reports whether the token is valid at the given time.
func (t Token) Valid(now time.Time) bool {
	return t.RevokedAt.IsZero() && (t.ExpiresAt.IsZero() || now.Before(t.ExpiresAt))
}

// May reports whether the token's scope includes the wanted one.
func (t Token) May(want Scope) bool { return t.Scope.Includes(want) }

// Credential is the result of resolving a bearer token.
type Credential struct {
	Token Token
	// API is true if the token's team may use the API.
	API bool
}

// AuditEntry is a recorded change: who, what, when and from where.
type AuditEntry struct {
	ID AuditID
	At time.Time
	// Team is the team whose data was changed; 0 is the installation.
	Team TeamID
	// User is the acting user; 0 if it was not a user.
	User UserID
	// Actor identifies who did it, even after the user is deleted: an email address,
	// "token tok_…" or "command line".
	Actor string
	// Action is what was done, a noun and a verb: "domain.delete".
	Action string
	// Target is the changed object, Detail additional information; both may be "".
	Target, Detail string
	// Address is the client address; "" for the local machine.
	Address string
}
