package web

import (
	"context"
	"io"
	"net/url"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// The interfaces of this file are all that the pages ask of others. Errors are
// of the kinds of package dmarcd; an *dmarcd.InvalidError whose Field is that of
// a form is shown at it. Ids are written as outside the process.

// Accounts knows users and their sessions.
type Accounts interface {
	// Viewer returns whose session the secret is, or dmarcd.ErrUnauthorized.
	Viewer(ctx context.Context, session string) (Viewer, error)
	// SignIn returns the secret of a new session, dmarcd.ErrUnauthorized where
	// address and password do not fit, or dmarcd.ErrLimit after too many tries.
	SignIn(ctx context.Context, attempt SignInAttempt) (session string, err error)
	SignOut(ctx context.Context, session string) error
	// ChooseTeam changes the team that the session looks at, or returns
	// dmarcd.ErrNotFound for one that the user is not in.
	ChooseTeam(ctx context.Context, session, team string) error
}

// OwnAccount is what users see and change of themselves. browser says where they
// are signed in, and dmarcd.ErrUnauthorized that they are not any more.
type OwnAccount interface {
	Profile(ctx context.Context, browser Browser) (Profile, error)
	SetName(ctx context.Context, browser Browser, name string) error
	// SetPassword ends all sessions but the one that asks. It returns
	// dmarcd.ErrUnauthorized where current is not the present password,
	// dmarcd.ErrLimit after too many tries, and dmarcd.ErrForbidden for somebody
	// who has no password.
	SetPassword(ctx context.Context, browser Browser, current, next string) error
	// EndSession ends one of the user's own sessions; any other is
	// dmarcd.ErrNotFound.
	EndSession(ctx context.Context, browser Browser, id string) error
	// EndOtherSessions ends all sessions but the one that asks.
	EndOtherSessions(ctx context.Context, browser Browser) error
}

// Invitations knows the one-time links to the page.
type Invitations interface {
	// Invitation returns what the link is for, or dmarcd.ErrNotFound for one that
	// is unknown, used or expired. It does not use it up. session is that of the
	// browser, "" for none.
	Invitation(ctx context.Context, token, session string) (Invitation, error)
	// AcceptInvitation uses it up, and returns the secret of a new session.
	AcceptInvitation(ctx context.Context, token string, account NewAccount) (session string, err error)
}

// SingleSignOn lets people in whom an identity provider vouches for.
type SingleSignOn interface {
	// Begin returns where to send the browser, and what it has to keep meanwhile.
	// next is the page to come back to.
	Begin(ctx context.Context, next string) (location, kept string, err error)
	// Finish takes what the browser kept and what it comes back with, and returns
	// the secret of a new session and the page to go to. dmarcd.ErrUnauthorized
	// means that the provider refused or was not asked, dmarcd.ErrForbidden that it
	// has no verified address, and dmarcd.ErrNotFound that nobody invited them.
	Finish(ctx context.Context, kept string, answer url.Values, browser Browser) (session, next string, err error)
}

// Team is what the pages ask about one team.
type Team struct {
	Domains   Domains
	Checks    Checks
	Sources   Sources
	Reports   Reports
	Rejected  RejectedReports
	Verdicts  Verdicts
	Tokens    Tokens
	Members   Members
	Invites   Invites
	Mailboxes Mailboxes
	Keeping   Housekeeping
	Memory    Memory
}

// Memory is what a request may hold for large answers. All teams share it.
type Memory interface {
	// Reserve waits until the request may hold as much as one team may, and returns
	// the context under which nothing else of it waits. It returns memory.ErrBusy
	// after some seconds.
	Reserve(ctx context.Context) (context.Context, error)
	// Release gives back all that the request holds, whose answer is complete.
	Release()
}

// Domains knows the domains of the team.
type Domains interface {
	Overview(ctx context.Context, query OverviewQuery) (Overview, error)
	Domain(ctx context.Context, name string) (DomainHead, error)
	// AddDomain returns the name in its normal form.
	AddDomain(ctx context.Context, name string) (string, error)
	DeleteDomain(ctx context.Context, name string) error
	SetPurpose(ctx context.Context, name string, purpose dmarcd.Purpose) error
}

// Checks knows what the DNS says of a domain of the team.
type Checks interface {
	// LatestCheck returns dmarcd.ErrNotFound where nobody has looked yet.
	LatestCheck(ctx context.Context, domain string) (wire.KeptCheck, error)
	// Checks returns the history, the latest first, from a cursor on.
	Checks(ctx context.Context, domain, after string) (wire.Page[wire.KeptCheck], error)
	Setup(ctx context.Context, domain string) (wire.Setup, error)
	// Verify looks at the DNS now.
	Verify(ctx context.Context, domain string) error
	// Watch looks at the DNS unless that was done a moment ago.
	Watch(ctx context.Context, domain string) error
}

// Sources knows who sends mail as the domains of the team.
type Sources interface {
	Timeline(ctx context.Context, domain string, period Period) (Timeline, error)
	Sources(ctx context.Context, query SourceQuery) (SourceList, error)
	Source(ctx context.Context, query SourceQuery) (Source, error)
	// Flows returns the amounts from sender to authentication to what receivers
	// did, the largest first, with the small ones put together.
	Flows(ctx context.Context, query SourceQuery) ([]Flow, error)
	Records(ctx context.Context, query SourceQuery) (wire.Page[Record], error)
}

// Reports knows the reports of the team.
type Reports interface {
	Reports(ctx context.Context, query ReportQuery) (wire.Page[dmarcd.Report], error)
	// Report returns a report with at most so many of its records, from a cursor on.
	Report(ctx context.Context, id, after string, records int) (ReportDocument, error)
	Original(ctx context.Context, id string) (Original, error)
	// Upload reads a file with reports in it. name is what it is called.
	Upload(ctx context.Context, name string, body io.Reader) ([]dmarcd.Receipt, error)
}

// RejectedReports knows what was sent to the team and could not be used.
type RejectedReports interface {
	Rejected(ctx context.Context, after string) (wire.Page[dmarcd.Rejected], error)
	RejectedOriginal(ctx context.Context, id string) (Original, error)
	// Retry reads it again, and returns what came of it.
	Retry(ctx context.Context, id string) ([]dmarcd.Receipt, error)
}

// Verdicts decides which reports of the team count. An unknown report is
// dmarcd.ErrNotFound.
type Verdicts interface {
	SetCounted(ctx context.Context, id string, counted bool) error
	// SetCountedAll returns how many reports were changed.
	SetCountedAll(ctx context.Context, selected service.Selection, counted bool) (int, error)
	DeleteReport(ctx context.Context, id string) error
	DeleteRejected(ctx context.Context, id string) error
}

// Tokens knows the tokens of the team.
type Tokens interface {
	Tokens(ctx context.Context) ([]dmarcd.Token, error)
	// CreateToken returns the secret, which is never told again.
	CreateToken(ctx context.Context, token NewToken) (secret string, err error)
	RevokeToken(ctx context.Context, id string) error
}

// Members knows the users of the team.
type Members interface {
	Members(ctx context.Context) ([]Member, error)
	SetRole(ctx context.Context, user, role string) error
	RemoveMember(ctx context.Context, user string) error
}

// Invites knows whom the team has invited.
type Invites interface {
	// Invites returns those who have not come yet and still can.
	Invites(ctx context.Context) ([]Invite, error)
	// InviteMember returns a one-time link, which is never told again.
	InviteMember(ctx context.Context, email, role string) (link string, err error)
	// WithdrawInvite makes every open link for the address void, or returns
	// dmarcd.ErrNotFound where there is none.
	WithdrawInvite(ctx context.Context, email string) error
}

// Mailboxes knows the mailboxes that the team has read for it.
type Mailboxes interface {
	Mailboxes(ctx context.Context) ([]Mailbox, error)
	AddMailbox(ctx context.Context, mailbox NewMailbox) error
	RemoveMailbox(ctx context.Context, id string) error
	// ResumeMailbox lets a paused mailbox be read again.
	ResumeMailbox(ctx context.Context, id string) error
}

// Housekeeping knows how long the team keeps what, and who changed what.
type Housekeeping interface {
	Retention(ctx context.Context) (Retention, error)
	SetRetention(ctx context.Context, retention Retention) error
	// Audit returns the changes, the latest first, from a cursor on.
	Audit(ctx context.Context, after string) (wire.Page[AuditEntry], error)
}

// Installation is what the pages ask about all teams. It is for operators.
type Installation interface {
	// Audit returns the changes of all teams, and those about none, the latest first,
	// from a cursor on.
	Audit(ctx context.Context, after string) (wire.Page[AuditEntry], error)
	Teams(ctx context.Context) ([]TeamRow, error)
	CreateTeam(ctx context.Context, name string, api bool) error
	SetAPI(ctx context.Context, team string, allowed bool) error
	Users(ctx context.Context) ([]UserRow, error)
	RemoveUser(ctx context.Context, user string) error
}
