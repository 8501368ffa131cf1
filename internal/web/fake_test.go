package web_test

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// backend is everything that the pages ask for, with sample data. What is
// changed is noted in calls; fail, where set, is the answer to everything that a
// team is asked.
type backend struct {
	viewer web.Viewer
	fail   error
	empty  bool
	// unknown tells that the DNS has not answered yet.
	unknown bool
	// parts tells that lists with a cursor come in two parts of the same items.
	parts bool
	// userAgent, where set, is the browser of the only session.
	userAgent *string
	calls     []string
}

// inParts returns a list whole, or the part that a cursor asks for.
func inParts[T any](b *backend, after string, items []T) wire.Page[T] {
	page := wire.Page[T]{Items: items}
	if second := "second"; b.parts && after != second {
		page.Next = &second
	}
	return page
}

func (b *backend) note(words ...string) error {
	b.calls = append(b.calls, strings.Join(words, " "))
	return b.fail
}

func (b *backend) options() web.Options {
	return web.Options{
		Accounts:    b,
		OwnAccount:  b,
		Invitations: b,
		Team: func(web.Viewer) web.Team {
			return web.Team{
				Domains: b, Checks: b, Sources: b, Reports: b, Rejected: b, Verdicts: b, Tokens: b, Members: b, Invites: b, Mailboxes: b, Keeping: b,
			}
		},
		Installation: func(web.Viewer) web.Installation { return b },
		SingleSignOn: b, ProviderName: "Example Login",
		MinPassword:  12,
		APIDocs:      "/api/docs",
		Attributions: []web.Link{{Text: "IP geolocation by an example", Href: "https://data.example/"}},
		MaxUpload:    32 << 20,
		Now:          func() time.Time { return now },
	}
}

func (b *backend) Viewer(_ context.Context, session string) (web.Viewer, error) {
	if session != goodSession {
		return web.Viewer{}, dmarcd.ErrUnauthorized
	}
	return b.viewer, nil
}

func (b *backend) SignIn(_ context.Context, a web.SignInAttempt) (string, error) {
	switch a.Password {
	case goodPassword:
		return goodSession, nil
	case "again and again":
		return "", dmarcd.ErrLimit
	}
	return "", dmarcd.ErrUnauthorized
}

func (b *backend) SignOut(context.Context, string) error { return b.note("sign out") }

func (b *backend) ChooseTeam(_ context.Context, _, team string) error {
	if team != otherTeam {
		return dmarcd.ErrNotFound
	}
	return b.note("choose team", team)
}

func (b *backend) Profile(context.Context, web.Browser) (web.Profile, error) {
	profile := sampleProfile()
	if b.empty {
		profile.Password, profile.Sessions = false, profile.Sessions[:1]
	}
	if b.userAgent != nil {
		profile.Sessions = []web.SignedIn{{UserAgent: *b.userAgent}}
	}
	return profile, b.fail
}

func (b *backend) SetName(_ context.Context, _ web.Browser, name string) error {
	if name == "Too Late" {
		return dmarcd.ErrUnauthorized // the session ended meanwhile
	}
	if _, err := dmarcd.ParseUserName(name); err != nil {
		return err
	}
	return b.note("name", name)
}

func (b *backend) SetPassword(_ context.Context, _ web.Browser, current, _ string) error {
	switch {
	case b.empty:
		return dmarcd.ErrForbidden
	case current == "again and again":
		return dmarcd.ErrLimit
	case current != goodPassword:
		return dmarcd.ErrUnauthorized
	}
	return b.note("password")
}

func (b *backend) EndSession(_ context.Context, _ web.Browser, id string) error {
	if id != "session_2" {
		return dmarcd.ErrNotFound
	}
	return b.note("end session", id)
}

func (b *backend) EndOtherSessions(context.Context, web.Browser) error {
	return b.note("end other sessions")
}

func (b *backend) Begin(_ context.Context, next string) (location, kept string, err error) {
	return "https://login.example/authorize", "kept for " + next, b.fail
}

func (b *backend) Finish(_ context.Context, kept string, answer url.Values, _ web.Browser) (session, next string, err error) {
	page, ok := strings.CutPrefix(kept, "kept for ")
	if !ok || answer.Get("code") == "" {
		return "", "", dmarcd.ErrUnauthorized
	}
	return goodSession, page, b.fail
}

func (b *backend) Invitation(_ context.Context, token, session string) (web.Invitation, error) {
	if token != goodInvitation {
		return web.Invitation{}, dmarcd.ErrNotFound
	}
	invitation := web.Invitation{Email: "new@example.com", Team: "Example & Sons", Role: "editor"}
	switch session {
	case "joining":
		invitation.Known, invitation.SignedIn = true, invitation.Email
	case "ended":
		invitation.Known, invitation.SignInFirst = true, true
	}
	return invitation, nil
}

