package service_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/notify/mail"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// letters are messages to users. err is that of sending.
type letters struct {
	service.Mailer

	err  error
	mu   sync.Mutex
	sent []letter
}

type letter struct{ to, team, link string }

func (l *letters) send(to, team, link string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent = append(l.sent, letter{to, team, link})
	return l.err
}

func (l *letters) SendInvitation(_ context.Context, to, team, link string) error {
	return l.send(to, team, link)
}

func (l *letters) SendConfirmation(_ context.Context, team string, w dmarcd.Webhook, link string) error {
	return l.send(w.Address(), team, link)
}

func (l *letters) SendOnce(_ context.Context, to, _ string, content mail.Content) error {
	return l.send(to, content.Subject, content.Action.URL)
}

// TestInvitationsAreMailed sends invitations with and without a relay.
func TestInvitationsAreMailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	for _, test := range []struct {
		name       string
		mail       *letters // nil is no relay
		invitation dmarcd.Invitation
		mailed     bool
		team       string
	}{
		{"no relay", nil, dmarcd.Invitation{Email: "a@example.com", Team: w.team.ID, Role: dmarcd.RoleViewer}, false, ""},
		{"into a team", &letters{}, dmarcd.Invitation{Email: "b@example.com", Team: w.team.ID, Role: dmarcd.RoleViewer}, true, "acme"},
		{"as an operator", &letters{}, dmarcd.Invitation{Email: "c@example.com", Operator: true}, true, ""},
		{"without an address", &letters{}, dmarcd.Invitation{Operator: true}, false, ""},
		{"a relay that is down", &letters{err: errors.New("connection refused")}, dmarcd.Invitation{Email: "d@example.com", Operator: true}, false, ""},
	} {
		options := w.options
		if options.Mail = nil; test.mail != nil {
			options.Mail = test.mail
		}
		invited := musttest.Get(service.New(w.store, options).System(service.CommandLine()).Invite(ctx, test.invitation))(t)
		if invited.Mailed != test.mailed || !strings.HasPrefix(invited.Link, "https://dmarc.example/") {
			t.Errorf("%s: got %+v, want it mailed: %t", test.name, invited, test.mailed)
		}
		if test.mailed && (len(test.mail.sent) != 1 || test.mail.sent[0] != letter{test.invitation.Email, test.team, invited.Link}) {
			t.Errorf("%s: got the letters %+v", test.name, test.mail.sent)
		}
	}
	if !strings.Contains(w.log.String(), "connection refused") {
		t.Errorf("got the log %s, want why no mail was sent", w.log.String())
	}
}

// TestOnlyTheInvitedGetTheLink has an owner invite with a relay, which then goes down, and
// without one.
func TestOnlyTheInvitedGetTheLink(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	s, mail := w.mailing()
	team := s.Team(w.team.ID, w.asOwner())
	invited := musttest.Get(team.InviteMember(ctx, "eve@example.com", dmarcd.RoleViewer))(t)
	if !invited.Mailed || invited.Link != "" || len(mail.sent) != 1 || !strings.HasPrefix(mail.sent[0].link, "https://dmarc.example/") {
		t.Errorf("got %+v and the letters %+v, want the link in a letter alone", invited, mail.sent)
	}
	mail.err = errors.New("connection refused")
	var invalid *dmarcd.InvalidError
	if sent, err := team.InviteMember(ctx, "mallory@example.com", dmarcd.RoleViewer); !errors.As(err, &invalid) || invalid.Field != "email" || sent != (service.SentInvitation{}) {
		t.Errorf("the relay is down: got %+v and %v, want an error about the address", sent, err)
	}
	if to := w.invited(team); !to["eve@example.com"] || to["mallory@example.com"] {
		t.Errorf("got open invitations to %v, want that which was sent", to)
	}
	options := w.options
	options.Mail = nil
	team = service.New(w.store, options).Team(w.team.ID, w.asOwner())
	if sent := musttest.Get(team.InviteMember(ctx, "mallory@example.com", dmarcd.RoleViewer))(t); sent.Mailed || sent.Link == "" {
		t.Errorf("without a relay: got %+v, want a link", sent)
	}
}

