package spool_test

import (
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/spool"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

func TestMain(m *testing.M) {
	if folder := os.Getenv(fillVariable); folder != "" {
		fill(folder)
		return
	}
	goleak.VerifyTestMain(m)
}

// storage is where the spools of a test have their messages: in their folder, or in a
// database.
type storage struct {
	create func(testing.TB) storetest.DB // nil for files
	db     storetest.DB
}

// fresh returns the same kind of storage with its own database.
func (on storage) fresh(t *testing.T) storage {
	t.Helper()
	if on.create != nil {
		on.db = on.create(t)
	}
	return on
}

// onFilesAndSQLite runs a test with files and with an SQLite database, which works in a
// bubble of synctest.
func onFilesAndSQLite(t *testing.T, test func(t *testing.T, on storage)) {
	t.Helper()
	for name, on := range map[string]storage{"files": {}, "sqlite": {create: storetest.SQLite}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, on.fresh(t))
		})
	}
}

// onEach runs a test with files and with a database of each engine.
func onEach(t *testing.T, test func(t *testing.T, on storage)) {
	t.Helper()
	onFilesAndSQLite(t, test)
	if testing.Short() {
		return
	}
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, storage{create: storetest.Postgres}.fresh(t))
	})
}

// configuration returns the configuration of a new process.
func (on storage) configuration(t *testing.T, folder string) spool.Config {
	t.Helper()
	config := configuration(folder)
	if on.create != nil {
		config.Database = on.db.Open(t, store.Options{})
	}
	return config
}

var compareAddresses = cmpopts.EquateComparable(netip.Addr{})

func configuration(folder string) spool.Config {
	return spool.Config{
		Folder: folder,
		Limits: spool.Limits{Bytes: 1 << 20, Entries: 100},
		Log:    slog.New(slog.DiscardHandler),
		Now:    time.Now,
	}
}

// open opens a spool that is closed when the test ends.
func open(t *testing.T, config spool.Config) *spool.Spool {
	t.Helper()
	return openFaulty(t, config, &spool.Faults{})
}

func openFaulty(t *testing.T, config spool.Config, faults *spool.Faults) *spool.Spool {
	t.Helper()
	s := musttest.Get(spool.OpenFaulty(config, faults))(t)
	t.Cleanup(func() { _ = s.Close() }) // fails if the test has closed it
	return s
}

func envelope(helo string) spool.Envelope {
	return spool.Envelope{
		RemoteIP:   netip.MustParseAddr("192.0.2.1"),
		Helo:       helo,
		MailFrom:   "noreply@reporter.example",
		Recipients: []spool.Recipient{{Mailbox: "abc", Team: 7}},
		ReceivedAt: time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC),
	}
}

// put writes and commits a message.
func put(s *spool.Spool, text string, e spool.Envelope) error {
	draft, err := s.Create(e)
	if err != nil {
		return err
	}
	defer draft.Discard()
	if _, err := io.WriteString(draft, text); err != nil {
		return err
	}
	return draft.Commit(e.ReceivedAt)
}

func mustPut(t *testing.T, s *spool.Spool, text string) {
	t.Helper()
	musttest.Do(t, put(s, text, envelope("mail.reporter.example")))
}

func contents(t *testing.T, e *spool.Entry) string {
	t.Helper()
	mail := musttest.Get(e.Open())(t)
	defer mail.Close() //nolint:errcheck // read-only
	text := musttest.Get(io.ReadAll(mail))(t)
	return string(text)
}

// texts returns the content of all messages in a spool.
func texts(t *testing.T, s *spool.Spool) []string {
	t.Helper()
	all := []string{}
	for _, e := range s.List() {
		all = append(all, contents(t, e))
	}
	return all
}

// files returns the paths in a folder with a suffix.
func files(t *testing.T, folder, ending string) []string {
	t.Helper()
	return musttest.Get(filepath.Glob(filepath.Join(folder, "*"+ending)))(t)
}

func TestCommittedMailSurvives(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, on storage) {
		tests := []struct{ name, text string }{
			{"ordinary", "From: a@example.com\r\n\r\nbody\r\n"},
			{"empty", ""},
			{"every octet", "\x00\x01\xff\r\n.\r\n\n"},
			{"looks like an envelope", "{}\x00\x00\x00\x02dmarcd-spool-1\n"},
			{"large", strings.Repeat("0123456789abcdef", 1<<12)},
		}
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				on := on.fresh(t)
				folder := filepath.Join(t.TempDir(), "spool")
				s := open(t, on.configuration(t, folder))
				mustPut(t, s, test.text)
				musttest.Do(t, s.Close())

				entries := open(t, on.configuration(t, folder)).List()
				if len(entries) != 1 {
					t.Fatalf("got %d entries want 1", len(entries))
				}
				if got := contents(t, entries[0]); got != test.text {
					t.Errorf("got %q want %q", got, test.text)
				}
				if got, want := entries[0].Size, int64(len(test.text)); got != want {
					t.Errorf("got size %d want %d", got, want)
				}
				if diff := cmp.Diff(envelope("mail.reporter.example"), entries[0].Envelope, compareAddresses); diff != "" {
					t.Errorf("envelope (-want +got):\n%s", diff)
				}
			})
		}
	})
}

