package imap_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/imap"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// got is a message passed to Accept.
type got struct {
	uid       uint32
	body      string
	rejection string
}

// testReader is a Reader that records what it receives.
type testReader struct {
	t      *testing.T
	reader *imap.Reader
	log    bytes.Buffer

	mu       sync.Mutex
	messages []got
	state    imap.State
	statuses []string // "" for success
	// fail, if set, is called before a message is accepted.
	fail func() error
}

// newTestReader returns a Reader for a mailbox on the server.
func newTestReader(t *testing.T, s *server) *testReader {
	t.Helper()
	d := &testReader{t: t}
	d.reader = &imap.Reader{
		Mailbox: dmarcd.Mailbox{
			ID: 1, Team: 2, Host: "imap.example.org", Port: 143, Security: dmarcd.SecurityNone,
			Username: user, Method: dmarcd.LoginPassword, Folder: "INBOX", After: dmarcd.AfterKeep,
		},
		Login: imap.Login{Password: password}, MaxBytes: 4096, Interval: time.Minute, Folder: t.TempDir(),
		Accept: d.accept, SaveState: d.save, Status: d.status,
		Log: slog.New(slog.NewTextHandler(&d.log, nil)), Dial: s.dial,
	}
	return d
}

func (d *testReader) accept(_ context.Context, messages []imap.Message) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		if err := d.fail(); err != nil {
			return err
		}
	}
	for _, m := range messages {
		var body []byte
		if m.Body != nil {
			var err error
			if body, err = io.ReadAll(m.Body); err != nil {
				d.t.Error(err)
			}
		}
		d.messages = append(d.messages, got{m.UID, string(body), m.Rejection})
	}
	return nil
}

func (d *testReader) save(_ context.Context, state imap.State) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state = state
	return nil
}

func (d *testReader) status(_ context.Context, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.statuses = append(d.statuses, err.Error())
		return
	}
	d.statuses = append(d.statuses, "")
}

// run runs the reader during f, and checks its state at the end.
func (d *testReader) run(f func()) {
	d.t.Helper()
	ctx, stop := context.WithCancel(d.t.Context())
	done := make(chan error, 1)
	go func() { done <- d.reader.Run(ctx) }()
	f()
	stop()
	if err := <-done; err != nil {
		d.t.Errorf("Run returned %v", err)
	}
	if strings.Contains(d.log.String()+strings.Join(d.statuses, " "), password) {
		d.t.Error("the password was told")
	}
	if left, err := os.ReadDir(d.reader.Folder); err != nil || len(left) > 0 {
		d.t.Errorf("got %d files left (%v), want none", len(left), err)
	}
}

// after advances the clock and waits until all goroutines block.
func after(d time.Duration) {
	time.Sleep(d) // in a bubble: no real time passes
	synctest.Wait()
}

// want compares the received messages with numbers, in order.
func (d *testReader) want(numbers ...int) {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	var bodies, wanted []string
	for _, m := range d.messages {
		bodies = append(bodies, m.body+m.rejection)
	}
	for _, n := range numbers {
		wanted = append(wanted, mail(n))
	}
	if fmt.Sprintf("%q", bodies) != fmt.Sprintf("%q", wanted) {
		d.t.Errorf("got %d messages %.300q, want %d", len(bodies), bodies, len(wanted))
	}
}

func (d *testReader) lastStatus() string {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.statuses) == 0 {
		d.t.Fatal("no status was told")
	}
	return d.statuses[len(d.statuses)-1]
}

func upTo(n int) []int {
	var numbers []int
	for i := range n {
		numbers = append(numbers, i+1)
	}
	return numbers
}

// inBubble runs a test with a fake clock.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

func TestReaderCatchesUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := serve(t, allCaps(), nil)
		for _, n := range upTo(45) {
			s.deliver("INBOX", mail(n))
		}
		d := newTestReader(t, s)
		d.run(func() { after(time.Second) })
		d.want(upTo(45)...)
		if d.state.LastUID != 45 || d.state.UIDValidity == 0 {
			t.Errorf("got the state %+v, want one up to 45", d.state)
		}
		if all, unseen, _ := s.count("INBOX"); all != 45 || unseen != 45 {
			t.Errorf("got %d messages, %d unseen, want both 45: reading must leave no trace", all, unseen)
		}
		if d.lastStatus() != "" {
			t.Errorf("got the status %q, want a good one", d.lastStatus())
		}
	})
}

