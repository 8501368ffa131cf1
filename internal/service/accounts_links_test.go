package service_test

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// posted sends what waits for the relay, and returns it.
func (w *world) posted(s *service.Service, mail *letters) []letter {
	w.Helper()
	ended, cancel := context.WithCancel(ctx)
	cancel()
	mail.sent = nil
	w.must(s.SendPosted(ended))
	return mail.sent
}

// mailedTo fails unless there is one letter, to an address, and returns the secret of its link.
func (w *world) mailedTo(sent []letter, to string) string {
	w.Helper()
	if len(sent) != 1 || sent[0].to != to {
		w.Fatalf("got the letters %+v, want one to %s", sent, to)
	}
	return path.Base(sent[0].link)
}

// TestResetPassword sets another password by a link.
func TestResetPassword(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		const cy = "cy@example.com"
		w := newWorld(t, db)
		s, mail := w.mailing()
		now := time.Now()
		first, _ := w.signIn(cy)
		client := service.Client{Address: "192.0.2.9"}
		ask := func() string {
			t.Helper()
			w.must(s.ForgotPassword(ctx, " CY@example.com", client))
			return w.mailedTo(w.posted(s, mail), cy)
		}
		rejects := func(what, link string) {
			t.Helper()
			before := db.Dump(t)
			if _, err := s.ResettableUser(ctx, link); !errors.Is(err, dmarcd.ErrNotFound) {
				t.Errorf("%s: got %v, want ErrNotFound", what, err)
			}
			if err := s.ResetPassword(ctx, link, newPassword, client); !errors.Is(err, dmarcd.ErrNotFound) || db.Dump(t) != before {
				t.Errorf("%s: got %v, want ErrNotFound and nothing changed", what, err)
			}
		}
		link, other := ask(), ask()
		if dump := db.Dump(t); strings.Contains(dump, link) {
			t.Error("got the secret in the database, want its hash")
		}
		if email, err := s.ResettableUser(ctx, link); err != nil || email != cy {
			t.Errorf("got the link of %q, %v", email, err)
		}
		rejects("a malformed link", "x")
		unknown, _ := auth.NewLink()
		rejects("an unknown link", unknown)
		invitation, hash := w.invitation("dora@example.com")
		rejects("an invitation", invitation)
		if _, err := s.Invitation(ctx, link, client); !errors.Is(err, dmarcd.ErrNotFound) {
			t.Errorf("the link as an invitation: got %v, want ErrNotFound", err)
		}
		if err := s.ResetPassword(ctx, link, "password1234", client); !errors.Is(err, dmarcd.ErrInvalid) {
			t.Errorf("a common password: got %v, want ErrInvalid", err)
		}
		w.must(s.ResetPassword(ctx, link, newPassword, client))
		if sent := w.posted(s, mail); len(sent) != 1 || sent[0].to != cy || sent[0].team != "Your password for dmarcd was changed" {
			t.Errorf("got the letters %+v, want that the password was changed", sent)
		}
		if entry := w.entries()[0]; entry.Action != "user.password" || entry.Actor != cy || entry.Address != client.Address || entry.User == 0 {
			t.Errorf("got the entry %+v", entry)
		}
		if asked := func(e dmarcd.AuditEntry) bool {
			return e.Action == "user.reset" && e.Target == cy && e.Address == client.Address
		}; !slices.ContainsFunc(w.entries(), asked) {
			t.Error("got no entry of the request")
		}
		rejects("the same link again", link)
		rejects("another link from before", other)
		if _, err := s.Account(ctx, first); !errors.Is(err, dmarcd.ErrUnauthorized) {
			t.Errorf("a session from before: got %v, want it ended", err)
		}
		if _, err := s.SignIn(ctx, cy, oldPassword, client); !errors.Is(err, dmarcd.ErrUnauthorized) {
			t.Errorf("the old password: got %v, want ErrUnauthorized", err)
		}
		client.Session = musttest.Get(s.SignIn(ctx, cy, newPassword, client))(t)

		account := musttest.Get(s.Account(ctx, client))(t)
		link = ask()
		w.must(account.SetPassword(ctx, newPassword, oldPassword))
		w.posted(s, mail)
		rejects("a link from before a change of the password", link)

		options := w.options
		options.Mail, options.Now = mail, func() time.Time { return now.Add(-dmarcd.MailedLinkLife) }
		w.must(service.New(w.store, options).ForgotPassword(ctx, "unknown@example.com", client))
		late := service.New(w.store, options)
		w.must(late.ForgotPassword(ctx, cy, client))
		rejects("an expired link", w.mailedTo(w.posted(late, mail), cy))

		w.enrolled(account, time.Now())
		w.posted(s, mail)
		w.must(s.ResetPassword(ctx, ask(), newPassword, client))
		w.posted(s, mail)
		var step *service.SecondStep
		if session, err := s.SignIn(ctx, cy, newPassword, client); session != "" || !errors.As(err, &step) {
			t.Errorf("with a second factor: got the session %q and %v, want a second step", session, err)
		}
		link = ask()
		musttest.Get(w.store.RemoveUser(ctx, account.User.ID))(t)
		rejects("a link of a removed user", link)
		musttest.Get(w.store.UseInvitation(ctx, hash, dmarcd.Claim{PasswordHash: "x"}))(t)
	})
}