func TestOldestComesFirst(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, on storage) {
		folder := t.TempDir()
		config := on.configuration(t, folder)
		// The clock stops, then is set back: the order must not depend on it.
		now := time.Unix(1_800_000_000, 0)
		config.Now = func() time.Time { return now }
		s := open(t, config)
		mustPut(t, s, "first")
		mustPut(t, s, "second")
		musttest.Do(t, s.Close())
		now = now.Add(-time.Hour)
		s = open(t, config)
		mustPut(t, s, "third")
		if diff := cmp.Diff([]string{"first", "second", "third"}, texts(t, s)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestUnfinishedDraftLeavesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, on storage) {
		tests := []struct {
			name   string
			finish func(*spool.Spool, *spool.Draft) error
		}{
			{"discarded", func(s *spool.Spool, d *spool.Draft) error {
				d.Discard()
				d.Discard()
				return s.Close()
			}},
			{"the process ends", func(s *spool.Spool, _ *spool.Draft) error { return s.Close() }},
		}
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				on := on.fresh(t)
				folder := t.TempDir()
				s := open(t, on.configuration(t, folder))
				draft := musttest.Get(s.Create(envelope("a")))(t)
				musttest.Get(draft.Write([]byte("half a mail")))(t)
				musttest.Do(t, test.finish(s, draft))
				if got := texts(t, open(t, on.configuration(t, folder))); len(got) != 0 {
					t.Errorf("got %q want nothing", got)
				}
				if got := files(t, folder, ".draft"); len(got) != 0 {
					t.Errorf("got %q want no drafts", got)
				}
			})
		}
	})
}

func TestDamagedFileIsPutAside(t *testing.T) {
	t.Parallel()
	const footer = "dmarcd-spool-1\n"
	tests := []struct{ name, text string }{
		{"empty", ""},
		{"no footer", "From: a@example.com\r\n\r\nbody, and more of it\r\n"},
		{"envelope longer than the file", "{}\x00\x00\x00\xff" + footer},
		{"envelope longer than any", "{}\xff\xff\xff\xff" + footer},
		{"no recipient", "{}\x00\x00\x00\x02" + footer},
		{"envelope is no JSON", "{]\x00\x00\x00\x02" + footer},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			musttest.Do(t, os.WriteFile(filepath.Join(folder, "0000000000000000001.mail"), []byte(test.text), 0o600))
			s := open(t, configuration(folder))
			mustPut(t, s, "good")
			if diff := cmp.Diff([]string{"good"}, texts(t, s)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			stored, err := os.ReadFile(filepath.Join(folder, "0000000000000000001.damaged"))
			if err != nil || string(stored) != test.text {
				t.Errorf("got %q, %v want %q", stored, err, test.text)
			}
		})
	}
}

func TestSecondProcessIsLockedOut(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := open(t, configuration(folder))
	draft := musttest.Get(s.Create(envelope("a")))(t)
	defer draft.Discard()
	if second, err := spool.Open(configuration(folder)); err == nil {
		_ = second.Close()
		t.Error("got a second spool on the same folder want an error")
	} else if !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("got %v want that the folder is in use", err)
	}
	if err := draft.Commit(time.Now()); err != nil {
		t.Errorf("got %v want the draft untouched", err)
	}
}

