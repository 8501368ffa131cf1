package realmail_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/imap"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/secret"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// TestMailboxOfATeam reads a mailbox that is kept in a database with a sealed
// password, while it is added and removed.
func TestMailboxOfATeam(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	d := startDovecot(t)
	s := storetest.SQLite(t).Open(t, store.Options{})
	created := storetest.Team(t, s, "acme")
	team := s.Team(created.ID)
	key := secret.File(filepath.Join(t.TempDir(), "secret.key"))
	musttest.Get(key.Subkey("test"))(t) // creates it
	bodies := make(chan string, 10)
	service := &imap.Service{
		Leases: s, Sealer: key, MaxBytes: 1 << 20, Interval: time.Minute, Folder: t.TempDir(),
		Team: func(id dmarcd.TeamID) imap.MailboxStore { return s.Team(id) },
		Accept: func(_ context.Context, _ dmarcd.Mailbox, messages []imap.Message) error {
			for _, m := range messages {
				body, err := io.ReadAll(m.Body)
				if err != nil {
					return err
				}
				bodies <- string(body)
			}
			return nil
		},
		Log:  slog.New(slog.DiscardHandler),
		Dial: (&net.Dialer{}).DialContext,
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- service.Run(ctx) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()

	d.deliver(t, letter(1))
	added, err := team.AddMailbox(t.Context(), dmarcd.Mailbox{
		Host: "127.0.0.1", Port: d.port, Security: dmarcd.SecurityNone, Username: mailboxUser,
		Method: dmarcd.LoginPassword, Folder: "INBOX", After: dmarcd.AfterFlag,
	}, func(m dmarcd.Mailbox) ([]byte, error) {
		return key.Seal(imap.Credentials{Password: mailboxPassword}.Encode(), m.SecretContext())
	})
	musttest.Do(t, err)
	select {
	case got := <-bodies:
		if got != wired(letter(1)) {
			t.Errorf("got the mail %q, want the first", got)
		}
	case <-time.After(mailLimit):
		t.Fatal("the mail has not come")
	}
	var stored dmarcd.Mailbox
	daemon.Eventually(t, mailLimit, "the look is kept", func() bool {
		all, err := team.Mailboxes(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatalf("got %d mailboxes (%v), want 1", len(all), err)
		}
		stored = all[0]
		return !stored.SeenAt.IsZero()
	})
	if stored.LastUID == 0 || stored.UIDValidity == 0 || stored.Error != "" {
		t.Errorf("got the mailbox %+v, want its state and no error", stored)
	}
	if n := len(d.sessions(t)); n != 1 {
		t.Errorf("got %d sessions, want 1 that waits", n)
	}
	musttest.Do(t, team.RemoveMailbox(t.Context(), added.ID))
	daemon.Eventually(t, mailLimit, "no reader of a mailbox that was removed", func() bool { return len(d.sessions(t)) == 0 })
}
