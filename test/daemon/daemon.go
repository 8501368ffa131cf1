package daemon

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Daemon is a running server process.
type Daemon struct {
	// HTTP and SMTP are the host:port of the listeners, set by Await. SMTP is empty if
	// the settings enable none.
	HTTP, SMTP string
	// Memory measures the process. It is nil without Installation.MemoryNet.
	Memory *Meter

	t       testing.TB
	process *exec.Cmd
	mail    bool // the settings enable SMTP
	stdout  *Output
	log     *Output
	ended   chan struct{} // closed when the process has ended
}

// Serve starts a daemon and waits until it is ready.
func (in Installation) Serve(t testing.TB) *Daemon {
	t.Helper()
	d := in.Start(t, "serve")
	d.Await()
	return d
}

// Start starts a command that serves, without waiting for it. The process is killed at
// the end of the test.
func (in Installation) Start(t testing.TB, command string) *Daemon {
	t.Helper()
	d := &Daemon{t: t, stdout: &Output{}, log: &Output{}, ended: make(chan struct{})}
	for _, setting := range in.Settings {
		if value, found := strings.CutPrefix(setting, "DMARCD_SMTP_LISTEN="); found {
			d.mail = value != ""
		}
	}
	d.process = exec.Command(in.Program, command)
	d.process.Env, d.process.Dir = in.Settings, t.TempDir()
	d.process.Stdout, d.process.Stderr = d.stdout, d.log
	d.process.SysProcAttr = &syscall.SysProcAttr{}
	DieWithParent(d.process.SysProcAttr)
	if err := d.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = d.process.Wait() // ProcessState has the status
		close(d.ended)
	}()
	if in.MemoryNet > 0 {
		d.Memory = meter(d.PID(), in.MemoryNet, d.ended)
	}
	t.Cleanup(func() {
		if d.Running() {
			d.Kill()
		}
		if d.Memory != nil {
			<-d.Memory.done
		}
	})
	return d
}

// Await waits until the daemon is ready.
func (d *Daemon) Await() {
	d.t.Helper()
	Eventually(d.t, StartLimit, "the daemon serves", func() bool {
		if !d.Running() {
			d.t.Fatalf("the daemon ended with %v:\n%s", d.process.ProcessState, d.log)
		}
		d.HTTP = d.logged("serving")
		if d.mail {
			d.SMTP = d.logged("receiving mail")
		}
		return d.HTTP != "" && d.mail == (d.SMTP != "")
	})
}

// logged returns the address in a log message, or "".
func (d *Daemon) logged(message string) string {
	for line := range strings.Lines(d.log.String()) {
		var entry struct{ Msg, Address string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == message {
			return entry.Address
		}
	}
	return ""
}

// Running reports whether the process is running.
func (d *Daemon) Running() bool {
	select {
	case <-d.ended:
		return false
	default:
		return true
	}
}

// PID returns the id of the process.
func (d *Daemon) PID() int { return d.process.Process.Pid }

// Log returns the standard error of the daemon; see Output for the limit.
func (d *Daemon) Log() string { return d.log.String() }

// Printed returns the standard output of the daemon.
func (d *Daemon) Printed() string { return d.stdout.String() }

// Signal sends a signal to the process, which must be running.
func (d *Daemon) Signal(signal os.Signal) {
	d.t.Helper()
	if err := d.process.Process.Signal(signal); err != nil {
		d.t.Errorf("%v: %v; the process ended with %v:\n%s", signal, err, d.process.ProcessState, d.log.tail(4<<10))
	}
}

// Stop sends SIGTERM, and fails the test if the process takes too long or exits with an
// error.
func (d *Daemon) Stop() {
	d.t.Helper()
	d.Signal(syscall.SIGTERM)
	d.Stopped()
}

// Stopped waits for a process that has received SIGTERM; see Stop.
func (d *Daemon) Stopped() {
	d.t.Helper()
	select {
	case <-d.ended:
	case <-time.After(StopLimit):
		d.Kill()
		d.t.Errorf("SIGTERM: still running after %v", StopLimit)
		return
	}
	if got := d.process.ProcessState.ExitCode(); got != 0 {
		d.t.Errorf("SIGTERM: got status %d want 0; the log:\n%s", got, d.log.tail(4<<10))
	}
}

// Kill kills the process and waits for its end.
func (d *Daemon) Kill() {
	_ = d.process.Process.Kill() // may have ended already
	<-d.ended
}

// Refused waits for a daemon that must not start, and returns its exit status and log.
func (d *Daemon) Refused() (status int, log string) {
	d.t.Helper()
	select {
	case <-d.ended:
	case <-time.After(StartLimit):
		d.t.Fatalf("the daemon is still running after %v:\n%s", StartLimit, d.log)
	}
	return d.process.ProcessState.ExitCode(), d.log.String()
}

// Eventually waits until the condition holds, and fails the test after limit.
func Eventually(t testing.TB, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	const longest = 50 * time.Millisecond
	pause := 5 * time.Millisecond
	for began := time.Now(); !condition(); pause = min(2*pause, longest) {
		if time.Since(began) > limit {
			t.Fatalf("%s: not so after %v", what, limit)
		}
		<-time.After(pause)
	}
}