func TestReaderGoesOnWhereItWas(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := serve(t, allCaps(), nil)
		for _, n := range upTo(5) {
			s.deliver("INBOX", mail(n))
		}
		first := newTestReader(t, s)
		first.run(func() { after(time.Second) })
		second := newTestReader(t, s)
		second.reader.Mailbox.UIDValidity, second.reader.Mailbox.LastUID = first.state.UIDValidity, 3
		second.run(func() { after(time.Second) })
		second.want(4, 5)
	})
}

func TestReaderSeesWhatComes(t *testing.T) {
	for _, row := range []struct {
		name   string
		faults faults
		within time.Duration
		// not is a time at which the message must not have arrived yet.
		not time.Duration
	}{
		{name: "announced by IDLE", within: time.Second},
		{name: "looked for without IDLE", faults: faults{wire: withoutWord("IDLE")}, not: 30 * time.Second, within: time.Minute},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := serve(t, allCaps(), nil)
				s.set(row.faults)
				d := newTestReader(t, s)
				d.run(func() {
					after(time.Second)
					for _, n := range upTo(3) {
						s.deliver("INBOX", mail(n))
						if row.not > 0 {
							after(row.not)
							d.want(upTo(n - 1)...)
						}
						after(row.within - row.not)
						d.want(upTo(n)...)
						after(5 * time.Second)
					}
					after(2 * time.Hour) // IDLE is renewed
					s.deliver("INBOX", mail(4))
					after(row.within + time.Second)
					d.want(1, 2, 3, 4)
				})
				if n := len(s.dialled()); n != 1 {
					t.Errorf("got %d connections, want 1 that holds", n)
				}
			})
		})
	}
}

func TestReaderStopsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTestReader(t, serve(t, allCaps(), nil))
		var began time.Time
		d.run(func() {
			after(time.Minute)
			began = time.Now()
		})
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("it took %v to stop, want 3s at most", took)
		}
	})
}

func TestReaderRejectsWhatIsTooLarge(t *testing.T) {
	large := "Subject: large\r\n\r\n" + strings.Repeat("x", 5000)
	wide := "Subject: " + strings.Repeat("x", 70<<10) + "\r\n\r\nbody"
	for _, row := range []struct {
		name    string
		message string
		body    string
	}{
		{name: "of a large message the header is kept", message: large, body: "Subject: large\r\n\r\n"},
		{name: "of a large header nothing is", message: wide},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := serve(t, allCaps(), nil)
				s.deliver("INBOX", mail(1))
				s.deliver("INBOX", row.message)
				s.deliver("INBOX", mail(3))
				d := newTestReader(t, s)
				d.reader.Mailbox.After = dmarcd.AfterDelete
				d.run(func() { after(time.Second) })
				if len(d.messages) != 3 {
					t.Fatalf("got %d messages, want 3", len(d.messages))
				}
				rejected := d.messages[1]
				if want := fmt.Sprintf("The message has %d bytes; 4096 are taken.", len(row.message)); rejected.rejection != want || rejected.body != row.body {
					t.Errorf("got %.100q refused for %q, want %q for %q", rejected.body, rejected.rejection, row.body, want)
				}
				if all, unseen, deleted := s.count("INBOX"); all != 1 || unseen != 1 || deleted != 0 {
					t.Errorf("got %d messages left, %d unseen, %d deleted, want the refused one untouched", all, unseen, deleted)
				}
				if d.state.LastUID != 3 {
					t.Errorf("got the state %+v, want one up to 3", d.state)
				}
			})
		})
	}
}

