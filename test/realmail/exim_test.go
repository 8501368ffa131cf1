package realmail_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// exim is a mail server that sends everything to one other.
type exim struct {
	program, configuration string
	as                     *syscall.Credential // nil is the user of the test
}

// eximSettings is how it sends.
type eximSettings struct {
	// chunking has it send by BDAT where it may, tls under TLS.
	chunking, tls bool
}

// eximConfiguration needs no service, no account and no DNS. Mails that cannot be sent
// stay in the queue until they are tried again by hand.
const eximConfiguration = `
spool_directory = %[1]s/queue
log_file_path = %[1]s/%%slog
exim_user = %[7]d
exim_group = %[8]d
primary_hostname = mail.reporter.example
deliver_drop_privilege = true
keep_environment =
untrusted_set_sender = *
local_from_check = false
queue_run_in_order = true

begin routers
onwards:
  driver = manualroute
  route_list = * "%[2]s::%[3]s"
  self = send
  transport = smtp

begin transports
smtp:
  driver = smtp
  hosts_try_chunking = %[4]s
  hosts_avoid_tls = %[5]s
  hosts_require_tls = %[6]s
  tls_verify_hosts = :
  tls_try_verify_hosts = :

begin retry
* * F,1h,1s
`

// newExim prepares a mail server that sends to the server at an address.
func newExim(t *testing.T, address string, settings eximSettings) *exim {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	must(t, err)
	e := &exim{program: findExim(t), as: unprivileged(t)}
	folder := serverFolder(t, e.as)
	e.configuration = filepath.Join(folder, "exim.conf")
	uid, gid := os.Getuid(), os.Getgid()
	if e.as != nil {
		uid, gid = int(e.as.Uid), int(e.as.Gid)
	}
	text := fmt.Sprintf(eximConfiguration, folder, host, port,
		hostsIf(settings.chunking), hostsIf(!settings.tls), hostsIf(settings.tls), uid, gid)
	// It refuses a configuration that others than its owner can write to.
	must(t, os.WriteFile(e.configuration, []byte(text), 0o644))
	t.Cleanup(func() {
		if t.Failed() {
			log, err := os.ReadFile(filepath.Join(folder, "mainlog"))
			t.Logf("exim said (%v):\n%s", err, log)
		}
	})
	return e
}

// hostsIf returns the list of all hosts, or the empty one.
func hostsIf(all bool) string {
	if all {
		return "*"
	}
	return ":"
}

// send hands a mail to the server as a program on its machine does, and returns when
// it has tried to deliver it.
func (e *exim) send(t *testing.T, mail, from string, to ...string) {
	t.Helper()
	e.run(t, mail, append([]string{"-odf", "-i", "-f", from, "--"}, to...)...)
}

// retry has the server try again what is in its queue.
func (e *exim) retry(t *testing.T) {
	t.Helper()
	e.run(t, "", "-qff")
}

// queued returns the number of mails in its queue.
func (e *exim) queued(t *testing.T) int {
	t.Helper()
	count, err := strconv.Atoi(strings.TrimSpace(e.run(t, "", "-bpc")))
	must(t, err)
	return count
}

// used returns how the mails were sent by its own word.
func (e *exim) used(t *testing.T) eximSettings {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(filepath.Dir(e.configuration), "mainlog"))
	must(t, err)
	return eximSettings{chunking: strings.Contains(string(log), " K "), tls: strings.Contains(string(log), " X=TLS")}
}

// run runs the program, and returns what it said.
func (e *exim) run(t *testing.T, input string, arguments ...string) string {
	t.Helper()
	command := exec.Command(e.program, append([]string{"-C", e.configuration}, arguments...)...)
	command.Dir = filepath.Dir(e.configuration)
	command.Stdin = strings.NewReader(input)
	command.SysProcAttr = &syscall.SysProcAttr{Credential: e.as}
	said, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("exim %s: %v\n%s", strings.Join(arguments, " "), err, said)
	}
	return string(said)
}

// findExim returns the path of the program. Debian puts it where the PATH of a user
// need not lead.
func findExim(t *testing.T) string {
	t.Helper()
	for _, candidate := range []string{"exim4", "exim", "/usr/sbin/exim4", "/usr/sbin/exim"} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path
		}
	}
	t.Fatal("there is no exim4: run scripts/need-servers.sh as root, or install Debian's package exim4-daemon-light")
	return ""
}

// serverFolder returns a folder that a server can enter and write to, with a path short
// enough for a socket. That of t.TempDir is closed to other users.
func serverFolder(t *testing.T, as *syscall.Credential) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "dmarcd-mail-")
	must(t, err)
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	if as != nil {
		must(t, os.Chown(folder, int(as.Uid), int(as.Gid)))
	}
	return folder
}

// unprivileged returns the user that the server runs as: an unprivileged account where the test runs as root, and nil,
// which is the user of the test, otherwise.
func unprivileged(t *testing.T) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	account, err := user.Lookup("nobody")
	must(t, err)
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	must(t, err)
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	must(t, err)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}
