package imap_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	goimap "github.com/emersion/go-imap/v2"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

func TestReaderAsksAgainForWhatIsLeftOut(t *testing.T) {
	const missing = "The mail server lists the message, and does not deliver it."
	for _, row := range []struct {
		name      string
		times     int // how often the second body is omitted
		gone      bool
		rejection string
		want      []uint32
	}{
		{name: "left out once", times: 1, want: []uint32{1, 2, 3}},
		{name: "left out always", times: 1000, rejection: missing, want: []uint32{1, 2, 3}},
		{name: "gone meanwhile", times: 1000, gone: true, want: []uint32{1, 3}},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := serve(t, allCaps(), nil)
				for _, n := range upTo(3) {
					s.deliver("INBOX", mail(n))
				}
				other := connectOther(t, s)
				left := row.times
				s.set(faults{fetch: func(uid goimap.UID, options *goimap.FetchOptions) bool {
					if uid != 2 || len(options.BodySection) == 0 || left == 0 {
						return false
					}
					left--
					if row.gone {
						other.expunge(2)
					}
					return true
				}})
				d := newTestReader(t, s)
				d.reader.Mailbox.After = dmarcd.AfterFlag
				d.run(func() { after(time.Second) })
				var uids []uint32
				for _, m := range d.messages {
					uids = append(uids, m.uid)
					if want := map[bool]string{true: row.rejection}[m.uid == 2]; m.rejection != want {
						t.Errorf("message %d: got the refusal %q, want %q", m.uid, m.rejection, want)
					}
				}
				if !slices.Equal(uids, row.want) {
					t.Errorf("got the messages %v, want %v", uids, row.want)
				}
				if _, unseen, _ := s.count("INBOX"); (unseen == 1) != (row.rejection != "") {
					t.Errorf("got %d unseen messages, want the refused ones", unseen)
				}
				if d.state.LastUID != 3 {
					t.Errorf("got the state %+v, want one up to 3", d.state)
				}
			})
		})
	}
}

func TestReaderGoesOnAfterABrokenConnection(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := serve(t, allCaps(), nil)
		const count = 30
		for _, n := range upTo(count) {
			s.deliver("INBOX", mail(n))
		}
		// Wherever it breaks, complete messages are stored and the rest follows later.
		breaks := 0
		s.set(faults{wire: func(conn net.Conn) net.Conn {
			breaks++
			return cutAfter(breaks * 137)(conn)
		}})
		d := newTestReader(t, s)
		d.reader.Mailbox.After = dmarcd.AfterFlag
		d.run(func() { after(24 * time.Hour) })
		d.want(upTo(count)...)
		if _, unseen, _ := s.count("INBOX"); unseen != 0 {
			t.Errorf("got %d messages unmarked, want none: what is owed is done later", unseen)
		}
		if breaks < 10 {
			t.Errorf("got %d connections: the test broke too few", breaks)
		}
	})
}

func TestReaderFindsDeadConnections(t *testing.T) {
	for _, row := range []struct {
		name  string
		bytes int // after which the connection is dead
		limit time.Duration
	}{
		{"from the beginning", 0, 2 * time.Minute},
		{"after the greeting", 200, 2 * time.Minute},
		{"in IDLE", 836, 8 * time.Minute},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := serve(t, allCaps(), nil)
				s.set(faults{wire: silentAfter(row.bytes)})
				d := newTestReader(t, s)
				d.run(func() {
					after(time.Second)
					s.set(faults{}) // the next connection is good
					s.deliver("INBOX", mail(1))
					after(row.limit)
					d.want(1)
				})
				if !slices.ContainsFunc(d.statuses, func(status string) bool { return strings.Contains(status, "the server timed out") }) {
					t.Errorf("got the statuses %q, want one that tells the silence", d.statuses)
				}
			})
		})
	}
}

func TestReaderReadsARenumberedFolderFromItsBeginning(t *testing.T) {
	for _, row := range []struct {
		name     string
		renumber func(t *testing.T, s *server)
	}{
		{"another UIDVALIDITY", func(t *testing.T, s *server) {
			musttest.Do(t, s.user.Delete("INBOX"))
			s.create("INBOX")
			s.deliver("INBOX", mail(1))
			s.deliver("INBOX", mail(2))
		}},
		{"UIDs given twice", func(_ *testing.T, s *server) {
			s.set(faults{opened: func(data *goimap.SelectData) { data.UIDNext = 3 }})
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := serve(t, allCaps(), nil)
				for _, n := range upTo(3) {
					s.deliver("INBOX", mail(n))
				}
				d := newTestReader(t, s)
				d.run(func() {
					after(time.Second)
					d.want(1, 2, 3)
					row.renumber(t, s)
					after(6 * time.Minute)
					d.want(1, 2, 3, 1, 2)
				})
				if !strings.Contains(d.log.String(), "UIDs changed") {
					t.Error("the log does not mention it")
				}
			})
		})
	}
}

func TestReaderNeedsNoUIDNEXT(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := serve(t, allCaps(), nil)
		s.set(faults{opened: func(data *goimap.SelectData) { data.UIDNext = 0 }, wire: withoutWord("UIDNEXT")})
		d := newTestReader(t, s)
		d.reader.Mailbox.After = dmarcd.AfterDelete
		d.run(func() {
			for _, n := range upTo(3) {
				after(time.Second)
				s.deliver("INBOX", mail(n))
				s.deliver("INBOX", mail(n))
			}
			after(10 * time.Minute)
		})
		d.want(1, 1, 2, 2, 3, 3)
		if strings.Contains(d.log.String(), "UIDs changed") {
			t.Error("messages that we have deleted were taken for a renumbered folder")
		}
	})
}