func TestReaderMarksWhatWasRead(t *testing.T) {
	// folder is the final state of INBOX or Read. INBOX starts with two unread messages and
	// one that another client has read and flagged as deleted.
	type folder struct{ all, unseen, deleted uint32 }
	plain := goimap.CapSet{goimap.CapIMAP4rev1: {}}
	uidplus := goimap.CapSet{goimap.CapIMAP4rev1: {}, goimap.CapUIDPlus: {}}
	for _, row := range []struct {
		name        string
		after       dmarcd.AfterReading
		caps        goimap.CapSet
		create      bool
		reject      func() error
		inbox, read folder
		message     string
	}{
		{name: "kept", after: dmarcd.AfterKeep, caps: allCaps(), create: true, inbox: folder{3, 3, 1}},
		{name: "flagged", after: dmarcd.AfterFlag, caps: allCaps(), create: true, inbox: folder{3, 1, 1}},
		{name: "deleted", after: dmarcd.AfterDelete, caps: allCaps(), create: true, inbox: folder{1, 1, 1}},
		{name: "deleted without UIDPLUS: no other messages are expunged", after: dmarcd.AfterDelete, caps: plain, create: true, inbox: folder{3, 3, 3}},
		{name: "moved", after: dmarcd.AfterMove, caps: allCaps(), create: true, inbox: folder{1, 1, 1}, read: folder{2, 2, 0}},
		{name: "moved to a folder that was missing", after: dmarcd.AfterMove, caps: allCaps(), inbox: folder{1, 1, 1}, read: folder{2, 2, 0}},
		{name: "moved without MOVE", after: dmarcd.AfterMove, caps: uidplus, create: true, inbox: folder{1, 1, 1}, read: folder{2, 2, 0}},
		{name: "moved without MOVE and UIDPLUS", after: dmarcd.AfterMove, caps: plain, inbox: folder{3, 3, 3}, read: folder{2, 2, 0}},
		{
			name: "not allowed to move", after: dmarcd.AfterMove, caps: allCaps(), create: true, reject: noPermission,
			inbox: folder{3, 3, 1}, message: "move processed messages: NO [NOPERM] not allowed",
		},
		{
			name: "not allowed to copy: nothing is deleted", after: dmarcd.AfterMove, caps: uidplus, create: true, reject: noPermission,
			inbox: folder{3, 3, 1}, message: "move processed messages: NO [NOPERM] not allowed",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := serve(t, row.caps, nil)
				if row.create {
					s.create("Read")
				}
				s.deliver("INBOX", mail(1), goimap.FlagDeleted)
				s.deliver("INBOX", mail(2))
				s.deliver("INBOX", mail(3))
				d := newTestReader(t, s)
				d.reader.Mailbox.After, d.reader.Mailbox.MoveTo = row.after, "Read"
				s.set(faults{copied: row.reject})
				validity := uidValidity(t, s)
				d.reader.Mailbox.UIDValidity, d.reader.Mailbox.LastUID = validity, 1
				d.run(func() { after(time.Second) })
				d.want(2, 3)
				for name, want := range map[string]folder{"INBOX": row.inbox, "Read": row.read} {
					var got folder
					got.all, got.unseen, got.deleted = s.count(name)
					if got != want {
						t.Errorf("%s: got %+v, want %+v", name, got, want)
					}
				}
				if got := d.lastStatus(); got != row.message {
					t.Errorf("got the status %q, want %q", got, row.message)
				}
				if d.state.LastUID != 3 {
					t.Errorf("got the state %+v, want one up to 3: what is kept is read", d.state)
				}
				if row.message != "" && !strings.Contains(d.log.String(), "could not mark") {
					t.Error("the log does not tell it")
				}
			})
		})
	}
}

func uidValidity(t *testing.T, s *server) uint32 {
	t.Helper()
	data := musttest.Get(s.user.Status("INBOX", &goimap.StatusOptions{UIDValidity: true}))(t)
	return data.UIDValidity
}

// other is another client of the mailbox.
type other struct {
	t      *testing.T
	client *imapclient.Client
}

func connectOther(t *testing.T, s *server) *other {
	t.Helper()
	conn := musttest.Get(s.dial(t.Context(), "", ""))(t)
	client := imapclient.New(conn, nil)
	t.Cleanup(func() { _ = client.Close() }) // the server may have stopped
	musttest.Do(t, client.Login(user, password).Wait())
	musttest.Get(client.Select("INBOX", nil).Wait())(t)
	return &other{t: t, client: client}
}

func (o *other) expunge(uid goimap.UID) {
	flag := &goimap.StoreFlags{Op: goimap.StoreFlagsAdd, Silent: true, Flags: []goimap.Flag{goimap.FlagDeleted}}
	if err := o.client.Store(goimap.UIDSetNum(uid), flag, nil).Close(); err != nil {
		o.t.Error(err)
	}
	if err := o.client.UIDExpunge(goimap.UIDSetNum(uid)).Close(); err != nil {
		o.t.Error(err)
	}
}
