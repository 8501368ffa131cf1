package store_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// reportsMailbox describes a mailbox as an operator does.
func reportsMailbox() dmarcd.Mailbox {
	return dmarcd.Mailbox{
		Host: "imap.example.org", Port: 993, Security: dmarcd.SecurityTLS,
		Username: "reports@example.org", Method: dmarcd.LoginPassword,
		Folder: "INBOX", After: dmarcd.AfterMove, MoveTo: "Read",
	}
}

// sealFor does not encrypt: it shows what is sealed for which id.
func sealFor(m dmarcd.Mailbox) ([]byte, error) { return []byte("for " + m.SecretContext()), nil }

func addMailbox(t *testing.T, team *store.Team) dmarcd.Mailbox {
	t.Helper()
	return musttest.Get(team.AddMailbox(t.Context(), reportsMailbox(), sealFor))(t)
}

func onlyMailbox(t *testing.T, team *store.Team) dmarcd.Mailbox {
	t.Helper()
	all, err := team.Mailboxes(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("got %d mailboxes (%v), want 1", len(all), err)
	}
	return all[0]
}

func TestMailboxIsStoredAsItWasAdded(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		team := newTeam(t, s, "acme")
		added := addMailbox(t, team)
		if diff := cmp.Diff(added, onlyMailbox(t, team)); diff != "" {
			t.Errorf("the list differs from what was added:\n%s", diff)
		}
		want := reportsMailbox()
		want.ID, want.Team, want.CreatedAt = added.ID, added.Team, added.CreatedAt
		if diff := cmp.Diff(want, added); diff != "" {
			t.Errorf("added other than described:\n%s", diff)
		}
		claimed, err := s.ClaimMailboxes(t.Context(), time.Minute, 10)
		if err != nil || len(claimed) != 1 {
			t.Fatalf("got %d claimed (%v), want 1", len(claimed), err)
		}
		if got, want := string(claimed[0].Secret), "for "+added.SecretContext(); got != want {
			t.Errorf("got the secret %q, want %q", got, want)
		}
		if owner, err := s.TeamOfMailbox(t.Context(), added.ID); err != nil || owner != added.Team {
			t.Errorf("got the owner %v (%v), want %v", owner, err, added.Team)
		}
	})
}

func TestMailboxThatCannotBeReadIsRejected(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		change func(*dmarcd.Mailbox)
		field  string
	}{
		{"no host", func(m *dmarcd.Mailbox) { m.Host = "" }, "host"},
		{"a URL for a host", func(m *dmarcd.Mailbox) { m.Host = "imap://example.org" }, "host"},
		{"no port", func(m *dmarcd.Mailbox) { m.Port = 0 }, "port"},
		{"a port too high", func(m *dmarcd.Mailbox) { m.Port = 65536 }, "port"},
		{"an unknown security", func(m *dmarcd.Mailbox) { m.Security = "ssl" }, "security"},
		{"no user", func(m *dmarcd.Mailbox) { m.Username = "" }, "user"},
		{"a user of two lines", func(m *dmarcd.Mailbox) { m.Username = "a\r\nb" }, "user"},
		{"an unknown method", func(m *dmarcd.Mailbox) { m.Method = "guess" }, "method"},
		{"no folder", func(m *dmarcd.Mailbox) { m.Folder = "" }, "folder"},
		{"a folder too long", func(m *dmarcd.Mailbox) { m.Folder = strings.Repeat("a", 501) }, "folder"},
		{"an unknown end", func(m *dmarcd.Mailbox) { m.After = "burn" }, "after"},
		{"moved nowhere", func(m *dmarcd.Mailbox) { m.MoveTo = "" }, "after"},
		{"moved to where it is", func(m *dmarcd.Mailbox) { m.MoveTo = m.Folder }, "after"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			m := reportsMailbox()
			row.change(&m)
			var invalid *dmarcd.InvalidError
			if err := m.Validate(); !errors.As(err, &invalid) || invalid.Field != row.field {
				t.Errorf("got error %v, want an InvalidError of the field %s", err, row.field)
			}
		})
	}
}