// TestWhoGetsAReset asks for links for various addresses. The answers are the same.
func TestWhoGetsAReset(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	s, mail := w.mailing()
	w.must(errorOf(w.store.SignInIdentity(ctx, dmarcd.Identity{Issuer: "https://id.example", Subject: "1", Email: "sso@example.com", Admit: true})))
	for n, row := range []struct {
		email, subject string // "" for no mail
	}{
		{w.owner.Email, "Set a new password for dmarcd"},
		{"unknown@example.com", ""},
		{"new@example.com", ""}, // who is invited
		{"sso@example.com", "Signing in to dmarcd"},
	} {
		entries := len(w.entries())
		if err := s.ForgotPassword(ctx, row.email, service.Client{Address: "192.0.2.9"}); err != nil {
			t.Errorf("%s: got %v", row.email, err)
		}
		if len(mail.sent) != 0 || len(w.entries()) != entries {
			t.Errorf("%s: got work in the request, want it later", row.email)
		}
		sent := w.posted(s, mail)
		if row.subject == "" && len(sent) != 0 || row.subject != "" && (len(sent) != 1 || sent[0].to != row.email || sent[0].team != row.subject) {
			t.Errorf("%s: got %+v, want %q", row.email, sent, row.subject)
		}
		if wrote := len(w.entries()) - entries; wrote != map[bool]int{true: 1}[n == 0] {
			t.Errorf("%s: got %d entries", row.email, wrote)
		}
		mail.sent = nil
	}
	if err := s.ForgotPassword(ctx, "no address", service.Client{}); !errors.Is(err, dmarcd.ErrInvalid) {
		t.Errorf("no address: got %v, want ErrInvalid", err)
	}
	options := w.options
	options.Mail = nil
	if err := service.New(w.store, options).ForgotPassword(ctx, w.owner.Email, service.Client{}); !errors.Is(err, dmarcd.ErrNotFound) {
		t.Errorf("no relay: got %v, want ErrNotFound", err)
	}
	mail.err = errors.New("connection refused")
	w.must(s.ForgotPassword(ctx, w.member.Email, service.Client{Address: "192.0.2.10"}))
	if w.posted(s, mail); !strings.Contains(w.log.String(), "connection refused") {
		t.Errorf("a relay that is down: got the log %s", w.log.String())
	}
}

// TestResetsAreLate asks for a link: the work for a user begins when the answer is long gone.
func TestResetsAreLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	s, mail := w.mailing()
	running, cancel := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- s.SendPosted(running) }()
	began := time.Now()
	w.must(s.ForgotPassword(ctx, w.owner.Email, service.Client{Address: "192.0.2.9"}))
	for entries := w.entries(); len(entries) == 0 || entries[0].Action != "user.reset"; {
		entries = w.entries()
	}
	if took := time.Since(began); took < time.Second/2 {
		t.Errorf("got the entry of the request after %s, want it later", took)
	}
	cancel()
	if err := <-ended; err != nil || len(mail.sent) != 1 {
		t.Errorf("got %v and the letters %+v, want one", err, mail.sent)
	}
}

// TestResetsAreThrottled asks again and again: by address and network like sign-ins, and without flooding
// a mailbox.
func TestResetsAreThrottled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	for _, row := range []struct {
		name    string
		email   func(n int) string
		address func(n int) string
		most    int
	}{
		{"an account", func(int) string { return w.owner.Email }, func(n int) string { return "192.0.2." + string(rune('0'+n%10)) }, 5},
		{"an unknown account", func(int) string { return "unknown@example.com" }, func(n int) string { return "192.0.2." + string(rune('0'+n%10)) }, 5},
		{"a /64", eachEmail, func(n int) string { return "2001:db8::" + string(rune('a'+n%6)) }, 20},
		{"a /48", eachEmail, func(n int) string { return "2001:db8:0:" + strings.Repeat("1", 1+n%4) + "::1" }, 100},
	} {
		now := time.Now()
		options, mail := w.options, &letters{}
		options.Mail, options.Now = mail, func() time.Time { return now }
		s := service.New(w.store, options)
		asked := 0
		for n := range 200 {
			if err := s.ForgotPassword(ctx, row.email(n), service.Client{Address: row.address(n)}); err == nil {
				asked++
			} else if !errors.Is(err, dmarcd.ErrLimit) {
				t.Fatal(err)
			}
		}
		if asked == 0 || asked > row.most {
			t.Errorf("%s: got %d requests, want at most %d", row.name, asked, row.most)
		}
	}
	now := time.Now()
	options, mail := w.options, &letters{}
	options.Mail, options.Now = mail, func() time.Time { return now }
	s, sent := service.New(w.store, options), 0
	for range 60 { // one a minute
		now = now.Add(time.Minute)
		w.must(s.ForgotPassword(ctx, w.owner.Email, service.Client{Address: "192.0.2.9"}))
		sent += len(w.posted(s, mail))
	}
	if sent == 0 || sent > 7 {
		t.Errorf("got %d messages within an hour, want a few", sent)
	}
}

