package realmail_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/imap"
)

// letter returns a mail whose subject is a number.
func letter(n int) string {
	return fmt.Sprintf("From: reporter@example.net\nSubject: %d\n\nreport %d\n", n, n)
}

// wired is a mail as IMAP delivers it.
func wired(mail string) string { return strings.ReplaceAll(mail, "\n", "\r\n") }

// mailboxReader reads the mailbox of a server.
type mailboxReader struct {
	imap.Reader

	bodies   chan string
	statuses chan error
}

// newMailboxReader returns a reader that hands over what it reads through a channel.
func newMailboxReader(t *testing.T, d *dovecot) *mailboxReader {
	t.Helper()
	r := &mailboxReader{bodies: make(chan string, 1000), statuses: make(chan error, 1000)}
	r.Reader = imap.Reader{
		Mailbox: dmarcd.Mailbox{
			ID: 1, Team: 1, Host: "127.0.0.1", Port: d.port, Security: dmarcd.SecurityNone,
			Username: mailboxUser, Method: dmarcd.LoginPassword, Folder: "INBOX", After: dmarcd.AfterKeep,
		},
		Login: imap.Login{Password: mailboxPassword}, MaxBytes: 1 << 20, Interval: time.Minute, Folder: t.TempDir(),
		Accept: func(_ context.Context, messages []imap.Message) error {
			for _, m := range messages {
				body, err := io.ReadAll(m.Body)
				if err != nil {
					return err
				}
				r.bodies <- m.Rejection + string(body)
			}
			return nil
		},
		SaveState: func(_ context.Context, state imap.State) error {
			r.Mailbox.UIDValidity, r.Mailbox.LastUID = state.UIDValidity, state.LastUID
			return nil
		},
		Status: func(_ context.Context, err error) { r.statuses <- err },
		Log:    slog.New(slog.DiscardHandler),
		Dial:   (&net.Dialer{}).DialContext,
	}
	return r
}