// TestInvitationsTakeTheSameTime invites users and others: the same statements run for both, so that the
// time does not show who has an account.
func TestInvitationsTakeTheSameTime(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)
	w := newWorld(t, db)
	var statements []string
	s := service.New(db.Open(t, store.Options{Statement: func(query string) { statements = append(statements, query) }}), w.options)
	runs := func(email string) string {
		t.Helper()
		statements = nil
		musttest.Get(s.Team(w.team.ID, w.asOwner()).InviteMember(ctx, email, dmarcd.RoleViewer))(t)
		return strings.Join(statements, "\n")
	}
	runs("first@example.com") // prepares what later ones have
	for _, user := range []dmarcd.User{w.operator, w.member} {
		if known, other := runs(user.Email), runs("no"+user.Email); known != other || !strings.Contains(known, "INSERT INTO invites") {
			t.Errorf("got the statements\n%s\nfor a user and\n%s\nfor others, want the same", known, other)
		}
	}
}

// mailing returns the service with a relay.
func (w *world) mailing() (*service.Service, *letters) {
	options, sent := w.options, &letters{}
	options.Mail = sent
	return service.New(w.store, options), sent
}

// invited returns the addresses with open invitations.
func (w *world) invited(team *service.Team) map[string]bool {
	to := map[string]bool{}
	for _, invitation := range musttest.Get(team.Invitations(ctx))(w) {
		to[invitation.Email] = true
	}
	return to
}

// TestMailedInvitationsAreThrottled invites one address again and again. The invitations that
// were sent stay open, and another team is not slowed down.
func TestMailedInvitationsAreThrottled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	s, mail := w.mailing()
	w.operates(w.owner) // who may invite to both
	team, other := s.Team(w.team.ID, w.asOwner()), s.Team(storetest.Team(t, w.store, "beta").ID, w.asOwner())
	throttled, rejected := (*service.ThrottledError)(nil), 0
	for range 50 {
		if _, err := team.InviteMember(ctx, "Eve@example.com", dmarcd.RoleViewer); errors.As(err, &throttled) {
			rejected++
		} else {
			musttest.Do(t, err)
		}
	}
	if n := len(mail.sent); n == 0 || n+rejected != 50 || rejected == 0 || mail.sent[0].to != "eve@example.com" || mail.sent[0].team != "acme" {
		t.Errorf("got %d refused and the letters %+v, want a few", rejected, mail.sent)
	}
	if to := w.invited(team); !to["eve@example.com"] {
		t.Errorf("got open invitations to %v, want those which were sent", to)
	}
	if invited := musttest.Get(other.InviteMember(ctx, "eve@example.com", dmarcd.RoleViewer))(t); !invited.Mailed {
		t.Error("the invitation of another team was not sent")
	}
}

// TestInviteNeedsAPurpose invites users who would have no rights, and ones who have some.
func TestInviteNeedsAPurpose(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	system := w.service.System(service.CommandLine())
	if _, err := system.Invite(ctx, dmarcd.Invitation{Email: "eve@example.com"}); !errors.Is(err, service.ErrNoRights) {
		t.Errorf("a new user: got %v, want %v", err, service.ErrNoRights)
	}
	if _, err := system.Invite(ctx, dmarcd.Invitation{Email: w.member.Email}); err != nil {
		t.Errorf("a member, for another password: %v", err)
	}
	if _, err := system.RemoveUser(ctx, w.owner.ID); err != nil {
		t.Errorf("the command line removes an owner: %v", err)
	}
	operator := w.service.System(w.as(w.operator))
	if _, err := operator.RemoveUser(ctx, w.operator.ID); !errors.Is(err, dmarcd.ErrInvalid) {
		t.Errorf("an operator removes itself: got %v, want %v", err, dmarcd.ErrInvalid)
	}
}