func eachEmail(n int) string {
	return "a" + strings.Repeat("b", n%50) + string(rune('a'+n/50)) + "@example.com"
}

// TestExpiredLinksArePurged leaves no row of a link behind.
func TestExpiredLinksArePurged(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		_, hash := auth.NewLink()
		w.must(w.store.CreateMailedLink(ctx, hash, dmarcd.MailedLink{Kind: dmarcd.LinkPassword, User: w.owner.ID, Email: w.owner.Email, ExpiresAt: time.Now().Add(-time.Second)}))
		musttest.Get(w.store.PurgeSignIns(ctx))(t)
		var left int
		w.must(db.SQL(t).QueryRowContext(ctx, `SELECT count(*) FROM mailed_links`).Scan(&left))
		if left != 0 {
			t.Errorf("got %d rows, want none", left)
		}
	})
}

// TestConfirmAddress confirms the address of a user, and another one, which becomes theirs.
func TestConfirmAddress(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		const cy, next = "cy@example.com", "cy@other.example"
		w := newWorld(t, db)
		s, mail := w.mailing()
		_, hash := auth.NewInvitation()
		w.must(w.store.CreateInvitation(ctx, hash, dmarcd.Invitation{Email: cy, Team: w.team.ID, Role: dmarcd.RoleEditor, ExpiresAt: time.Now().Add(time.Hour)}))
		musttest.Get(w.store.UseInvitation(ctx, hash, dmarcd.Claim{PasswordHash: cheapHash(oldPassword)}))(t)
		client := service.Client{Address: "192.0.2.7"}
		client.Session = musttest.Get(s.SignIn(ctx, cy, oldPassword, client))(t)
		account := func() *service.Account { return musttest.Get(s.Account(ctx, client))(t) }
		if !account().User.VerifiedAt.IsZero() {
			t.Error("a link that was not mailed: got a verified address, want none")
		}
		ask := func(email string) string {
			t.Helper()
			w.must(account().SetEmail(ctx, email))
			return w.mailedTo(w.posted(s, mail), email)
		}
		rejects := func(what string, by *service.Account, link string, want error) {
			t.Helper()
			before := db.Dump(t)
			if err := by.ConfirmAddress(ctx, link); !errors.Is(err, want) || db.Dump(t) != before {
				t.Errorf("%s: got %v, want %v and nothing changed", what, err, want)
			}
		}
		link := ask(cy)
		rejects("the link of another user", musttest.Get(s.Account(ctx, w.browser(w.member)))(t), link, dmarcd.ErrNotFound)
		rejects("a malformed link", account(), "x", dmarcd.ErrNotFound)
		if err := s.ResetPassword(ctx, link, newPassword, client); !errors.Is(err, dmarcd.ErrNotFound) {
			t.Errorf("as a link to set a password: got %v, want ErrNotFound", err)
		}
		w.must(account().ConfirmAddress(ctx, link))
		if user := account().User; user.Email != cy || user.VerifiedAt.IsZero() {
			t.Errorf("got %+v, want a verified address", user)
		}
		if entry := w.entries()[0]; entry.Action != "user.address" || entry.Actor != cy || entry.Target != cy {
			t.Errorf("got the entry %+v", entry)
		}
		rejects("a used link", account(), link, dmarcd.ErrNotFound)
		rejects("an address of another user", account(), ask(w.owner.Email), dmarcd.ErrConflict)

		link, other := ask(next), ask("cy@third.example")
		w.must(s.ForgotPassword(ctx, cy, client))
		reset := w.mailedTo(w.posted(s, mail), cy)
		w.must(account().ConfirmAddress(ctx, link))
		if sent := w.posted(s, mail); len(sent) != 1 || sent[0].to != cy || sent[0].team != "Your address for dmarcd was changed" {
			t.Errorf("got the letters %+v, want one to the previous address", sent)
		}
		if user := account().User; user.Email != next || user.VerifiedAt.IsZero() {
			t.Errorf("got %+v, want the other address", user)
		}
		rejects("a link from before", account(), other, dmarcd.ErrNotFound)
		if _, err := s.ResettableUser(ctx, reset); !errors.Is(err, dmarcd.ErrNotFound) {
			t.Errorf("a link to set a password, at the previous address: got %v, want ErrNotFound", err)
		}
		if _, err := s.SignIn(ctx, cy, oldPassword, client); !errors.Is(err, dmarcd.ErrUnauthorized) {
			t.Errorf("the previous address: got %v, want ErrUnauthorized", err)
		}
		client.Session = musttest.Get(s.SignIn(ctx, next, oldPassword, client))(t)
	})
}

