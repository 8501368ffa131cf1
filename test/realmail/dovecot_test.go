package realmail_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

const (
	mailboxUser     = "reports"
	mailboxPassword = "open sesame"
	// mailLimit is how long anything may take. It is generous: the machine may be
	// busy with other tests.
	mailLimit = 10 * time.Minute
)

// dovecot is a mail server with the mailbox of one user, a Maildir.
type dovecot struct {
	folder  string
	port    int
	process *os.Process
	mails   atomic.Int64
}

// dovecotConfiguration has one unprivileged user do everything.
const dovecotConfiguration = `
protocols = imap
listen = 127.0.0.1
base_dir = %[1]s/run
state_dir = %[1]s/state
log_path = %[1]s/log
default_login_user = %[2]s
default_internal_user = %[2]s
default_internal_group = %[3]s
ssl = no
disable_plaintext_auth = no
auth_failure_delay = 0
mailbox_idle_check_interval = 1s
mail_location = maildir:%[1]s/mail
first_valid_uid = 0
first_valid_gid = 0
passdb {
  driver = passwd-file
  args = %[1]s/users
}
userdb {
  driver = static
  args = uid=%[4]d gid=%[5]d home=%[1]s
}
service anvil {
  chroot =
}
service imap-login {
  chroot =
  inet_listener imap {
    port = %[6]d
  }
  inet_listener imaps {
    port = 0
  }
}
`

// startDovecot starts a server, which goes with the test.
func startDovecot(t *testing.T) *dovecot {
	t.Helper()
	program := daemon.FindServer(t, "dovecot-imapd", "dovecot")
	account := &syscall.Credential{Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid())}
	as := daemon.Unprivileged(t)
	if as != nil {
		account = as
	}
	d := &dovecot{folder: daemon.ServerFolder(t), port: daemon.FreePort()}
	for _, part := range []string{"new", "cur", "tmp"} {
		d.makeFolder(t, filepath.Join("mail", part), as)
	}
	d.makeFolder(t, "run", as)
	d.makeFolder(t, "state", as)
	owner := musttest.Get(user.LookupId(strconv.Itoa(int(account.Uid))))(t)
	group := musttest.Get(user.LookupGroupId(strconv.Itoa(int(account.Gid))))(t)
	d.write(t, "users", mailboxUser+":{PLAIN}"+mailboxPassword+"\n")
	d.write(t, "dovecot.conf", fmt.Sprintf(dovecotConfiguration, d.folder, owner.Username, group.Name, account.Uid, account.Gid, d.port))

	daemon.ShowIfFailed(t, filepath.Join(d.folder, "log"))
	server := daemon.StartServer(t, d.folder, program, "-F", "-c", filepath.Join(d.folder, "dovecot.conf"))
	d.process = server.Process
	server.Await(t, mailLimit, "listens", func() bool {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(d.port)))
		return err == nil && conn.Close() == nil
	})
	return d
}

// deliver puts a mail into the mailbox as a delivery agent does.
func (d *dovecot) deliver(t *testing.T, mail string) {
	t.Helper()
	name := fmt.Sprintf("%d.%d.example", time.Now().UnixNano(), d.mails.Add(1))
	d.write(t, filepath.Join("mail", "tmp", name), mail)
	musttest.Do(t, os.Rename(filepath.Join(d.folder, "mail", "tmp", name), filepath.Join(d.folder, "mail", "new", name)))
}

// files returns the names of the mails in a folder of the Maildir: "" is INBOX.
func (d *dovecot) files(t *testing.T, folder string) []string {
	t.Helper()
	var names []string
	for _, part := range []string{"new", "cur"} {
		found := musttest.Get(filepath.Glob(filepath.Join(d.folder, "mail", folder, part, "*")))(t)
		names = append(names, found...)
	}
	return names
}

// sessions returns the processes that serve clients who have logged in.
func (d *dovecot) sessions(t *testing.T) []int {
	t.Helper()
	processes := musttest.Get(filepath.Glob("/proc/[0-9]*/stat"))(t)
	var sessions []int
	for _, path := range processes {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// pid (name) state parent ...
		var pid, parent int
		var name, state string
		if _, err := fmt.Sscanf(string(stat), "%d %s %s %d", &pid, &name, &state, &parent); err != nil {
			continue // a name with a blank is not ours
		}
		if parent == d.process.Pid && name == "(imap)" {
			sessions = append(sessions, pid)
		}
	}
	return sessions
}

// killSessions kills the processes that serve clients, and returns how many there
// were.
func (d *dovecot) killSessions(t *testing.T) int {
	t.Helper()
	sessions := d.sessions(t)
	for _, pid := range sessions {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
	}
	return len(sessions)
}

// renumber has the server forget the UIDs of the mailbox. No client may be connected: its session
// would write the UIDs again.
func (d *dovecot) renumber(t *testing.T) {
	t.Helper()
	d.killSessions(t) // those that have not ended yet
	for _, pattern := range []string{"dovecot-uidlist", "dovecot.index*"} {
		names := musttest.Get(filepath.Glob(filepath.Join(d.folder, "mail", pattern)))(t)
		for _, name := range names {
			musttest.Do(t, os.Remove(name))
		}
	}
}

func (d *dovecot) makeFolder(t *testing.T, name string, as *syscall.Credential) {
	t.Helper()
	path := filepath.Join(d.folder, name)
	musttest.Do(t, os.MkdirAll(path, 0o755))
	if as == nil {
		return
	}
	for ; path != d.folder; path = filepath.Dir(path) {
		musttest.Do(t, os.Chown(path, int(as.Uid), int(as.Gid)))
	}
}

// write writes a file that the server can read.
func (d *dovecot) write(t *testing.T, name, text string) {
	t.Helper()
	musttest.Do(t, os.WriteFile(filepath.Join(d.folder, name), []byte(text), 0o644))
}
