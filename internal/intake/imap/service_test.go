package imap_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/imap"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

// fakeStore is a store of mailboxes shared by several processes, with the lease rules of the
// real one.
type fakeStore struct {
	mu        sync.Mutex
	mailboxes map[dmarcd.MailboxID]dmarcd.Mailbox
	crashes   map[dmarcd.MailboxID]int
	away      bool
}

func newFakeStore(ids ...dmarcd.MailboxID) *fakeStore {
	s := &fakeStore{mailboxes: map[dmarcd.MailboxID]dmarcd.Mailbox{}, crashes: map[dmarcd.MailboxID]int{}}
	for _, id := range ids {
		s.add(id)
	}
	return s
}

func (s *fakeStore) add(id dmarcd.MailboxID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := dmarcd.Mailbox{
		ID: id, Team: 7, Host: "imap.example.org", Port: 143, Security: dmarcd.SecurityNone,
		Username: user, Method: dmarcd.LoginPassword, Folder: "INBOX", After: dmarcd.AfterKeep,
	}
	m.Secret, _ = openSeal{}.Seal(imap.Credentials{Password: password}.Encode(), m.SecretContext())
	s.mailboxes[id] = m
}

func (s *fakeStore) remove(id dmarcd.MailboxID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mailboxes, id)
}

func (s *fakeStore) setAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

// mailbox returns a stored mailbox.
func (s *fakeStore) mailbox(id dmarcd.MailboxID) dmarcd.Mailbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mailboxes[id]
}

func (s *fakeStore) ClaimMailboxes(_ context.Context, lease time.Duration, limit int) ([]dmarcd.Mailbox, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return nil, dmarcd.ErrTemporary
	}
	var claimed []dmarcd.Mailbox
	for id, m := range s.mailboxes {
		if len(claimed) < limit && !m.LeaseUntil.After(time.Now()) && m.PausedAt.IsZero() {
			m.LeaseUntil = time.Now().Add(lease)
			s.mailboxes[id] = m
			claimed = append(claimed, m)
		}
	}
	return claimed, nil
}

func (s *fakeStore) RenewMailboxes(_ context.Context, held []dmarcd.Mailbox, lease time.Duration) ([]dmarcd.Mailbox, error) {
	return s.setLeases(held, time.Now().Add(lease))
}

func (s *fakeStore) ReleaseMailboxes(_ context.Context, held []dmarcd.Mailbox) error {
	_, err := s.setLeases(held, time.Time{})
	return err
}

func (s *fakeStore) setLeases(held []dmarcd.Mailbox, until time.Time) ([]dmarcd.Mailbox, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return nil, dmarcd.ErrTemporary
	}
	var stored []dmarcd.Mailbox
	for _, m := range held {
		if row, ok := s.mailboxes[m.ID]; ok && row.LeaseUntil.Equal(m.LeaseUntil) && row.PausedAt.IsZero() {
			row.LeaseUntil = until
			s.mailboxes[m.ID] = row
			m.LeaseUntil = until
			stored = append(stored, m)
		}
	}
	return stored, nil
}

func (s *fakeStore) change(id dmarcd.MailboxID, f func(*dmarcd.Mailbox)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.mailboxes[id]
	if !ok {
		return dmarcd.ErrNotFound
	}
	f(&m)
	s.mailboxes[id] = m
	return nil
}

func (s *fakeStore) SaveMailboxState(_ context.Context, id dmarcd.MailboxID, uidValidity, lastUID uint32) error {
	return s.change(id, func(m *dmarcd.Mailbox) { m.UIDValidity, m.LastUID = uidValidity, lastUID })
}

func (s *fakeStore) SaveMailboxStatus(_ context.Context, id dmarcd.MailboxID, problem string) error {
	return s.change(id, func(m *dmarcd.Mailbox) { m.Error, m.SeenAt = problem, time.Now() })
}

func (s *fakeStore) SaveMailboxSecret(_ context.Context, id dmarcd.MailboxID, sealed []byte) error {
	return s.change(id, func(m *dmarcd.Mailbox) { m.Secret = sealed })
}

func (s *fakeStore) CountMailboxCrash(_ context.Context, id dmarcd.MailboxID) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.crashes[id]++
	return s.crashes[id], nil
}

func (s *fakeStore) PauseMailbox(_ context.Context, id dmarcd.MailboxID, reason string) error {
	return s.change(id, func(m *dmarcd.Mailbox) { m.Error, m.PausedAt = reason, time.Now() })
}