func (b *backend) AcceptInvitation(_ context.Context, _ string, a web.NewAccount) (string, error) {
	if len(a.Password) < 12 {
		return "", &dmarcd.InvalidError{Field: "password", Message: "A password has at least 12 characters."}
	}
	return goodSession, b.note("accept", a.Email)
}

func (b *backend) Overview(_ context.Context, q web.OverviewQuery) (web.Overview, error) {
	if b.empty {
		return web.Overview{}, b.fail
	}
	return sampleOverview(q), b.fail
}

func (b *backend) Domain(_ context.Context, name string) (web.DomainHead, error) {
	if name != sampleDomain {
		return web.DomainHead{}, dmarcd.ErrNotFound
	}
	head := sampleHead()
	if b.unknown {
		head.Domain = dmarcd.Domain{Name: name}
		head.Applied = ""
	}
	return head, b.fail
}

func (b *backend) AddDomain(_ context.Context, name string) (string, error) {
	if name == sampleDomain {
		return "", dmarcd.ErrConflict
	}
	parsed, err := dmarcd.ParseName(name)
	if err != nil {
		return "", err
	}
	return parsed, b.note("add domain", parsed)
}

func (b *backend) DeleteDomain(_ context.Context, name string) error { return b.note("delete", name) }

func (b *backend) SetPurpose(_ context.Context, name string, p dmarcd.Purpose) error {
	return b.note("purpose", name, string(p))
}

func (b *backend) LatestCheck(context.Context, string) (wire.KeptCheck, error) {
	if b.empty {
		return wire.KeptCheck{}, dmarcd.ErrNotFound
	}
	return sampleCheck(), b.fail
}

func (b *backend) Checks(_ context.Context, _, after string) (wire.Page[wire.KeptCheck], error) {
	if b.empty {
		return wire.Page[wire.KeptCheck]{}, b.fail
	}
	history := sampleHistory()
	if b.parts {
		return inParts(b, after, history.Items), b.fail
	}
	if after != "" {
		return wire.Page[wire.KeptCheck]{}, b.fail
	}
	return history, b.fail
}

func (b *backend) Setup(context.Context, string) (wire.Setup, error) {
	if b.empty {
		return wire.Setup{Domain: sampleDomain}, b.fail
	}
	return sampleSetup(), b.fail
}

func (b *backend) Watch(context.Context, string) error { return b.fail }

func (b *backend) Verify(_ context.Context, domain string) error { return b.note("verify", domain) }

func (b *backend) Timeline(_ context.Context, _ string, p web.Period) (web.Timeline, error) {
	if b.empty {
		return web.Timeline{}, b.fail
	}
	return sampleTimeline(p), b.fail
}

func (b *backend) Sources(_ context.Context, q web.SourceQuery) (web.SourceList, error) {
	if b.empty {
		return web.SourceList{}, b.fail
	}
	list := web.SourceList{Sources: sampleSources(q.Period), Next: "cursor-2"}
	if q.Domain != "" {
		list.Readiness = &web.Readiness{Reasons: []string{hostile + ": 12 of 40 messages are not compliant."}, All: 12345, Affected: 1200, Known: 12}
	}
	return list, b.fail
}

func (b *backend) Source(_ context.Context, q web.SourceQuery) (web.Source, error) {
	if q.Key == "missing" {
		return web.Source{}, dmarcd.ErrNotFound
	}
	return sampleSource(q.Period), b.fail
}

func (b *backend) Flows(context.Context, web.SourceQuery) ([]web.Flow, error) {
	if b.empty {
		return nil, b.fail
	}
	return sampleFlows(), b.fail
}

// Records has as many as are asked for, where lists come in parts.
func (b *backend) Records(_ context.Context, q web.SourceQuery) (wire.Page[web.Record], error) {
	page := inParts(b, q.After, sampleRecords())
	if b.parts && q.Limit >= 2*len(page.Items) {
		page = wire.Page[web.Record]{Items: slices.Concat(page.Items, page.Items)}
	}
	return page, b.fail
}

func (b *backend) Reports(_ context.Context, q web.ReportQuery) (wire.Page[dmarcd.Report], error) {
	if b.empty {
		return wire.Page[dmarcd.Report]{}, b.fail
	}
	var kept []dmarcd.Report
	for _, r := range sampleReports() {
		if q.Kind == "" || q.Kind == r.Kind {
			kept = append(kept, r)
		}
	}
	return wire.Page[dmarcd.Report]{Items: kept}, b.fail
}

func (b *backend) Report(_ context.Context, id, after string, limit int) (web.ReportDocument, error) {
	for _, r := range sampleReports() {
		if r.ID.String() == id {
			document := sampleDocument(r)
			if b.parts && limit > 1000 && after == "" {
				document.Records = slices.Concat(document.Records, document.Records)
			}
			return document, b.fail
		}
	}
	return web.ReportDocument{}, dmarcd.ErrNotFound
}

