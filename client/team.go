package client

import (
	"context"
	"iter"
	"time"
)

// The methods of this file need a token with the scope admin.

// ListTokens lists the tokens of the team, including revoked and expired ones, oldest first.
func (c *Client) ListTokens(ctx context.Context) iter.Seq2[Token, error] {
	return list[Token](ctx, c, nil, "tokens")
}

// NewToken is a token to create. It grants no more than the token of the client.
type NewToken struct {
	Name      string     `json:"name"`
	Scope     string     `json:"scope"`      // read, write, admin or publish
	ExpiresAt *time.Time `json:"expires_at"` // nil: never
	Networks  []string   `json:"networks"`   // where it may be used from; nil: everywhere
}

// CreateToken creates a token. Only this answer has its secret.
func (c *Client) CreateToken(ctx context.Context, token NewToken) (TokenWithSecret, error) {
	return post[TokenWithSecret](ctx, c, token, "tokens")
}

// RevokeToken revokes a token permanently, with the tokens that it created.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.remove(ctx, "tokens", id)
}

// ListMembers lists the members of the team.
func (c *Client) ListMembers(ctx context.Context) iter.Seq2[Member, error] {
	return list[Member](ctx, c, nil, "members")
}

// SetRole changes the role of a member to editor or viewer: a token cannot make anyone an owner.
func (c *Client) SetRole(ctx context.Context, id, role string) (Member, error) {
	return patch[Member](ctx, c, map[string]string{"role": role}, "members", id)
}

// RemoveMember removes a member. The last owner cannot be removed.
func (c *Client) RemoveMember(ctx context.Context, id string) error {
	return c.remove(ctx, "members", id)
}

// ListInvitations lists the open invitations, without their links.
func (c *Client) ListInvitations(ctx context.Context) iter.Seq2[Invitation, error] {
	return list[Invitation](ctx, c, nil, "invitations")
}

// InviteMember invites a person as an editor or a viewer. If the server sends no mail, only this
// answer has the link.
func (c *Client) InviteMember(ctx context.Context, email, role string) (SentInvitation, error) {
	return post[SentInvitation](ctx, c, map[string]string{"email": email, "role": role}, "invitations")
}

// WithdrawInvitation withdraws the open invitations of an address.
func (c *Client) WithdrawInvitation(ctx context.Context, email string) error {
	return c.remove(ctx, "invitations", email)
}

// ListMailboxes lists the mailboxes that are read by IMAP, without their passwords.
func (c *Client) ListMailboxes(ctx context.Context) iter.Seq2[Mailbox, error] {
	return list[Mailbox](ctx, c, nil, "mailboxes")
}

// NewMailbox is a mailbox to add, with a password or OAuth. Empty members have their defaults.
type NewMailbox struct {
	Host     string        `json:"host"`
	Port     int           `json:"port,omitempty"`
	Security string        `json:"security,omitempty"` // tls, starttls or none
	User     string        `json:"user"`
	Password string        `json:"password,omitempty"`
	OAuth    *MailboxOAuth `json:"oauth,omitempty"`
	Folder   string        `json:"folder,omitempty"`
	After    string        `json:"after,omitempty"` // keep, flag, move or delete
	MoveTo   string        `json:"move_to,omitempty"`
}

// MailboxOAuth describes how to get access tokens, with a refresh token or by client credentials.
type MailboxOAuth struct {
	TokenURL     string   `json:"token_url"`
	ClientID     string   `json:"client_id"`
	ClientSecret string   `json:"client_secret,omitempty"`
	RefreshToken string   `json:"refresh_token,omitempty"`
	Scopes       []string `json:"scopes,omitempty"`
}

// AddMailbox logs in to a mailbox, and adds it if that succeeds.
func (c *Client) AddMailbox(ctx context.Context, mailbox NewMailbox) (Mailbox, error) {
	return post[Mailbox](ctx, c, mailbox, "mailboxes")
}

// RemoveMailbox removes a mailbox and its password. Its reports stay.
func (c *Client) RemoveMailbox(ctx context.Context, id string) error {
	return c.remove(ctx, "mailboxes", id)
}

// AuditFilter selects changes of the team.
type AuditFilter struct {
	Period
	PageSize int `query:"limit"`
}

// ListAudit lists the changes by members, tokens and operators, the latest first.
func (c *Client) ListAudit(ctx context.Context, filter AuditFilter) iter.Seq2[AuditEntry, error] {
	return list[AuditEntry](ctx, c, filter, "audit")
}

// GetRetention returns how many days data is stored; 0 is forever.
func (c *Client) GetRetention(ctx context.Context) (Retention, error) {
	return get[Retention](ctx, c, "retention")
}

// SetRetention sets how many days data is stored; 0 is forever.
func (c *Client) SetRetention(ctx context.Context, retention Retention) (Retention, error) {
	return put[Retention](ctx, c, retention, "retention")
}