// openSeal does not encrypt, but checks the context.
type openSeal struct{}

func (openSeal) Seal(plain []byte, context string) ([]byte, error) {
	return append([]byte(context+"\n"), plain...), nil
}

func (openSeal) Open(sealed []byte, context string) ([]byte, error) {
	plain, ok := bytes.CutPrefix(sealed, []byte(context+"\n"))
	if !ok {
		return nil, errors.New("sealed for something else")
	}
	return plain, nil
}

// readers records which mailboxes are read.
type readers struct {
	mu      sync.Mutex
	reading []dmarcd.MailboxID
}

func (r *readers) read(ctx context.Context, m dmarcd.Mailbox) error {
	r.mu.Lock()
	r.reading = append(r.reading, m.ID)
	r.mu.Unlock()
	<-ctx.Done()
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.Index(r.reading, m.ID)
	r.reading = slices.Delete(r.reading, at, at+1)
	return nil
}

func (r *readers) want(t *testing.T, when string, ids ...dmarcd.MailboxID) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	got := slices.Sorted(slices.Values(r.reading))
	if !slices.Equal(got, ids) {
		t.Errorf("%s: got %v read, want %v", when, got, ids)
	}
}

// start runs a function until stop is called.
func start(t *testing.T, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestSupervisorFollowsWhatThereIs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store, read := newFakeStore(1, 2), &readers{}
		supervisor := &imap.Supervisor{Leases: store, Read: read.read, Log: slog.New(slog.DiscardHandler)}
		stop := start(t, supervisor.Run)
		after(time.Second)
		read.want(t, "at the start", 1, 2)
		store.add(3)
		after(4 * time.Second)
		read.want(t, "after one was added", 1, 2, 3)
		store.remove(2)
		after(4 * time.Second)
		read.want(t, "after one was removed", 1, 3)
		after(time.Hour)
		read.want(t, "after an hour", 1, 3)
		stop()
		read.want(t, "at the end")
		if m := store.mailbox(1); !m.LeaseUntil.IsZero() {
			t.Errorf("got a lease until %v at the end, want none", m.LeaseUntil)
		}
	})
}

func TestSupervisorClaimsMany(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var ids []dmarcd.MailboxID
		for i := range 250 {
			ids = append(ids, dmarcd.MailboxID(i+1))
		}
		read := &readers{}
		supervisor := &imap.Supervisor{Leases: newFakeStore(ids...), Read: read.read, Log: slog.New(slog.DiscardHandler)}
		stop := start(t, supervisor.Run)
		after(time.Second)
		read.want(t, "at the start", ids...)
		stop()
	})
}

func TestSupervisorsShareMailboxes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store, first, second := newFakeStore(1), &readers{}, &readers{}
		quiet := slog.New(slog.DiscardHandler)
		stopFirst := start(t, (&imap.Supervisor{Leases: store, Read: first.read, Log: quiet}).Run)
		after(time.Second)
		stopSecond := start(t, (&imap.Supervisor{Leases: store, Read: second.read, Log: quiet}).Run)
		after(10 * time.Minute)
		first.want(t, "the first", 1)
		second.want(t, "the second")
		stopFirst()
		after(4 * time.Second)
		second.want(t, "the second, after the first has left", 1)
		stopSecond()
	})
}

func TestSupervisorLetsGoBeforeItsLeaseEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store, read := newFakeStore(1), &readers{}
		supervisor := &imap.Supervisor{Leases: store, Read: read.read, Log: slog.New(slog.DiscardHandler)}
		stop := start(t, supervisor.Run)
		after(time.Second)
		store.setAway(true)
		after(10 * time.Second)
		read.want(t, "shortly after the store went away", 1)
		after(16 * time.Second)
		if left := time.Until(store.mailbox(1).LeaseUntil); left <= 0 {
			t.Fatalf("the lease ended %v ago: the test looks too late", -left)
		}
		read.want(t, "shortly before the lease ends")
		store.setAway(false)
		after(30 * time.Second)
		read.want(t, "after the store is back", 1)
		stop()
	})
}