// TestInvitationIsDescribed reads links before they are used.
func TestInvitationIsDescribed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	client, _ := w.signIn("cy@example.com")
	for _, test := range []struct {
		name   string
		stored dmarcd.Invitation
		client service.Client
		want   service.Invitation
	}{
		{"a new user", dmarcd.Invitation{Email: "eve@example.com", Team: w.team.ID, Role: dmarcd.RoleEditor}, service.Client{}, service.Invitation{Email: "eve@example.com", Team: "acme", Role: dmarcd.RoleEditor}},
		{"any user", dmarcd.Invitation{Operator: true}, service.Client{}, service.Invitation{}},
		{"any user, signed in", dmarcd.Invitation{Operator: true}, client, service.Invitation{SignedIn: "cy@example.com"}},
		{"a known user", dmarcd.Invitation{Email: "bob@example.com", Operator: true}, service.Client{}, service.Invitation{Email: "bob@example.com", Known: true}},
		{
			"a known user, by an owner",
			dmarcd.Invitation{Email: "bob@example.com", Team: w.team.ID, Role: dmarcd.RoleViewer, CreatedBy: w.owner.ID},
			service.Client{},
			service.Invitation{Email: "bob@example.com", Team: "acme", Role: dmarcd.RoleViewer, Known: true, SignInFirst: true},
		},
		{
			"a known user, signed in",
			dmarcd.Invitation{Email: "cy@example.com", Team: w.team.ID, Role: dmarcd.RoleViewer, CreatedBy: w.owner.ID},
			client,
			service.Invitation{Email: "cy@example.com", Team: "acme", Role: dmarcd.RoleViewer, Known: true, SignedIn: "cy@example.com"},
		},
	} {
		secret, hash := auth.NewInvitation()
		test.stored.ExpiresAt = time.Now().Add(time.Hour)
		w.must(w.store.CreateInvitation(ctx, hash, test.stored))
		got, err := w.service.Invitation(ctx, secret, test.client)
		if err != nil || got != test.want {
			t.Errorf("%s: got %+v, %v; want %+v", test.name, got, err, test.want)
		}
	}
	if _, err := w.service.Invitation(ctx, "x", client); !errors.Is(err, dmarcd.ErrNotFound) {
		t.Errorf("an unknown link: got %v, want %v", err, dmarcd.ErrNotFound)
	}
}

// accept has a user accept an invitation, and returns the account.
func (w *world) accept(invitation dmarcd.Invitation) (*service.Account, service.Client) {
	w.Helper()
	secret, hash := auth.NewInvitation()
	invitation.ExpiresAt = time.Now().Add(time.Hour)
	w.must(w.store.CreateInvitation(ctx, hash, invitation))
	client := service.Client{Address: "192.0.2.9"}
	client.Session = musttest.Get(w.service.AcceptInvitation(ctx, secret, service.NewAccount{Email: "dee@example.com", Password: oldPassword}, client))(w)
	account := musttest.Get(w.service.Account(ctx, client))(w)
	return account, client
}