// TestFailingMailboxes has a mailbox fail, first for a short time.
func TestFailingMailboxes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		clock := newClock()
		s := db.Open(t, store.Options{Now: clock.Now})
		team := newTeam(t, s, "acme")
		mailbox := addMailbox(t, team)
		want := func(when string, count int) {
			t.Helper()
			found, err := s.FailingMailboxes(t.Context(), clock.Now().Add(-time.Hour))
			if err != nil || len(found) != count {
				t.Errorf("%s: got %v, %v; want %d mailboxes", when, found, err, count)
			}
		}
		status := func(problem string) {
			t.Helper()
			musttest.Do(t, team.SaveMailboxStatus(t.Context(), mailbox.ID, problem))
		}
		status("")
		clock.advance(30 * time.Minute)
		status("the password is wrong")
		want("after half an hour", 0)
		clock.advance(31 * time.Minute)
		want("after an hour", 1)
		status("")
		want("when it is read again", 0)
		musttest.Do(t, team.PauseMailbox(t.Context(), mailbox.ID, "it crashed its reader"))
		want("when it is paused", 1)
	})
}

func TestMailboxStateAndStatus(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		clock := newClock()
		team := newTeam(t, db.Open(t, store.Options{Now: clock.Now}), "acme")
		want := addMailbox(t, team)
		step := func(name string, err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if diff := cmp.Diff(want, onlyMailbox(t, team)); diff != "" {
				t.Errorf("after %s:\n%s", name, diff)
			}
		}
		want.UIDValidity, want.LastUID = 1<<32-1, 1<<32-2
		step("the state", team.SaveMailboxState(t.Context(), want.ID, want.UIDValidity, want.LastUID))
		want.SeenAt = clock.Now()
		step("a good look", team.SaveMailboxStatus(t.Context(), want.ID, ""))
		clock.advance(time.Minute)
		want.Error, want.ErrorAt = "the password is wrong", clock.Now()
		step("a bad look", team.SaveMailboxStatus(t.Context(), want.ID, want.Error))
		clock.advance(time.Minute)
		want.Error, want.ErrorAt, want.SeenAt = "", time.Time{}, clock.Now()
		step("another good check", team.SaveMailboxStatus(t.Context(), want.ID, ""))
		step("another secret", team.SaveMailboxSecret(t.Context(), want.ID, []byte("new")))
		musttest.Do(t, team.RemoveMailbox(t.Context(), want.ID))
		for name, err := range map[string]error{
			"RemoveMailbox":     team.RemoveMailbox(t.Context(), want.ID),
			"SaveMailboxState":  team.SaveMailboxState(t.Context(), want.ID, 1, 1),
			"SaveMailboxStatus": team.SaveMailboxStatus(t.Context(), want.ID, "late"),
			"PauseMailbox":      team.PauseMailbox(t.Context(), want.ID, "late"),
			"ResumeMailbox":     team.ResumeMailbox(t.Context(), want.ID),
			"SaveMailboxSecret": team.SaveMailboxSecret(t.Context(), want.ID, []byte("late")),
		} {
			if !errors.Is(err, dmarcd.ErrNotFound) {
				t.Errorf("%s of a removed mailbox: got %v, want ErrNotFound", name, err)
			}
		}
	})
}