func (b *backend) Original(context.Context, string) (web.Original, error) {
	return web.Original{Name: "a\"b\r\n<c>.xml.gz", Size: 8, Body: io.NopCloser(strings.NewReader("original"))}, b.fail
}

func (b *backend) Upload(_ context.Context, name string, body io.Reader) ([]dmarcd.Receipt, error) {
	content, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	return sampleReceipts(), b.note("upload", name, string(content))
}

func (b *backend) Rejected(_ context.Context, after string) (wire.Page[dmarcd.Rejected], error) {
	if b.empty {
		return wire.Page[dmarcd.Rejected]{}, b.fail
	}
	return inParts(b, after, sampleRejected()), b.fail
}

func (b *backend) RejectedOriginal(ctx context.Context, id string) (web.Original, error) {
	return b.Original(ctx, id)
}

func (b *backend) Retry(_ context.Context, id string) ([]dmarcd.Receipt, error) {
	return sampleReceipts(), b.note("retry", id)
}

func (b *backend) SetCounted(_ context.Context, id string, counted bool) error {
	return b.note("counted", id, fmt.Sprint(counted))
}

func (b *backend) SetCountedAll(_ context.Context, selected service.Selection, counted bool) (int, error) {
	if selected == (service.Selection{}) {
		return 0, &dmarcd.InvalidError{Field: "reporter", Message: "Select the reports."}
	}
	return 2, b.note("counted", selected.Reporter, fmt.Sprint(counted))
}

func (b *backend) DeleteReport(_ context.Context, id string) error {
	return b.note("delete report", id)
}

func (b *backend) DeleteRejected(_ context.Context, id string) error {
	return b.note("delete rejected", id)
}

func (b *backend) Tokens(context.Context) ([]dmarcd.Token, error) { return sampleTokens(), b.fail }

func (b *backend) CreateToken(_ context.Context, t web.NewToken) (string, error) {
	if t.Name == "" {
		return "", &dmarcd.InvalidError{Field: "name", Message: "A token needs a name."}
	}
	return "dmd_0123456789abcdefghijABCDEFGHIJ01234567", b.note("token", t.Name, string(t.Scope))
}

func (b *backend) RevokeToken(_ context.Context, id string) error { return b.note("revoke", id) }

func (b *backend) Members(context.Context) ([]web.Member, error) { return sampleMembers(), b.fail }

func (b *backend) InviteMember(_ context.Context, email, role string) (string, error) {
	if !strings.Contains(email, "@") {
		return "", &dmarcd.InvalidError{Field: "email", Message: "Write an e-mail address."}
	}
	return "https://dmarcd.example/app/welcome/one-time", b.note("invite", email, role)
}

func (b *backend) Invites(context.Context) ([]web.Invite, error) {
	if b.empty {
		return nil, b.fail
	}
	return sampleInvites(), b.fail
}

func (b *backend) WithdrawInvite(_ context.Context, email string) error {
	return b.note("withdraw", email)
}

func (b *backend) SetRole(_ context.Context, user, role string) error {
	return b.note("role", user, role)
}

func (b *backend) RemoveMember(_ context.Context, user string) error {
	return b.note("remove member", user)
}

func (b *backend) Mailboxes(context.Context) ([]web.Mailbox, error) {
	return sampleMailboxes(), b.fail
}

func (b *backend) AddMailbox(_ context.Context, m web.NewMailbox) error {
	if m.Server == "" {
		return &dmarcd.InvalidError{Field: "server", Message: "Write the name of a server."}
	}
	return b.note("mailbox", m.Server, m.Username)
}

func (b *backend) ResumeMailbox(_ context.Context, id string) error {
	return b.note("resume mailbox", id)
}

func (b *backend) RemoveMailbox(_ context.Context, id string) error {
	return b.note("remove mailbox", id)
}

func (b *backend) Retention(context.Context) (web.Retention, error) {
	return web.Retention{Records: 400, Originals: 90}, b.fail
}

func (b *backend) SetRetention(_ context.Context, r web.Retention) error {
	return b.note("retention")
}

func (b *backend) Audit(_ context.Context, after string) (wire.Page[web.AuditEntry], error) {
	return inParts(b, after, sampleAudit()), b.fail
}

func (b *backend) Teams(context.Context) ([]web.TeamRow, error) { return sampleTeams(), b.fail }

func (b *backend) CreateTeam(_ context.Context, name string, _ bool) error {
	if name == "default" {
		return dmarcd.ErrConflict
	}
	return b.note("team", name)
}

func (b *backend) SetAPI(_ context.Context, team string, allowed bool) error {
	return b.note("api", team, map[bool]string{true: "yes", false: "no"}[allowed])
}

func (b *backend) Users(context.Context) ([]web.UserRow, error) { return sampleUsers(), b.fail }

func (b *backend) RemoveUser(_ context.Context, user string) error {
	return b.note("remove user", user)
}