// TestSelectedTeam follows which team a user sees: that of the invitation, another that they
// chose, and the first if they are removed from it.
func TestSelectedTeam(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	second := musttest.Get(w.store.CreateTeam(ctx, "beta", true))(t)
	check := func(name string, account *service.Account, team string, role dmarcd.Role, teams ...string) {
		t.Helper()
		var names []string
		for _, t := range account.Teams {
			names = append(names, t.Name)
		}
		if account.Team.Name != team || account.Role != role || strings.Join(names, " ") != strings.Join(teams, " ") {
			t.Errorf("%s: got the team %q with the role %q of %q, want %q, %q of %q", name, account.Team.Name, account.Role, names, team, role, teams)
		}
	}
	again := func(client service.Client) *service.Account {
		t.Helper()
		return musttest.Get(w.service.Account(ctx, client))(t)
	}

	member, client := w.accept(dmarcd.Invitation{Email: "dee@example.com", Team: second.ID, Role: dmarcd.RoleEditor})
	check("a member", member, "beta", dmarcd.RoleEditor, "beta")
	secret, hash := auth.NewInvitation()
	w.must(w.store.CreateInvitation(ctx, hash, dmarcd.Invitation{Email: "dee@example.com", Team: w.team.ID, Role: dmarcd.RoleViewer, ExpiresAt: time.Now().Add(time.Hour)}))
	client.Session = musttest.Get(w.service.AcceptInvitation(ctx, secret, service.NewAccount{}, client))(t)
	check("a member who joins another", again(client), "acme", dmarcd.RoleViewer, "acme", "beta")
	w.must(again(client).SelectTeam(ctx, second.ID))
	check("a member of two", again(client), "beta", dmarcd.RoleEditor, "acme", "beta")
	w.must(w.store.Team(second.ID).RemoveMember(ctx, member.User.ID))
	check("a member who was removed", again(client), "acme", dmarcd.RoleViewer, "acme")
	w.must(w.store.Team(w.team.ID).RemoveMember(ctx, member.User.ID))
	check("a member of none", again(client), "", "")

	secret, hash = auth.NewInvitation()
	w.must(w.store.CreateInvitation(ctx, hash, dmarcd.Invitation{Operator: true, ExpiresAt: time.Now().Add(time.Hour)}))
	client.Session = musttest.Get(w.service.AcceptInvitation(ctx, secret, service.NewAccount{Email: "root@example.com", Password: oldPassword}, service.Client{}))(t)
	operator := again(client)
	check("an operator", operator, "acme", dmarcd.RoleOwner, "acme")
	w.must(operator.SelectTeam(ctx, second.ID))
	check("an operator in another team", again(client), "beta", dmarcd.RoleOwner, "beta")
}

// TestNoSingleSignOn asks for what is not configured.
func TestNoSingleSignOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	if w.service.SingleSignOn() {
		t.Error("got single sign-on, want none")
	}
	if _, _, err := w.service.BeginSingleSignOn(ctx, "/app/"); !errors.Is(err, dmarcd.ErrNotFound) {
		t.Errorf("got %v, want %v", err, dmarcd.ErrNotFound)
	}
	if _, _, err := w.service.FinishSingleSignOn(ctx, "x", nil, service.Client{}); !errors.Is(err, dmarcd.ErrNotFound) {
		t.Errorf("got %v, want %v", err, dmarcd.ErrNotFound)
	}
}

// TestQuotasInTheAuditLog sets quotas: the entry has them as they are entered.
func TestQuotasInTheAuditLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	system := w.service.System(service.CommandLine())
	before := len(w.entries())
	w.must(system.SetQuotas(ctx, w.team, dmarcd.Quota{}))
	if n := len(w.entries()); n != before {
		t.Errorf("no quota: got %d entries, want none", n-before)
	}
	w.must(system.SetQuotas(ctx, w.team, dmarcd.Quota{dmarcd.QuotaDomains: 5, dmarcd.QuotaStored: 0, dmarcd.QuotaMailboxes: dmarcd.QuotaDefault}))
	if got, want := w.entries()[0].Detail, "domains=5 stored=none mailboxes=default"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for allowed, want := range map[bool]string{true: "team.allow", false: "team.deny"} {
		w.must(system.SetAPI(ctx, "acme", allowed))
		if got := w.entries()[0].Action; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestTokensMakeNoOwner gives the role owner with a token.
func TestTokensMakeNoOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	token := musttest.Get(w.store.Team(w.team.ID).CreateToken(ctx, store.NewToken{Scope: dmarcd.ScopeAdmin, Hash: [32]byte{1}}))(t)
	team := w.service.Team(w.team.ID, service.Token(token.ID, dmarcd.ScopeAdmin, ""))
	if err := team.SetRole(ctx, w.member.ID, dmarcd.RoleOwner); !errors.Is(err, dmarcd.ErrInvalid) {
		t.Errorf("a role: got %v, want ErrInvalid", err)
	}
	if _, err := team.InviteMember(ctx, "eve@example.com", dmarcd.RoleOwner); !errors.Is(err, dmarcd.ErrInvalid) {
		t.Errorf("an invitation: got %v, want ErrInvalid", err)
	}
	w.must(team.SetRole(ctx, w.member.ID, dmarcd.RoleEditor))
}