// start runs the reader until the function that it returns is called, or the test
// ends.
func (r *mailboxReader) start(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	reader := r.Reader // r.Mailbox is what is kept
	go func() { done <- reader.Run(ctx) }()
	stopped := false
	stop = func() {
		cancel()
		if !stopped {
			stopped = true
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(stop)
	return stop
}

// want waits for the mails of those numbers, in order.
func (r *mailboxReader) want(t *testing.T, numbers ...int) {
	t.Helper()
	limit := time.After(mailLimit)
	for _, n := range numbers {
		select {
		case got := <-r.bodies:
			if got != wired(letter(n)) {
				t.Fatalf("got the mail %q, want number %d", got, n)
			}
		case <-limit:
			t.Fatalf("mail %d has not come after %v", n, mailLimit)
		}
	}
}

// looked waits for a look that ended well.
func (r *mailboxReader) looked(t *testing.T) {
	t.Helper()
	limit := time.After(mailLimit)
	for {
		select {
		case err := <-r.statuses:
			if err == nil {
				return
			}
		case <-limit:
			t.Fatalf("no look has ended well after %v", mailLimit)
		}
	}
}

func TestMailboxIsReadAndWatched(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	d := startDovecot(t)
	var numbers []int
	for n := range 50 {
		numbers = append(numbers, n)
		d.deliver(t, letter(n))
	}
	r := newMailboxReader(t, d)
	stop := r.start(t)
	// A Maildir does not keep the order of deliveries within a moment.
	var got []string
	for range numbers {
		select {
		case body := <-r.bodies:
			got = append(got, body)
		case <-time.After(mailLimit):
			t.Fatalf("got %d mails after %v, want %d", len(got), mailLimit, len(numbers))
		}
	}
	slices.Sort(got)
	if unique := slices.Compact(slices.Clone(got)); len(unique) != len(numbers) {
		t.Errorf("got %d different mails, want %d", len(unique), len(numbers))
	}
	r.looked(t)
	d.deliver(t, letter(100)) // IDLE tells
	r.want(t, 100)
	r.looked(t)
	d.deliver(t, letter(101))
	r.want(t, 101)
	stop()
	d.deliver(t, letter(102))
	r.start(t) // goes on where it was
	r.want(t, 102)
}

func TestMailboxIsReadOnAfterItsSessionWasKilled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	d := startDovecot(t)
	r := newMailboxReader(t, d)
	r.start(t)
	for n := range 3 {
		r.looked(t)
		if d.killSessions(t) != 1 {
			t.Fatal("there is no session to kill")
		}
		d.deliver(t, letter(n))
		r.want(t, n)
	}
}

func TestMailboxIsReadAgainAfterItWasRenumbered(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	d := startDovecot(t)
	r := newMailboxReader(t, d)
	stop := r.start(t)
	d.deliver(t, letter(1))
	r.want(t, 1)
	r.looked(t)
	stop()
	before := r.Mailbox.UIDValidity
	d.renumber(t)
	stop = r.start(t)
	r.want(t, 1)
	r.looked(t)
	stop()
	if after := r.Mailbox.UIDValidity; after == before || before == 0 {
		t.Errorf("got UIDVALIDITY %d after %d, want another", after, before)
	}
}

func TestMailboxIsMarkedAsItIsSet(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	for _, row := range []struct {
		after      dmarcd.AfterReading
		inbox, box int  // mails in INBOX and in Read
		seen       bool // those in INBOX
	}{
		{after: dmarcd.AfterKeep, inbox: 2},
		{after: dmarcd.AfterFlag, inbox: 2, seen: true},
		{after: dmarcd.AfterMove, box: 2},
		{after: dmarcd.AfterDelete},
	} {
		t.Run(string(row.after), func(t *testing.T) {
			t.Parallel()
			d := startDovecot(t)
			d.deliver(t, letter(1))
			r := newMailboxReader(t, d)
			r.Mailbox.After, r.Mailbox.MoveTo = row.after, "Read"
			stop := r.start(t)
			r.want(t, 1)
			r.looked(t)
			d.deliver(t, letter(2))
			r.want(t, 2)
			r.looked(t)
			stop()
			inbox, box := d.files(t, ""), d.files(t, ".Read")
			if len(inbox) != row.inbox || len(box) != row.box {
				t.Errorf("got %d mails in INBOX and %d in Read, want %d and %d", len(inbox), len(box), row.inbox, row.box)
			}
			for _, name := range inbox {
				// Maildir writes flags at the end of the name: S is seen.
				if seen := strings.HasSuffix(name, "S"); seen != row.seen {
					t.Errorf("got %s seen: %v, want %v", name, seen, row.seen)
				}
			}
		})
	}
}

func TestMailboxStatesWhatIsWrong(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	d := startDovecot(t)
	for _, row := range []struct {
		name    string
		change  func(*imap.Reader)
		message string
	}{
		{"nothing", func(*imap.Reader) {}, ""},
		{"the password", func(r *imap.Reader) { r.Login.Password = "guess" }, "the server rejected the login: NO [AUTHENTICATIONFAILED]"},
		{"the folder", func(r *imap.Reader) { r.Mailbox.Folder = "Nowhere" }, `open the folder "Nowhere": NO Mailbox doesn't exist`},
		{"STARTTLS", func(r *imap.Reader) { r.Mailbox.Security = dmarcd.SecuritySTARTTLS }, "STARTTLS with"},
		{"TLS", func(r *imap.Reader) { r.Mailbox.Security = dmarcd.SecurityTLS }, "TLS handshake"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newMailboxReader(t, d)
			row.change(&r.Reader)
			err := r.Try(t.Context())
			if row.message == "" && err != nil || row.message != "" && (err == nil || !strings.Contains(err.Error(), row.message)) {
				t.Errorf("got error %v, want %q", err, row.message)
			}
		})
	}
}
