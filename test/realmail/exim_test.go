package realmail_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
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
	musttest.Do(t, err)
	e := &exim{program: findExim(t), as: daemon.Unprivileged(t)}
	folder := daemon.ServerFolder(t)
	e.configuration = filepath.Join(folder, "exim.conf")
	uid, gid := os.Getuid(), os.Getgid()
	if e.as != nil {
		uid, gid = int(e.as.Uid), int(e.as.Gid)
	}
	text := fmt.Sprintf(eximConfiguration, folder, host, port,
		hostsIf(settings.chunking), hostsIf(!settings.tls), hostsIf(settings.tls), uid, gid)
	// It refuses a configuration that others than its owner can write to.
	musttest.Do(t, os.WriteFile(e.configuration, []byte(text), 0o644))
	daemon.ShowIfFailed(t, filepath.Join(folder, "mainlog"))
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
	return musttest.Get(strconv.Atoi(strings.TrimSpace(e.run(t, "", "-bpc"))))(t)
}

// used returns how the mails were sent by its own word.
func (e *exim) used(t *testing.T) eximSettings {
	t.Helper()
	log := musttest.Get(os.ReadFile(filepath.Join(filepath.Dir(e.configuration), "mainlog")))(t)
	return eximSettings{chunking: strings.Contains(string(log), " K "), tls: strings.Contains(string(log), " X=TLS")}
}

// run runs the program, and returns what it said.
func (e *exim) run(t *testing.T, input string, arguments ...string) string {
	t.Helper()
	command := exec.Command(e.program, append([]string{"-C", e.configuration}, arguments...)...)
	command.Dir = filepath.Dir(e.configuration)
	command.Stdin = strings.NewReader(input)
	command.SysProcAttr = &syscall.SysProcAttr{Credential: e.as}
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("exim %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
	return string(output)
}

func findExim(t *testing.T) string {
	t.Helper()
	return daemon.FindServer(t, "exim4-daemon-light", "exim4", "exim")
}
