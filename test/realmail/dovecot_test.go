package realmail_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/test/daemon"
)

const (
	mailboxUser     = "reports"
	mailboxPassword = "open sesame"
	// mailLimit is how long anything may take. It is generous: the machine may be
	// busy with other tests.
	mailLimit = 30 * time.Second
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
	program := findDovecot(t)
	account := &syscall.Credential{Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid())}
	as := unprivileged(t)
	if as != nil {
		account = as
	}
	d := &dovecot{folder: serverFolder(t, as), port: freePort(t)}
	for _, part := range []string{"new", "cur", "tmp"} {
		d.makeFolder(t, filepath.Join("mail", part), as)
	}
	d.makeFolder(t, "run", as)
	d.makeFolder(t, "state", as)
	owner, err := user.LookupId(strconv.Itoa(int(account.Uid)))
	must(t, err)
	group, err := user.LookupGroupId(strconv.Itoa(int(account.Gid)))
	must(t, err)
	d.write(t, "users", mailboxUser+":{PLAIN}"+mailboxPassword+"\n")
	d.write(t, "dovecot.conf", fmt.Sprintf(dovecotConfiguration, d.folder, owner.Username, group.Name, account.Uid, account.Gid, d.port))

	command := exec.Command(program, "-F", "-c", filepath.Join(d.folder, "dovecot.conf"))
	command.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	daemon.DieWithParent(command.SysProcAttr)
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	must(t, command.Start())
	d.process = command.Process
	ended := make(chan struct{})
	go func() {
		_ = command.Wait() // it is always killed
		close(ended)
	}()
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // it ends its own processes
		<-ended
		if t.Failed() {
			log, err := os.ReadFile(filepath.Join(d.folder, "log"))
			t.Logf("dovecot said (%v):\n%s%s", err, &said, log)
		}
	})
	daemon.Eventually(t, mailLimit, "dovecot listens", func() bool {
		select {
		case <-ended:
			t.Fatal("dovecot ended")
		default:
		}
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(d.port)))
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
	return d
}

// deliver puts a mail into the mailbox as a delivery agent does.
func (d *dovecot) deliver(t *testing.T, mail string) {
	t.Helper()
	name := fmt.Sprintf("%d.%d.example", time.Now().UnixNano(), d.mails.Add(1))
	d.write(t, filepath.Join("mail", "tmp", name), mail)
	must(t, os.Rename(filepath.Join(d.folder, "mail", "tmp", name), filepath.Join(d.folder, "mail", "new", name)))
}

// files returns the names of the mails in a folder of the Maildir: "" is INBOX.
func (d *dovecot) files(t *testing.T, folder string) []string {
	t.Helper()
	var names []string
	for _, part := range []string{"new", "cur"} {
		found, err := filepath.Glob(filepath.Join(d.folder, "mail", folder, part, "*"))
		must(t, err)
		names = append(names, found...)
	}
	return names
}

// sessions returns the processes that serve clients who have logged in.
func (d *dovecot) sessions(t *testing.T) []int {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*/stat")
	must(t, err)
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

// renumber has the server forget the UIDs of the mailbox, and the sessions that
// know them.
func (d *dovecot) renumber(t *testing.T) {
	t.Helper()
	for _, pattern := range []string{"dovecot-uidlist", "dovecot.index*"} {
		names, err := filepath.Glob(filepath.Join(d.folder, "mail", pattern))
		must(t, err)
		for _, name := range names {
			must(t, os.Remove(name))
		}
	}
	d.killSessions(t) // those that have not noticed by themselves
}

func (d *dovecot) makeFolder(t *testing.T, name string, as *syscall.Credential) {
	t.Helper()
	path := filepath.Join(d.folder, name)
	must(t, os.MkdirAll(path, 0o755))
	if as == nil {
		return
	}
	for ; path != d.folder; path = filepath.Dir(path) {
		must(t, os.Chown(path, int(as.Uid), int(as.Gid)))
	}
}

// write writes a file that the server can read.
func (d *dovecot) write(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(d.folder, name), []byte(text), 0o644))
}

// findDovecot returns the path of the program. Debian puts it where the PATH of a
// user need not lead.
func findDovecot(t *testing.T) string {
	t.Helper()
	for _, candidate := range []string{"dovecot", "/usr/sbin/dovecot"} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path
		}
	}
	t.Fatal("there is no dovecot: run scripts/need-servers.sh as root, or install Debian's package dovecot-imapd")
	return ""
}

// freePort returns a free port.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = listener.Close() }() // the port is for the server
	return listener.Addr().(*net.TCPAddr).Port
}