func TestPausedMailboxIsNotRead(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		clock := newClock()
		s := db.Open(t, store.Options{Now: clock.Now})
		team := newTeam(t, s, "acme")
		want := addMailbox(t, team)
		claim := func(wanted int) []dmarcd.Mailbox {
			t.Helper()
			claimed, err := s.ClaimMailboxes(t.Context(), time.Minute, 10)
			if err != nil || len(claimed) != wanted {
				t.Fatalf("got %d claimed (%v), want %d", len(claimed), err, wanted)
			}
			return claimed
		}
		held := claim(1)
		for want := 1; want < 3; want++ {
			if got, err := team.CountMailboxCrash(t.Context(), held[0].ID); err != nil || got != want {
				t.Errorf("got %d crashes (%v), want %d", got, err, want)
			}
		}
		musttest.Do(t, team.PauseMailbox(t.Context(), want.ID, "it crashed"))
		want.Error, want.ErrorAt, want.PausedAt = "it crashed", clock.Now(), clock.Now()
		want.LeaseUntil = held[0].LeaseUntil
		if diff := cmp.Diff(want, onlyMailbox(t, team)); diff != "" {
			t.Errorf("paused:\n%s", diff)
		}
		if stored, err := s.RenewMailboxes(t.Context(), held, time.Minute); err != nil || len(stored) != 0 {
			t.Errorf("got %d renewed (%v), want none", len(stored), err)
		}
		clock.advance(time.Hour)
		claim(0)
		musttest.Do(t, team.ResumeMailbox(t.Context(), want.ID))
		want.Error, want.ErrorAt, want.PausedAt = "", time.Time{}, time.Time{}
		if diff := cmp.Diff(want, onlyMailbox(t, team)); diff != "" {
			t.Errorf("resumed:\n%s", diff)
		}
		claim(1)
		if got, err := team.CountMailboxCrash(t.Context(), want.ID); err != nil || got != 1 {
			t.Errorf("resumed: got %d crashes (%v), want 1", got, err)
		}
	})
}

func TestMailboxIsReadByOneProcess(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		const lease = 30 * time.Second
		clock := newClock()
		s := db.Open(t, store.Options{Now: clock.Now})
		addMailbox(t, newTeam(t, s, "acme"))
		claim := func(want int) []dmarcd.Mailbox {
			t.Helper()
			claimed, err := s.ClaimMailboxes(t.Context(), lease, 10)
			if err != nil || len(claimed) != want {
				t.Fatalf("got %d claimed (%v), want %d", len(claimed), err, want)
			}
			return claimed
		}
		renew := func(held []dmarcd.Mailbox, want int) []dmarcd.Mailbox {
			t.Helper()
			stored, err := s.RenewMailboxes(t.Context(), held, lease)
			if err != nil || len(stored) != want {
				t.Fatalf("got %d renewed (%v), want %d", len(stored), err, want)
			}
			return stored
		}
		first := claim(1)
		claim(0)
		clock.advance(20 * time.Second)
		first = renew(first, 1)
		clock.advance(20 * time.Second)
		claim(0) // it was renewed
		clock.advance(11 * time.Second)
		second := claim(1) // the first is late
		renew(first, 0)
		musttest.Do(t, s.ReleaseMailboxes(t.Context(), first))
		claim(0) // what is lost cannot be released
		musttest.Do(t, s.ReleaseMailboxes(t.Context(), second))
		third := claim(1)
		musttest.Do(t, s.Team(third[0].Team).RemoveMailbox(t.Context(), third[0].ID))
		renew(third, 0)
	})
}

func TestMailboxesAreClaimedOnceBySeveral(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		const mailboxes, processes = 20, 4
		s := db.Open(t, store.Options{})
		team := newTeam(t, s, "acme")
		for range mailboxes {
			addMailbox(t, team)
		}
		claimed := make([][]dmarcd.Mailbox, processes)
		var all sync.WaitGroup
		for i := range claimed {
			all.Go(func() {
				var err error
				if claimed[i], err = s.ClaimMailboxes(t.Context(), time.Minute, mailboxes); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		by := map[dmarcd.MailboxID]int{}
		for _, part := range claimed {
			for _, m := range part {
				by[m.ID]++
			}
		}
		// On PostgreSQL a claim skips rows that another has locked: nothing is claimed twice, and
		// the rest is left to the next claim.
		rest := musttest.Get(s.ClaimMailboxes(t.Context(), time.Minute, mailboxes))(t)
		for _, m := range rest {
			by[m.ID]++
		}
		for id, n := range by {
			if n != 1 {
				t.Errorf("%v was claimed %d times", id, n)
			}
		}
		if len(by) != mailboxes {
			t.Errorf("got %d mailboxes claimed, want %d", len(by), mailboxes)
		}
	})
}
