package service_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/outbound"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

const mailboxPassword = "open sesame"

// addMailbox adds the sample mailbox as an actor.
func (w *world) addMailbox(actor service.Actor) error {
	return errorOf(w.service.Team(w.team.ID, actor).AddMailbox(w.Context(), service.NewMailbox{Mailbox: sampleMailbox(), Password: mailboxPassword}))
}

// asOwner is the owner of the team.
func (w *world) asOwner() service.Actor {
	return w.as(w.owner)
}

// failedLogins returns the entries of failed logins, the latest first.
func (w *world) failedLogins() []dmarcd.AuditEntry {
	w.Helper()
	return musttest.Get(w.store.Team(w.team.ID).Audit(w.Context(), store.AuditFilter{Action: "mailbox.login_failed"}, store.Cursor{}, 100))(w)
}

// TestRejectionsAreReportedAtOnce has a mail server refuse something, to a user and on the
// command line.
func TestRejectionsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	rejection := errors.New("NO not you")
	w.tryMailbox = func(context.Context) error {
		return &service.MailboxError{Field: "password", Message: "Another one.", Reason: rejection}
	}
	for _, row := range []struct {
		name   string
		actor  service.Actor
		detail string
	}{
		{"a user", w.asOwner(), "Another one."},
		{"the command line", service.CommandLine(), "NO not you"},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			err := w.addMailbox(row.actor)
			var invalid *dmarcd.InvalidError
			if !errors.As(err, &invalid) || invalid.Field != "password" || !errors.Is(err, rejection) || time.Since(began) != 0 {
				t.Errorf("%s: got %v after %s, want the refusal at once", row.name, err, time.Since(began))
			}
		})
		if got := w.failedLogins()[0]; got.Detail != row.detail {
			t.Errorf("%s: got %+v in the audit log, want %q", row.name, got, row.detail)
		}
	}
}

// TestOperatorsSeeWhatIsWrong wants the reason on the command line at once, and a login
// that only operators may leave out.
func TestOperatorsSeeWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	w.tryMailbox = func(context.Context) error { return errors.New("connection refused") }
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var failed *service.MailboxError
		if err := w.addMailbox(service.CommandLine()); !errors.As(err, &failed) || failed.Reason.Error() != "connection refused" || time.Since(began) != 0 {
			t.Errorf("got %v after %s, want the reason at once", err, time.Since(began))
		}
	})
	untried := service.NewMailbox{Mailbox: sampleMailbox(), Password: mailboxPassword, Untried: true}
	if _, err := w.service.Team(w.team.ID, w.asOwner()).AddMailbox(t.Context(), untried); !errors.Is(err, dmarcd.ErrForbidden) {
		t.Errorf("an owner: got %v, want %v", err, dmarcd.ErrForbidden)
	}
	if _, err := w.service.Team(w.team.ID, service.CommandLine()).AddMailbox(t.Context(), untried); err != nil {
		t.Errorf("the command line: %v", err)
	}
}

// TestMailboxAttemptsAreThrottled has a user guess the password of a mailbox: each failure
// is in the audit log, also where the client leaves, and the server is asked ever more
// rarely.
func TestMailboxAttemptsAreThrottled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	tried := 0
	w.tryMailbox = func(context.Context) error {
		tried++
		return &service.MailboxError{Field: "password", Message: "The server refuses the login.", Reason: errors.New("no")}
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	var invalid *dmarcd.InvalidError
	for range 20 {
		_, err := w.service.Team(w.team.ID, w.asOwner()).AddMailbox(left, service.NewMailbox{Mailbox: sampleMailbox(), Password: mailboxPassword})
		if !errors.As(err, &invalid) {
			t.Fatalf("got %v, want an error at a field", err)
		}
	}
	if tried != 5 || invalid.Field != "host" || !strings.Contains(invalid.Message, "Try again in") {
		t.Errorf("got %d attempts and %+v, want 5, and to wait", tried, invalid)
	}
	entries := w.failedLogins()
	if len(entries) != 5 {
		t.Fatalf("got %d entries, want one for each attempt", len(entries))
	}
	if e := entries[0]; e.Actor != w.owner.Email || e.Target != "reports at imap.example.com:993" || strings.Contains(e.Target+e.Detail, mailboxPassword) {
		t.Errorf("got %+v, want who tried what, without the password", e)
	}
	if strings.Contains(w.log.String(), "audit entry not written") {
		t.Errorf("got the log %s, want no failure of the audit log", w.log.String())
	}
	other := musttest.Get(w.store.CreateTeam(t.Context(), "globex", false))(t)
	session := w.session(w.member)
	session.Role = dmarcd.RoleOwner
	_, err := w.service.Team(other.ID, service.User(session, "")).AddMailbox(t.Context(), service.NewMailbox{Mailbox: sampleMailbox(), Password: mailboxPassword})
	if !errors.As(err, &invalid) || invalid.Field != "password" {
		t.Errorf("another team: got %v, want it to be tried", err)
	}
}

// TestMailboxProblems wants operators to see why a mailbox is not read, and others
// nothing that tells what is at an address.
func TestMailboxProblems(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	owner := w.asOwner()
	session := w.session(w.owner)
	session.User.Operator = true
	operator := service.User(session, "")
	shown := func(actor service.Actor, problem string) string {
		t.Helper()
		w.must(w.store.Team(w.team.ID).SaveMailboxStatus(t.Context(), w.mailbox, problem))
		found := musttest.Get(w.service.Team(w.team.ID, actor).Mailboxes(t.Context()))(t)
		return found[0].Error
	}
	const problem = "connection: connect to 10.0.0.1:22: connection refused"
	if got := shown(operator, problem); got != problem {
		t.Errorf("an operator: got %q, want %q", got, problem)
	}
	if got := shown(owner, problem); strings.Contains(got, "10.0.0.1") || got == "" {
		t.Errorf("an owner: got %q, want a message without the address", got)
	}
	for problem, want := range map[string]string{
		"connect to mail.example:993: " + outbound.ErrNotAllowed.Error(): "An operator can allow its network with DMARCD_OUTBOUND_ALLOW.",
		"sign-in: NO not today": "The sign-in failed.",
		"":                      "",
	} {
		if got := shown(owner, problem); !strings.HasSuffix(got, want) || want == "" && got != "" {
			t.Errorf("%q: got %q, want %q", problem, got, want)
		}
	}
}

// TestForbiddenServersAreNamed has the name of a server resolve to an address that is not
// allowed: that is no secret, and is reported at once.
func TestForbiddenServersAreNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	w.tryMailbox = func(context.Context) error { return fmt.Errorf("connect: %w", outbound.ErrNotAllowed) }
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := w.addMailbox(w.asOwner())
		if invalid := (*dmarcd.InvalidError)(nil); !errors.As(err, &invalid) || invalid.Field != "host" || !strings.Contains(err.Error(), "DMARCD_OUTBOUND_ALLOW") || time.Since(began) != 0 {
			t.Errorf("got %v after %s, want the reason at once", err, time.Since(began))
		}
	})
	w.tryMailbox = func(context.Context) error { return nil }
	for range 20 { // none of them counts as a guess
		w.must(w.addMailbox(w.asOwner()))
	}
}