// addressSecret is that of addressLink.
var addressSecret, addressHash = auth.NewLink()

// addressLink makes a link to confirm an address of a user, and returns its secret.
func (w *world) addressLink(a *service.Account) string {
	w.Helper()
	w.must(w.store.CreateMailedLink(ctx, addressHash, dmarcd.MailedLink{
		Kind: dmarcd.LinkAddress, User: a.User.ID, Email: "cy@other.example", ExpiresAt: time.Now().Add(time.Minute),
	}))
	return addressSecret
}

// browser returns a client that is signed in as a user.
func (w *world) browser(user dmarcd.User) service.Client {
	w.Helper()
	sessions := auth.NewSessions(w.store, time.Now, nil)
	return service.Client{Session: musttest.Get(sessions.Begin(ctx, dmarcd.SignIn{User: user, PasswordHash: "x"}, auth.Client{}, ""))(w)}
}

// TestNewBrowsers signs in with browsers that are known and new to a user.
func TestNewBrowsers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		const cy, subject = "cy@example.com", "New sign-in to dmarcd"
		w := newWorld(t, db)
		now := time.Now()
		clock := func() time.Time { return now }
		w.store = db.Open(t, store.Options{Now: clock})
		options, mail := w.options, &letters{}
		options.Mail, options.Now = mail, clock
		w.service = service.New(w.store, options)
		s := w.service
		w.signIn(cy) // two browsers
		if sent := w.posted(s, mail); len(sent) != 0 {
			t.Errorf("a new user: got the letters %+v, want none", sent)
		}
		secret, _ := auth.NewLink()
		client := service.Client{Address: "192.0.2.9", UserAgent: "Firefox/140.0", Browser: secret}
		for _, row := range []struct {
			name    string
			after   time.Duration
			browser string
			want    bool
		}{
			{"another browser", 2 * time.Hour, secret, true},
			{"the same", time.Minute, secret, false},
			{"the same, later", 89 * 24 * time.Hour, secret, false},
			{"the same, much later", 91 * 24 * time.Hour, secret, true},
			{"one without cookies", time.Minute, "", true},
			{"a malformed cookie", time.Minute, "x", true},
		} {
			now = now.Add(row.after)
			client.Browser = row.browser
			musttest.Get(s.SignIn(ctx, cy, oldPassword, client))(t)
			if sent := w.posted(s, mail); len(sent) != map[bool]int{true: 1}[row.want] || row.want && (sent[0].to != cy || sent[0].team != subject) {
				t.Errorf("%s: got the letters %+v, want one: %t", row.name, sent, row.want)
			}
			mail.sent = nil
		}
		if _, err := s.SignIn(ctx, cy, "not that one", client); !errors.Is(err, dmarcd.ErrUnauthorized) || len(w.posted(s, mail)) != 0 {
			t.Errorf("a wrong password: got %v and the letters %+v, want none", err, mail.sent)
		}
		sent := 0
		for range 120 { // one who knows the password does not flood the mailbox
			musttest.Get(s.SignIn(ctx, cy, oldPassword, client))(t)
			sent += len(w.posted(s, mail))
			mail.sent = nil
		}
		var rows int
		w.must(db.SQL(t).QueryRowContext(ctx, `SELECT count(*) FROM browsers`).Scan(&rows))
		if sent > 5 || rows > 100 {
			t.Errorf("got %d letters and %d rows, want few", sent, rows)
		}
		now = now.Add(91 * 24 * time.Hour)
		for more := true; more; {
			more = musttest.Get(w.store.PurgeSignIns(ctx))(t)
		}
		w.must(db.SQL(t).QueryRowContext(ctx, `SELECT count(*) FROM browsers`).Scan(&rows))
		if rows != 0 {
			t.Errorf("got %d rows after 91 days, want none", rows)
		}
	})
}