func TestServiceReadsForTheTeamOfTheMailbox(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := serve(t, allCaps(), nil)
		s.deliver("INBOX", mail(1))
		store := newFakeStore(1)
		var accepted []dmarcd.TeamID
		service := &imap.Service{
			Leases: store, Sealer: openSeal{}, MaxBytes: 4096, Interval: time.Minute, Folder: t.TempDir(), Dial: s.dial,
			Team: func(id dmarcd.TeamID) imap.MailboxStore {
				if id != 7 {
					t.Errorf("got the team %v, want 7", id)
				}
				return store
			},
			Accept: func(_ context.Context, m dmarcd.Mailbox, messages []imap.Message) error {
				for range messages {
					accepted = append(accepted, m.Team)
				}
				return nil
			},
			Log: slog.New(slog.DiscardHandler),
		}
		stop := start(t, service.Run)
		after(time.Second)
		stop()
		if !slices.Equal(accepted, []dmarcd.TeamID{7}) {
			t.Errorf("got messages for the teams %v, want one for 7", accepted)
		}
		m := store.mailbox(1)
		if m.LastUID != 1 || m.UIDValidity == 0 || m.Error != "" || m.SeenAt.IsZero() {
			t.Errorf("got the mailbox %+v, want its state and a good status", m)
		}
	})
}

func TestServiceRemovesWhatACrashLeft(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		folder := t.TempDir()
		for _, name := range []string{"dmarcd-tmp-1", "dmarcd-tmp-2", "other"} {
			musttest.Do(t, os.WriteFile(filepath.Join(folder, name), []byte("left"), 0o600))
		}
		service := &imap.Service{Leases: newFakeStore(), Folder: folder, Log: slog.New(slog.DiscardHandler)}
		stop := start(t, service.Run)
		after(time.Second)
		stop()
		left := musttest.Get(os.ReadDir(folder))(t)
		if len(left) != 1 || left[0].Name() != "other" {
			t.Errorf("got %v left, want only the file of others", left)
		}
	})
}

// TestServicePausesAMailboxThatCrashesItsReader gives one of two mailboxes a message that
// causes a panic.
func TestServicePausesAMailboxThatCrashesItsReader(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := serve(t, allCaps(), nil)
		s.deliver("INBOX", mail(1))
		store := newFakeStore(1, 2)
		folder := t.TempDir()
		var mu sync.Mutex
		accepted, stacks := map[dmarcd.MailboxID]int{}, 0
		service := &imap.Service{
			Leases: store, Sealer: openSeal{}, MaxBytes: 4096, Interval: time.Minute, Folder: folder, Dial: s.dial,
			Team: func(dmarcd.TeamID) imap.MailboxStore { return store },
			Accept: func(_ context.Context, m dmarcd.Mailbox, _ []imap.Message) error {
				mu.Lock()
				defer mu.Unlock()
				accepted[m.ID]++
				if m.ID == 1 {
					panic("poison")
				}
				return nil
			},
			Recovered: func(e *recovered.Error) {
				mu.Lock()
				defer mu.Unlock()
				if e.Where == "mailbox" && strings.Contains(string(e.Stack), "TestServicePauses") {
					stacks++
				}
			},
			Log: slog.New(slog.DiscardHandler),
		}
		stop := start(t, service.Run)
		after(10 * time.Second)
		if m := store.mailbox(1); !m.PausedAt.IsZero() || !strings.Contains(m.Error, "tried once more") {
			t.Errorf("after one crash: got %+v, want the problem shown", m)
		}
		after(time.Hour)
		if m := store.mailbox(1); m.PausedAt.IsZero() || !strings.HasPrefix(m.Error, "Paused: ") {
			t.Errorf("after two crashes: got %+v, want it paused with the reason", m)
		}
		stop()
		if accepted[1] != 2 || stacks != 2 || accepted[2] != 1 {
			t.Errorf("got %v accepted and %d stacks, want two crashes and the other mailbox read", accepted, stacks)
		}
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
			t.Errorf("got the files %v (%v), want none left by a crash", left, err)
		}
	})
}

func TestServiceStatesThatASecretDoesNotOpen(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := newFakeStore(1, 2)
		other := store.mailbox(2).Secret
		musttest.Do(t, store.SaveMailboxSecret(t.Context(), 1, other))
		store.remove(2)
		service := &imap.Service{
			Leases: store, Sealer: openSeal{}, Log: slog.New(slog.DiscardHandler),
			Team: func(dmarcd.TeamID) imap.MailboxStore { return store },
		}
		stop := start(t, service.Run)
		after(time.Hour)
		stop()
		if got := store.mailbox(1).Error; !strings.Contains(got, "sealed for something else") {
			t.Errorf("got the status %q, want the reason", got)
		}
	})
}
