package wire

import (
	"github.com/dmarcd/dmarcd"
)

// Team is a team in an operator's list.
type Team struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	API       bool   `json:"api"`
	CreatedAt string `json:"created_at"`
}

// NewTeam returns the shape of a team.
func NewTeam(t dmarcd.Team) Team {
	return Team{ID: t.ID.String(), Name: t.Name, API: t.API, CreatedAt: Time(t.CreatedAt)}
}

// Me describes a token, its team and the server.
type Me struct {
	Team struct {
		ID        string `json:"id"`
		Name      string `json:"name"`
		CreatedAt string `json:"created_at"`
	} `json:"team"`
	Token  Token          `json:"token"`
	Scopes []dmarcd.Scope `json:"scopes"`
	// Quotas has every quota by its name.
	Quotas map[dmarcd.QuotaName]QuotaUse `json:"quotas"`
	Server struct {
		Version string `json:"version"`
	} `json:"server"`
}

// QuotaUse is a quota with its use.
type QuotaUse struct {
	Limit *int64 `json:"limit"` // null: unlimited
	Used  int64  `json:"used"`
}

// NewMe returns the shape of a token with its team, on a server of that version.
func NewMe(team dmarcd.Team, token dmarcd.Token, quota dmarcd.Quota, used dmarcd.Usage, version string) Me {
	me := Me{Token: NewToken(token), Scopes: token.Scope.All(), Quotas: map[dmarcd.QuotaName]QuotaUse{}}
	me.Team.ID, me.Team.Name, me.Team.CreatedAt = team.ID.String(), team.Name, Time(team.CreatedAt)
	me.Server.Version = version
	for _, name := range dmarcd.QuotaNames() {
		use := QuotaUse{Used: used[name]}
		if limit := quota[name]; limit > 0 {
			use.Limit = &limit
		}
		me.Quotas[name] = use
	}
	return me
}

// Token is a token in a list.
type Token struct {
	ID        string  `json:"id"`
	Name      Text    `json:"name"`
	Scope     string  `json:"scope"`
	CreatedAt string  `json:"created_at"`
	ExpiresAt *string `json:"expires_at"`
	UsedAt    *string `json:"used_at"`
	RevokedAt *string `json:"revoked_at"`
	// Networks are where it may be used from; null is everywhere.
	Networks []string `json:"networks"`
	UsedFrom *string  `json:"used_from"`
	// CreatedBy is null for the command line, and when the user is gone.
	CreatedBy *string `json:"created_by"`
	Ownerless bool    `json:"ownerless"`
}

// NewToken returns the shape of a token.
func NewToken(t dmarcd.Token) Token {
	return Token{
		ID: t.ID.String(), Name: Text(t.Name), Scope: string(t.Scope), CreatedAt: Time(t.CreatedAt),
		ExpiresAt: optionalTime(t.ExpiresAt), UsedAt: optionalTime(t.UsedAt), RevokedAt: optionalTime(t.RevokedAt),
		Networks: dmarcd.NetworkTexts(t.Networks), UsedFrom: optionalText(t.UsedFrom), CreatedBy: optionalText(t.CreatedBy), Ownerless: t.Ownerless,
	}
}

// TokenWithSecret is a token at the one time when its secret is shown.
type TokenWithSecret struct {
	Token

	Secret string `json:"secret"`
}

// NewTokenWithSecret returns the shape of a new token.
func NewTokenWithSecret(t dmarcd.Token, secret string) TokenWithSecret {
	return TokenWithSecret{Token: NewToken(t), Secret: secret}
}

// AuditEntry is an entry of the audit log.
type AuditEntry struct {
	ID      string  `json:"id"`
	At      string  `json:"at"`
	Actor   string  `json:"actor"`
	Action  string  `json:"action"`
	Target  *string `json:"target"`
	Detail  *string `json:"detail"`
	Address *string `json:"address"`
}

// NewAuditEntry returns the shape of an entry of the audit log.
func NewAuditEntry(e dmarcd.AuditEntry) AuditEntry {
	return AuditEntry{
		ID: e.ID.String(), At: Time(e.At), Actor: e.Actor, Action: e.Action,
		Target: optionalText(e.Target), Detail: optionalText(e.Detail), Address: optionalText(e.Address),
	}
}

// Retention is in days; 0 means forever.
type Retention struct {
	Counters  int `json:"counters"`
	Records   int `json:"records"`
	Originals int `json:"originals"`
}

// Member is a member of a team.
type Member struct {
	ID       string `json:"id"`
	Email    string `json:"email"`
	Name     Text   `json:"name"`
	Role     string `json:"role"`
	JoinedAt string `json:"joined_at"`
}

// NewMember returns the shape of a member.
func NewMember(m dmarcd.Member) Member {
	return Member{ID: m.User.ID.String(), Email: m.User.Email, Name: Text(m.User.Name), Role: string(m.Role), JoinedAt: Time(m.JoinedAt)}
}

// Invitation is an open invitation.
type Invitation struct {
	Email     *string `json:"email"` // null: anyone with the link
	Role      string  `json:"role"`
	ExpiresAt string  `json:"expires_at"`
}

// NewInvitation returns the shape of an open invitation.
func NewInvitation(i dmarcd.Invitation) Invitation {
	return Invitation{Email: optionalText(i.Email), Role: string(i.Role), ExpiresAt: Time(i.ExpiresAt)}
}

// SentInvitation is a new invitation.
type SentInvitation struct {
	Mailed bool    `json:"mailed"`
	Link   *string `json:"link"` // null if it was mailed
}

// NewSentInvitation returns the shape of a new invitation.
func NewSentInvitation(mailed bool, link string) SentInvitation {
	return SentInvitation{Mailed: mailed, Link: optionalText(link)}
}

// Mailbox is a mailbox in an operator's list.
type Mailbox struct {
	ID        string  `json:"id"`
	Host      string  `json:"host"`
	Port      int     `json:"port"`
	Security  string  `json:"security"`
	User      string  `json:"user"`
	Method    string  `json:"method"`
	Folder    string  `json:"folder"`
	After     string  `json:"after"`
	MoveTo    *string `json:"move_to"` // null unless messages are moved
	LastUID   uint32  `json:"last_uid"`
	CreatedAt string  `json:"created_at"`
	SeenAt    *string `json:"seen_at"`
	Error     *string `json:"error"`
	ErrorAt   *string `json:"error_at"`
	PausedAt  *string `json:"paused_at"` // null while it is read
}

// NewMailbox returns the shape of a mailbox.
func NewMailbox(m dmarcd.Mailbox) Mailbox {
	shape := Mailbox{
		ID: m.ID.String(), Host: m.Host, Port: m.Port, Security: string(m.Security), User: m.Username,
		Method: string(m.Method), Folder: m.Folder, After: string(m.After), LastUID: m.LastUID,
		CreatedAt: Time(m.CreatedAt), SeenAt: optionalTime(m.SeenAt), ErrorAt: optionalTime(m.ErrorAt),
		PausedAt: optionalTime(m.PausedAt),
	}
	if m.After == dmarcd.AfterMove {
		shape.MoveTo = &m.MoveTo
	}
	if m.Error != "" {
		shape.Error = &m.Error
	}
	return shape
}
