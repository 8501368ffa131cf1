package e2e_test

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

const (
	mailboxUser     = "reports"
	mailboxPassword = "correct horse battery staple"
)

// mailStore is an IMAP server with a mailbox that the daemon reads. It stops at the end
// of the test.
type mailStore struct {
	t       *testing.T
	address string
	user    *imapmemserver.User
}

func newMailStore(t *testing.T) *mailStore {
	t.Helper()
	m := &mailStore{t: t, user: imapmemserver.NewUser(mailboxUser, mailboxPassword)}
	musttest.Do(t, m.user.Create("INBOX", nil))
	memory := imapmemserver.New()
	memory.AddUser(m.user)
	server := imapserver.New(&imapserver.Options{
		NewSession: func(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
			return memory.NewSession(), nil, nil
		},
		Caps: goimap.CapSet{goimap.CapIMAP4rev1: {}, goimap.CapUIDPlus: {}}, InsecureAuth: true, Logger: silent{},
	})
	listener := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	m.address = listener.Addr().String()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends with Close
	}()
	t.Cleanup(func() {
		_ = server.Close() // only a peer
		<-served
	})
	return m
}

// silent discards the log of the server about killed connections.
type silent struct{}

func (silent) Printf(string, ...any) {}

// read adds the mailbox to the daemon, which marks stored messages.
func (m *mailStore) read(in *installation, settings ...string) {
	m.t.Helper()
	host, port, err := net.SplitHostPort(m.address)
	musttest.Do(m.t, err)
	r := in.run(command{
		args: []string{
			"mailbox", "add", "--team", "default", "--host", host, "--port", port, "--security", "none",
			"--user", mailboxUser, "--password-file", "-", "--after", "flag",
		},
		stdin: mailboxPassword, settings: settings,
	})
	if r.Status != 0 {
		m.t.Fatalf("dmarcd mailbox add: status %d: %s", r.Status, r.Stderr)
	}
}

// dropLease ends the lease of a killed process, which would take half a minute.
func dropLease(in *installation) {
	in.t.Helper()
	if _, err := in.db.SQL(in.t).ExecContext(in.t.Context(), `UPDATE mailboxes SET lease_until = 0`); err != nil {
		in.t.Fatal(err)
	}
}

// load is the transport IMAP: a report is acknowledged when its mail is marked.
func (m *mailStore) load() intakeLoad {
	return intakeLoad{"imap", func(s *server, _ string, report feedback) outcome {
		mail := mailWith(report.xml())
		added, err := m.user.Append("INBOX", literal{strings.NewReader(mail), int64(len(mail))}, &goimap.AppendOptions{Time: time.Now()})
		if err != nil {
			m.t.Error(err)
			return rejected
		}
		client, err := imapclient.DialInsecure(m.address, nil)
		if err != nil {
			m.t.Error(err)
			return rejected
		}
		defer func() { _ = client.Close() }() // the next call opens another one
		if err := client.Login(mailboxUser, mailboxPassword).Wait(); err != nil {
			m.t.Error(err)
			return rejected
		}
		if _, err := client.Select("INBOX", &goimap.SelectOptions{ReadOnly: true}).Wait(); err != nil {
			m.t.Error(err)
			return rejected
		}
		pause := time.NewTicker(10 * time.Millisecond)
		defer pause.Stop()
		for s.Running() {
			<-pause.C
			found, err := client.UIDSearch(&goimap.SearchCriteria{
				UID: []goimap.UIDSet{goimap.UIDSetNum(added.UID)}, Flag: []goimap.Flag{goimap.FlagSeen},
			}, nil).Wait()
			if err != nil {
				m.t.Errorf("search for message %s: %v", strconv.FormatUint(uint64(added.UID), 10), err)
				return rejected
			}
			if len(found.AllUIDs()) > 0 {
				return acknowledged
			}
		}
		return silence
	}}
}

// literal is a message to append.
type literal struct {
	*strings.Reader
	size int64
}

func (l literal) Size() int64 { return l.size }
