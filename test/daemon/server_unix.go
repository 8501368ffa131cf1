//go:build unix

package daemon

import (
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// Server is a server of another project, which runs for one test.
type Server struct {
	Process *os.Process

	name   string
	output Output
	ended  chan struct{} // closed when the process is gone
}

// StartServer starts a server that works in a folder of ServerFolder, and stops it when the
// test ends. Its output is shown if the test failed.
func StartServer(t *testing.T, folder, program string, arguments ...string) *Server {
	t.Helper()
	s := &Server{name: filepath.Base(program), ended: make(chan struct{})}
	command := exec.Command(program, arguments...)
	command.Dir = folder
	command.Stdout, command.Stderr = &s.output, &s.output
	command.SysProcAttr = &syscall.SysProcAttr{Credential: Unprivileged(t)}
	DieWithParent(command.SysProcAttr)
	musttest.Do(t, command.Start())
	s.Process = command.Process
	go func() {
		_ = command.Wait() // it is always ended by a signal
		close(s.ended)
	}()
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // it ends its own processes, or has ended already
		<-s.ended
		if t.Failed() {
			t.Logf("%s said:\n%s", s.name, &s.output)
		}
	})
	return s
}

// Await returns when the server does what it was started for, and ends the test if the server
// ends before that.
func (s *Server) Await(t *testing.T, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	Eventually(t, limit, s.name+" "+what, func() bool {
		select {
		case <-s.ended:
			t.Fatalf("%s ended before it %s", s.name, what)
		default:
		}
		return condition()
	})
}

// Log returns what the server wrote; see Output for the limit.
func (s *Server) Log() string { return s.output.String() }

// Unprivileged returns the user that servers run as: an unprivileged one where the test runs as
// root, and nil, which is the user of the test, otherwise.
func Unprivileged(t testing.TB) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	account := musttest.Get(user.Lookup("nobody"))(t)
	uid := musttest.Get(strconv.ParseUint(account.Uid, 10, 32))(t)
	gid := musttest.Get(strconv.ParseUint(account.Gid, 10, 32))(t)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// ServerFolder returns a folder that servers can enter and write to, with a path short enough for
// a socket. That of t.TempDir is closed to other users.
func ServerFolder(t *testing.T) string {
	t.Helper()
	folder := musttest.Get(os.MkdirTemp("", "dmarcd-test-"))(t)
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	if as := Unprivileged(t); as != nil {
		musttest.Do(t, os.Chown(folder, int(as.Uid), int(as.Gid)))
	}
	return folder
}

// FindServer returns the path of a program of a Debian package; it has one of some names. Debian
// puts servers where the PATH of a user need not lead.
func FindServer(t *testing.T, from string, names ...string) string {
	t.Helper()
	for _, name := range names {
		for _, candidate := range []string{name, "/usr/sbin/" + name, "/usr/local/sbin/" + name} {
			if path, err := exec.LookPath(candidate); err == nil {
				return path
			}
		}
	}
	t.Fatalf("there is no %s: run scripts/need-servers.sh as root, or install Debian's package %s", names[0], from)
	return ""
}

// ShowIfFailed shows the log of a server if the test fails.
func ShowIfFailed(t *testing.T, file string) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			log, err := os.ReadFile(file)
			t.Logf("%s (%v):\n%s", file, err, log)
		}
	})
}

// FreePort returns a free port of the loopback address for a server that cannot choose one. It is
// below the ports that the system hands out, so that no other program gets it before the server.
func FreePort() int {
	const first, count = 20_000, 10_000
	for {
		port := first + rand.IntN(count)
		if listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			_ = listener.Close() // nothing was sent
			return port
		}
	}
}