func TestRejections(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, on storage) {
		tests := []struct {
			name   string
			limits spool.Limits
			faults spool.Faults
			want   error
		}{
			{name: "bytes", limits: spool.Limits{Bytes: 29, Entries: 10}, want: spool.ErrFull},
			{name: "entries", limits: spool.Limits{Bytes: 100, Entries: 3}, want: spool.ErrFull},
			{name: "free disk", limits: spool.Limits{Bytes: 100, Entries: 10, FreeBytes: 1 << 20}, faults: spool.Faults{FreeBytes: new(int64)}, want: spool.ErrFull},
			{name: "full disk", limits: spool.Limits{Bytes: 100, Entries: 10}, faults: spool.Faults{FullDevice: true}, want: spool.ErrFull},
			// Of files only: the copy of a message in a database need not be durable.
			{name: "full disk noticed late", limits: spool.Limits{Bytes: 100, Entries: 10}, faults: spool.Faults{Sync: syscall.ENOSPC}, want: spool.ErrFull},
			{name: "quota", limits: spool.Limits{Bytes: 100, Entries: 10}, faults: spool.Faults{Rename: syscall.EDQUOT}, want: spool.ErrFull},
			{name: "broken disk", limits: spool.Limits{Bytes: 100, Entries: 10}, faults: spool.Faults{Sync: syscall.EIO}, want: syscall.EIO},
			{name: "name is not durable", limits: spool.Limits{Bytes: 100, Entries: 10}, faults: spool.Faults{SyncFolder: syscall.EIO}, want: syscall.EIO},
		}
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				on := on.fresh(t)
				if f := test.faults; on.create != nil && (f.Sync != nil || f.Rename != nil || f.SyncFolder != nil) {
					return
				}
				folder := t.TempDir()
				config := on.configuration(t, folder)
				config.Limits = test.limits
				var faults spool.Faults
				s := openFaulty(t, config, &faults)
				mustPutWithFree(t, s, &faults)

				faults = test.faults
				err := put(s, "0123456789", envelope("a"))
				if !errors.Is(err, test.want) || !errors.Is(err, dmarcd.ErrTemporary) {
					t.Errorf("got %v want %v, temporary", err, test.want)
				}
				if diff := cmp.Diff([]string{"0123456789"}, texts(t, s)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if got := len(files(t, folder, ".mail")) + len(files(t, folder, ".draft")); got != 1 {
					t.Errorf("got %d files want 1", got)
				}
				if entries, bytes := s.Stats(); entries != 1 || bytes != 10 {
					t.Errorf("got %d entries, %d bytes want 1, 10", entries, bytes)
				}

				// After the fault, messages are accepted again.
				faults = spool.Faults{}
				musttest.Do(t, s.Remove(s.List()[0]))
				mustPutWithFree(t, s, &faults)
			})
		}
	})
}

// mustPutWithFree commits a message on a disk with enough free space.
func mustPutWithFree(t *testing.T, s *spool.Spool, faults *spool.Faults) {
	t.Helper()
	faults.FreeBytes = new(int64(1 << 40))
	mustPut(t, s, "0123456789")
}

func TestFailedDraftStaysFailed(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, on storage) {
		config := on.configuration(t, t.TempDir())
		config.Limits.Bytes = 5
		s := open(t, config)
		draft := musttest.Get(s.Create(envelope("a")))(t)
		defer draft.Discard()
		if _, err := draft.Write([]byte("too much")); !errors.Is(err, spool.ErrFull) {
			t.Fatalf("got %v want %v", err, spool.ErrFull)
		}
		if _, err := draft.Write([]byte("ok")); !errors.Is(err, spool.ErrFull) {
			t.Errorf("got %v want the error to stay", err)
		}
		if err := draft.Commit(time.Now()); !errors.Is(err, spool.ErrFull) {
			t.Errorf("got %v want the error to stay", err)
		}
	})
}

func TestDiskFillsWhileWriting(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, on storage) {
		config := on.configuration(t, t.TempDir())
		config.Limits = spool.Limits{Bytes: 8 << 20, Entries: 10, FreeBytes: 1000}
		free := int64(1000)
		s := openFaulty(t, config, &spool.Faults{FreeBytes: &free})
		draft := musttest.Get(s.Create(envelope("a")))(t)
		defer draft.Discard()
		free = 999
		if _, err := draft.Write(make([]byte, 2<<20)); !errors.Is(err, spool.ErrFull) {
			t.Errorf("got %v want %v", err, spool.ErrFull)
		}
	})
}

func TestEnvelopeHasALimit(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, on storage) {
		s := open(t, on.configuration(t, t.TempDir()))
		if err := put(s, "mail", envelope(strings.Repeat("x", 2<<20))); !errors.Is(err, dmarcd.ErrLimit) {
			t.Errorf("got %v want %v", err, dmarcd.ErrLimit)
		}
		if got := texts(t, s); len(got) != 0 {
			t.Errorf("got %q want nothing", got)
		}
	})
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, on storage) {
		s := open(t, on.configuration(t, t.TempDir()))
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for range 5 {
					if err := put(s, "mail", envelope("a")); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		if entries, bytes := s.Stats(); entries != 40 || bytes != 160 {
			t.Errorf("got %d entries, %d bytes want 40, 160", entries, bytes)
		}
		if s.Age() <= 0 {
			t.Errorf("got age %v want that of the oldest", s.Age())
		}
		for _, e := range s.List() {
			if err := s.Remove(e); err != nil {
				t.Error(err)
			}
			if err := s.Remove(e); err != nil {
				t.Errorf("again: %v", err)
			}
		}
		if entries, bytes := s.Stats(); entries != 0 || bytes != 0 {
			t.Errorf("got %d entries, %d bytes want none", entries, bytes)
		}
		if s.Age() != 0 {
			t.Errorf("got age %v of an empty spool want 0", s.Age())
		}
	})
}
