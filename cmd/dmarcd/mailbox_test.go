package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
)

const mailboxPassword = "correct horse"

// startIMAP starts a server with a mailbox of the user "reports" and returns its port.
func startIMAP(t *testing.T) string {
	t.Helper()
	account := imapmemserver.NewUser("reports", mailboxPassword)
	musttest.Do(t, account.Create("INBOX", nil))
	memory := imapmemserver.New()
	memory.AddUser(account)
	server := imapserver.New(&imapserver.Options{
		NewSession: func(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
			return memory.NewSession(), nil, nil
		},
		InsecureAuth: true,
	})
	listener := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	noted := &notedListener{Listener: listener, began: make(chan struct{})}
	served := make(chan error)
	go func() { served <- server.Serve(noted) }()
	<-noted.began // the server cannot be closed before that
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		<-served
	})
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}

// notedListener signals the first Accept.
type notedListener struct {
	net.Listener
	once  sync.Once
	began chan struct{}
}

func (l *notedListener) Accept() (net.Conn, error) {
	l.once.Do(func() { close(l.began) })
	return l.Listener.Accept()
}

func TestMailboxes(t *testing.T) {
	t.Parallel()
	dns, port, data := resolvertest.Start(t, ""), startIMAP(t), t.TempDir()
	run := func(stdin string, args ...string) (int, string, string) {
		t.Helper()
		return runWith(t, []string{"DMARCD_DNS=" + dns.Addr(), "DMARCD_OUTBOUND_ALLOW=127.0.0.1"}, stdin, append(args, "--data="+data)...)
	}
	add := func(password string, more ...string) (int, string, string) {
		t.Helper()
		return run(password, append([]string{
			"mailbox", "add", "--team", "acme", "--host", "127.0.0.1", "--port", port, "--security", "none",
			"--user", "reports", "--password-file", "-",
		}, more...)...)
	}
	if status, _, stderr := run("", "team", "create", "acme"); status != exitDone {
		t.Fatal(stderr)
	}
	for _, row := range []struct {
		name     string
		password string
		more     []string
		status   int
		message  string
	}{
		{name: "a wrong password", password: "guess", status: exitProblem, message: "the server rejected the login"},
		{name: "no password", status: exitProblem, message: "one line of text"},
		{name: "a missing folder", password: mailboxPassword, more: []string{"--folder", "Reports"}, status: exitFailed, message: `open the folder "Reports"`},
		{name: "an unknown end", password: mailboxPassword, more: []string{"--after", "burn"}, status: exitFailed, message: "keep, flag, move:FOLDER, delete"},
		{name: "a move to nowhere", password: mailboxPassword, more: []string{"--after", "move"}, status: exitFailed, message: "another folder"},
		{name: "an unknown security", password: mailboxPassword, more: []string{"--security", "ssl"}, status: exitFailed, message: "tls, starttls, none"},
		{name: "a password and OAuth", password: mailboxPassword, more: []string{"--oauth-file", "-"}, status: exitFailed, message: "oauth-file"},
		{name: "a closed port", password: mailboxPassword, more: []string{"--port", "1"}, status: exitFailed, message: "connect to 127.0.0.1:1"},
		{name: "a private address", password: mailboxPassword, more: []string{"--host", "10.0.0.1"}, status: exitFailed, message: "DMARCD_OUTBOUND_ALLOW"},
	} {
		status, stdout, stderr := add(row.password, row.more...)
		if status != row.status || stdout != "" || !strings.Contains(stderr, row.message) {
			t.Errorf("%s: got status %d, %q and %q, want %d and words with %q", row.name, status, stdout, stderr, row.status, row.message)
		}
	}

	status, id, stderr := add(mailboxPassword+"\n", "--after", "move:Read")
	if status != exitDone || !strings.HasPrefix(id, "box_") {
		t.Fatalf("got status %d, %q, %q, want an id", status, id, stderr)
	}
	id = strings.TrimSpace(id)
	status, list, _ := run("", "mailbox", "list", "--team", "acme")
	if status != exitDone || !strings.Contains(list, id) || !strings.Contains(list, "move:Read") || !strings.Contains(list, "new") || !strings.Contains(list, "127.0.0.1:"+port) {
		t.Errorf("got status %d and the list %q", status, list)
	}
	_, list, _ = run("", "mailbox", "list", "--team", "acme", "--json")
	var shapes []map[string]any
	if err := json.Unmarshal([]byte(list), &shapes); err != nil || len(shapes) != 1 || shapes[0]["id"] != id || shapes[0]["seen_at"] != nil {
		t.Errorf("got the list %s (%v)", list, err)
	}
	for _, file := range []string{"dmarcd.db", "dmarcd.db-wal"} {
		content, err := os.ReadFile(filepath.Join(data, file))
		if err == nil && strings.Contains(string(content), mailboxPassword) {
			t.Errorf("%s holds the password", file)
		}
	}
	if status, _, stderr := run("", "mailbox", "resume", id); status != exitDone {
		t.Errorf("got status %d, %s", status, stderr)
	}
	if status, _, stderr := run("", "mailbox", "remove", id); status != exitDone {
		t.Errorf("got status %d, %s", status, stderr)
	}
	if status, _, stderr := run("", "mailbox", "remove", id); status != exitProblem || !strings.Contains(stderr, "there is no mailbox "+id) {
		t.Errorf("removed twice: got status %d, %s", status, stderr)
	}
	if _, list, _ := run("", "mailbox", "list", "--team", "acme", "--json"); strings.TrimSpace(list) != "[]" {
		t.Errorf("got %q after the removal, want []", list)
	}
}

func TestMailboxWithOAuthIsReadFromAFile(t *testing.T) {
	t.Parallel()
	dns, data := resolvertest.Start(t, ""), t.TempDir()
	if status, _, stderr := runProgram(t, dns, "", "team", "create", "acme", "--data="+data); status != exitDone {
		t.Fatal(stderr)
	}
	for _, row := range []struct {
		name    string
		file    string
		status  int
		message string
	}{
		{name: "as it should be", file: `{"token_url": "https://login.example/token", "client_id": "a", "client_secret": "hush", "refresh_token": "hush"}`, status: exitDone},
		{name: "no JSON", file: "hush", status: exitFailed, message: "does not contain valid OAuth settings"},
		{name: "an unknown member", file: `{"token": "hush"}`, status: exitFailed, message: "does not contain valid OAuth settings"},
		{name: "in the clear", file: `{"token_url": "http://login.example/token", "client_id": "a", "client_secret": "hush"}`, status: exitProblem, message: "https://"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "oauth.json")
			musttest.Do(t, os.WriteFile(path, []byte(row.file), 0o600))
			status, _, stderr := runProgram(t, dns, "", "mailbox", "add", "--team", "acme", "--host", "imap.example",
				"--user", "reports", "--oauth-file", path, "--no-try", "--data="+data)
			if status != row.status || !strings.Contains(stderr, row.message) || strings.Contains(stderr, "hush") {
				t.Errorf("got status %d and %q, want %d and words with %q", status, stderr, row.status, row.message)
			}
		})
	}
}
