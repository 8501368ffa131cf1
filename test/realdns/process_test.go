package realdns_test

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/test/daemon"
)

// startLimit is generous: the machine may be busy with other tests.
const startLimit = 20 * time.Second

// process is a server that runs for one test.
type process struct {
	name  string
	said  daemon.Output
	ended chan struct{} // closed when the process is gone
}

// startProcess starts a server that works in a folder from newFolder, and kills
// it when the test ends. What it said is shown if the test failed.
func startProcess(t *testing.T, folder, program string, arguments ...string) *process {
	t.Helper()
	p := &process{name: filepath.Base(program), ended: make(chan struct{})}
	command := exec.Command(program, arguments...)
	command.Dir = folder
	command.Stdout, command.Stderr = &p.said, &p.said
	command.SysProcAttr = &syscall.SysProcAttr{Credential: unprivileged(t)}
	daemon.DieWithParent(command.SysProcAttr)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = command.Wait() // it is always killed
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill() // fails where it has ended already
		<-p.ended
		if t.Failed() {
			t.Logf("%s said:\n%s", p.name, &p.said)
		}
	})
	return p
}

// await returns when the server does what it was started for, and fails the test
// if it ends before that.
func (p *process) await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	daemon.Eventually(t, startLimit, p.name+" "+what, func() bool {
		select {
		case <-p.ended:
			t.Fatalf("%s ended before it %s", p.name, what)
		default:
		}
		return condition()
	})
}

// unprivileged returns the user that a server runs as: an unprivileged one where the test runs as
// root, and nil, which is the user of the test, otherwise.
func unprivileged(t *testing.T) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	account, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: number(t, account.Uid), Gid: number(t, account.Gid)}
}

func number(t *testing.T, id string) uint32 {
	t.Helper()
	n, err := strconv.ParseUint(id, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

// newFolder returns a folder that a server can enter and write to, with a path
// short enough for a socket. That of t.TempDir is closed to other users.
func newFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "dmarcd-realdns-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	if c := unprivileged(t); c != nil {
		if err := os.Chown(folder, int(c.Uid), int(c.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// writeFile writes a file that the servers can read.
func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// findProgram returns the path of a program of the name servers. Debian puts
// them where the PATH of a user need not lead.
func findProgram(t *testing.T, name string) string {
	t.Helper()
	for _, candidate := range []string{name, "/usr/sbin/" + name, "/usr/local/sbin/" + name} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path
		}
	}
	t.Fatalf("there is no %s: run scripts/need-servers.sh as root, or install Debian's packages knot and unbound", name)
	return ""
}

// control runs a program that tells a server what to do, and returns when that
// is done.
func control(t *testing.T, program string, arguments ...string) {
	t.Helper()
	if said, err := exec.Command(findProgram(t, program), arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(arguments, " "), err, said)
	}
}