func TestReaderCrossesWideGaps(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := serve(t, allCaps(), nil)
		s.deliver("INBOX", mail(1))
		// The server has used almost all UIDs.
		s.set(faults{opened: func(data *goimap.SelectData) { data.UIDNext = 1<<32 - 1 }})
		d := newTestReader(t, s)
		d.run(func() { after(time.Second) })
		d.want(1)
		if d.state.LastUID != 1<<32-2 {
			t.Errorf("got the state %+v, want one up to the last UID", d.state)
		}
	})
}

func TestReaderWaitsWithAWrongPassword(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := serve(t, allCaps(), nil)
		s.deliver("INBOX", mail(1))
		d := newTestReader(t, s)
		d.reader.Login.Password = "wrong"
		d.run(func() { after(time.Hour) })
		if got, want := d.lastStatus(), "sign-in: the server rejected the login: NO [AUTHENTICATIONFAILED] Authentication failed"; got != want {
			t.Errorf("got the status %q, want %q", got, want)
		}
		if n := len(s.dialled()); n < 12 || n > 25 {
			t.Errorf("got %d logins in an hour, want one every 2.5 to 5 minutes: more looks like an attack", n)
		}
		d.want()
	})
}

func TestReaderTriesForEver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := serve(t, allCaps(), nil)
		s.deliver("INBOX", mail(1))
		s.set(faults{dial: func() error { return errors.New("no route to host") }})
		d := newTestReader(t, s)
		d.run(func() {
			after(24 * time.Hour)
			if got := d.lastStatus(); !strings.Contains(got, "connect to imap.example.org:143: no route to host") {
				t.Errorf("got the status %q", got)
			}
			s.set(faults{})
			after(5 * time.Minute)
			d.want(1)
		})
		at := s.dialled()
		for i, longest := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
			if wait := at[i+1].Sub(at[i]); wait > longest*time.Second || wait < longest*time.Second/2 {
				t.Errorf("waited %v after failure %d, want %v to %v", wait, i+1, longest*time.Second/2, longest*time.Second)
			}
		}
	})
}

func TestReaderMarksNothingThatIsNotStored(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := serve(t, allCaps(), nil)
		s.deliver("INBOX", mail(1))
		d := newTestReader(t, s)
		d.reader.Mailbox.After = dmarcd.AfterDelete
		d.fail = func() error { return fmt.Errorf("disk full: %w", dmarcd.ErrTemporary) }
		d.run(func() {
			after(time.Hour)
			if all, unseen, deleted := s.count("INBOX"); all != 1 || unseen != 1 || deleted != 0 || d.state.LastUID != 0 {
				t.Errorf("got %d messages, %d unseen, %d deleted and the state %+v, want nothing changed", all, unseen, deleted, d.state)
			}
			if got := d.lastStatus(); !strings.Contains(got, "disk full") {
				t.Errorf("got the status %q, want the reason", got)
			}
			d.mu.Lock()
			d.fail = nil
			d.mu.Unlock()
			after(6 * time.Minute)
		})
		d.want(1)
		if all, _, _ := s.count("INBOX"); all != 0 {
			t.Errorf("got %d messages left, want none", all)
		}
	})
}

func TestReaderHasEnoughOfAServerThatGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTestReader(t, serve(t, allCaps(), nil))
		d.reader.Dial = func(context.Context, string, string) (net.Conn, error) {
			client, remote := net.Pipe()
			go func() {
				defer func() { _ = remote.Close() }()
				out := bufio.NewWriter(remote)
				for _, err := out.WriteString("* OK "); err == nil; {
					_, err = out.WriteString(strings.Repeat("and on ", 100))
				}
			}()
			return client, nil
		}
		d.run(func() { after(time.Second) })
		if got := d.lastStatus(); !strings.Contains(got, "the server sent more data than requested") {
			t.Errorf("got the status %q", got)
		}
	})
}

func TestReaderOutlivesAFullDisk(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := serve(t, allCaps(), nil)
		s.deliver("INBOX", mail(1))
		s.deliver("INBOX", mail(2))
		d := newTestReader(t, s)
		d.reader.Folder = filepath.Join(t.TempDir(), "missing")
		d.run(func() {
			after(time.Minute)
			if got := d.lastStatus(); !strings.Contains(got, "create a file for a message") {
				t.Errorf("got the status %q, want the reason", got)
			}
			d.want()
			musttest.Do(t, os.Mkdir(d.reader.Folder, 0o700))
			after(6 * time.Minute)
		})
		d.want(1, 2)
	})
}

func TestReaderDoesNotBelieveSizes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := serve(t, allCaps(), nil)
		large := "Subject: large\r\n\r\n" + strings.Repeat("x", 5000)
		announced := fmt.Sprintf("RFC822.SIZE %d", len(large))
		s.set(faults{wire: func(conn net.Conn) net.Conn { return &replacing{conn, announced, "RFC822.SIZE 1000"} }})
		s.deliver("INBOX", mail(1))
		s.deliver("INBOX", large)
		s.deliver("INBOX", mail(3))
		d := newTestReader(t, s)
		d.run(func() { after(time.Second) })
		if len(d.messages) != 3 || d.messages[1].body != "" || !strings.Contains(d.messages[1].rejection, "4096 are taken") {
			t.Errorf("got %d messages, want three, the second refused: %.300v", len(d.messages), d.messages)
		}
	})
}
