package backend_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/outbound"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/internal/web"
	"github.com/dmarcd/dmarcd/internal/web/backend"
)

func TestMailboxErrorsStandAtTheirFields(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t))
	_, viewer := s.owner(t, "acme", "ann@example.com")
	mailboxes := s.Team(viewer).Mailboxes
	for _, row := range []struct {
		name  string
		wrong func(*web.NewMailbox)
		field string
	}{
		{"no server", func(m *web.NewMailbox) { m.Server = "" }, "server"},
		{"a port that is none", func(m *web.NewMailbox) { m.Server = "imap.example.org:imaps" }, "server"},
		{"port 0", func(m *web.NewMailbox) { m.Server = "imap.example.org:0" }, "server"},
		{"no user", func(m *web.NewMailbox) { m.Username = " " }, "username"},
		{"another encryption", func(m *web.NewMailbox) { m.Security = "rot13" }, "security"},
		{"moved to nowhere", func(m *web.NewMailbox) { m.After = "move" }, "after"},
	} {
		wanted := sampleMailbox()
		row.wrong(&wanted)
		var invalid *dmarcd.InvalidError
		if err := mailboxes.AddMailbox(t.Context(), wanted); !errors.As(err, &invalid) || invalid.Field != row.field {
			t.Errorf("%s: got %#v, want an error at %s", row.name, err, row.field)
		}
	}
	if err := mailboxes.AddMailbox(t.Context(), sampleMailbox()); err != nil {
		t.Fatal(err)
	}
	added, err := mailboxes.Mailboxes(t.Context())
	if err != nil || len(added) != 1 || added[0].Host != "imap.example.org:1993" {
		t.Errorf("got %+v and %v, want the one that is right", added, err)
	}
}

// TestMailboxFormFindsNobody wants one answer, after one time, whatever is at an
// address that is no mail server, and the reason in the log.
func TestMailboxFormFindsNobody(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t))
	_, viewer := s.owner(t, "acme", "ann@example.com")
	outcomes := map[string]time.Duration{}
	for _, row := range []struct {
		name  string
		takes time.Duration
	}{
		{"connection refused", 0},
		{"a certificate of somebody else", 300 * time.Millisecond},
		{"a server of something else that says nothing", time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			s.tryMailbox = func(ctx context.Context, _ dmarcd.Mailbox, _ string) error {
				select {
				case <-time.After(row.takes):
				case <-ctx.Done():
				}
				return errors.New(row.name)
			}
			began := time.Now()
			var invalid *dmarcd.InvalidError
			if err := s.Team(viewer).Mailboxes.AddMailbox(t.Context(), sampleMailbox()); !errors.As(err, &invalid) || invalid.Field != "server" {
				t.Fatalf("%s: got %#v, want an error at the server", row.name, err)
			}
			outcomes[invalid.Message] = time.Since(began)
			if len(outcomes) != 1 || outcomes[invalid.Message] != 10*time.Second {
				t.Errorf("%s: got the answers %v, want one, after ten seconds", row.name, outcomes)
			}
		})
		if !strings.Contains(s.log.String(), row.name) {
			t.Errorf("%s: got the log %s, want the reason in it", row.name, s.log)
		}
	}
}

// TestMailboxRefusalsAreTold has a mail server refuse something, which is told at once.
func TestMailboxRefusalsAreTold(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t))
	_, viewer := s.owner(t, "acme", "ann@example.com")
	want := &dmarcd.InvalidError{Field: "password", Message: "Another one."}
	s.tryMailbox = func(context.Context, dmarcd.Mailbox, string) error { return want }
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := s.Team(viewer).Mailboxes.AddMailbox(t.Context(), sampleMailbox())
		if !errors.Is(err, want) || time.Since(began) != 0 {
			t.Errorf("got %v after %s, want %v at once", err, time.Since(began), want)
		}
	})
}

// TestMailboxProblems wants operators to see why a mailbox is not read, and others
// nothing that tells what is at an address.
func TestMailboxProblems(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t))
	team, owner := s.owner(t, "acme", "ann@example.com")
	s.fill(t, team)
	operator := owner
	operator.Operator = true
	boxes, err := team.Mailboxes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shown := func(viewer web.Viewer, problem string) string {
		t.Helper()
		if err := team.SaveMailboxStatus(t.Context(), boxes[0].ID, problem); err != nil {
			t.Fatal(err)
		}
		found, err := s.Team(viewer).Mailboxes.Mailboxes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return found[0].Error
	}
	answers := map[string]bool{}
	for _, reason := range []string{"connection refused", "i/o timeout", "greet: SSH-2.0-OpenSSH"} {
		problem := fmt.Sprintf("connect to 10.0.0.1:22: %s", reason)
		answers[shown(owner, problem)] = true
		if got := shown(operator, problem); got != problem {
			t.Errorf("an operator: got %q, want %q", got, problem)
		}
	}
	if len(answers) != 1 {
		t.Errorf("an owner: got %v, want one answer for all", answers)
	}
	for problem, want := range map[string]string{
		"connect to mail.example:993: " + outbound.ErrRefused.Error(): backend.AddressRefused, "the server refuses the login: NO not today": "The server refuses the login.", "": "",
	} {
		if got := shown(owner, problem); got != want {
			t.Errorf("%q: got %q, want %q", problem, got, want)
		}
	}
}

// TestMailboxFormIsThrottled has a user guess the password of a mailbox: each failure
// is in the audit log, and the server is asked ever more rarely.
func TestMailboxFormIsThrottled(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t))
	team, viewer := s.owner(t, "acme", "ann@example.com")
	_, other := s.owner(t, "globex", "bob@example.com")
	tried := 0
	s.tryMailbox = func(context.Context, dmarcd.Mailbox, string) error {
		tried++
		return &dmarcd.InvalidError{Field: "password", Message: "The server refuses the login."}
	}
	var invalid *dmarcd.InvalidError
	for range 20 {
		if err := s.Team(viewer).Mailboxes.AddMailbox(t.Context(), sampleMailbox()); !errors.As(err, &invalid) {
			t.Fatalf("got %v, want an error at a field", err)
		}
	}
	if tried != 5 || invalid.Field != "server" || !strings.Contains(invalid.Message, "Try again in") {
		t.Errorf("got %d attempts and %+v, want 5, and to wait", tried, invalid)
	}
	entries, err := team.Audit(t.Context(), store.AuditFilter{Action: "mailbox.login_failed"}, store.Cursor{}, 100)
	if err != nil || len(entries) != 5 {
		t.Fatalf("got %d entries (%v), want one for each attempt", len(entries), err)
	}
	if e := entries[0]; e.Actor != "ann@example.com" || e.Target != "reports at imap.example.org:1993" || strings.Contains(e.Target+e.Detail, "open sesame") {
		t.Errorf("got %+v, want who tried what, without the password", e)
	}
	if err := s.Team(other).Mailboxes.AddMailbox(t.Context(), sampleMailbox()); !errors.As(err, &invalid) || invalid.Field != "password" {
		t.Errorf("another team: got %v, want it to be tried", err)
	}
}
