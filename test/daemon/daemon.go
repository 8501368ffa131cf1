package daemon

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Daemon is a process that runs `dmarcd serve`.
type Daemon struct {
	// HTTP and SMTP are the host:port of the listeners; SMTP is empty where the
	// settings have none.
	HTTP, SMTP string
	// Memory measures the process with its children.
	Memory *Meter

	t       testing.TB
	process *exec.Cmd
	stdout  *output
	log     *output
	ended   chan struct{} // closed when the process is gone
}

// Serve starts a daemon and returns when it serves. It is killed at the end of
// the test unless it was stopped before, and whenever it has more resident
// memory than memoryNet: a bug must not take the machine with it.
func (in Installation) Serve(t testing.TB, memoryNet int64) *Daemon {
	t.Helper()
	d := &Daemon{t: t, stdout: &output{}, log: &output{}, ended: make(chan struct{})}
	d.process = exec.Command(in.Program, "serve")
	d.process.Env, d.process.Dir = in.Settings, t.TempDir()
	d.process.Stdout, d.process.Stderr = d.stdout, d.log
	d.process.SysProcAttr = &syscall.SysProcAttr{}
	dieWithParent(d.process.SysProcAttr)
	if err := d.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = d.process.Wait() // ProcessState has the status
		close(d.ended)
	}()
	d.Memory = meter(d.process.Process.Pid, memoryNet, d.ended)
	t.Cleanup(func() {
		if d.Running() {
			d.Kill()
		}
		<-d.Memory.done
	})
	mail := false
	for _, setting := range in.Settings {
		if value, found := strings.CutPrefix(setting, "DMARCD_SMTP_LISTEN="); found {
			mail = value != ""
		}
	}
	Eventually(t, StartLimit, "the daemon serves", func() bool {
		if !d.Running() {
			t.Fatalf("the daemon ended with %v:\n%s", d.process.ProcessState, d.log)
		}
		d.HTTP = d.logged("serving")
		if mail {
			d.SMTP = d.logged("receiving mail")
		}
		return d.HTTP != "" && mail == (d.SMTP != "")
	})
	return d
}

// logged returns the address in a message of the log, or "".
func (d *Daemon) logged(message string) string {
	for line := range strings.Lines(d.log.String()) {
		var entry struct{ Msg, Address string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == message {
			return entry.Address
		}
	}
	return ""
}

// Running reports whether the process is still there.
func (d *Daemon) Running() bool {
	select {
	case <-d.ended:
		return false
	default:
		return true
	}
}

// Log returns what the daemon wrote to standard error, the end of it where it
// was a lot.
func (d *Daemon) Log() string { return d.log.String() }

// Printed returns what the daemon wrote to standard output.
func (d *Daemon) Printed() string { return d.stdout.String() }

// Stop ends the process as an operator does and fails the test if it takes too
// long or ends with an error.
func (d *Daemon) Stop() {
	d.t.Helper()
	if !d.Running() {
		d.t.Errorf("the daemon has ended by itself with %v:\n%s", d.process.ProcessState, d.log.tail(4<<10))
		return
	}
	_ = d.process.Process.Signal(syscall.SIGTERM) // it may be gone, which is seen below
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

// Kill ends the process at once.
func (d *Daemon) Kill() {
	_ = d.process.Process.Kill() // it may be gone
	<-d.ended
}

// Eventually returns when the condition holds, and fails the test if that takes
// longer than limit.
func Eventually(t testing.TB, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for began := time.Now(); !condition(); <-ticker.C {
		if time.Since(began) > limit {
			t.Fatalf("%s: not so after %v", what, limit)
		}
	}
}

// maxOutput is how much of the output of a process is stored.
const maxOutput = 8 << 20

// output stores the end of what a process writes. It is safe for concurrent
// use.
type output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.buffer.Len() > maxOutput {
		o.buffer.Next(maxOutput / 2)
	}
	return o.buffer.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

func (o *output) tail(n int) string {
	all := o.String()
	return all[max(0, len(all)-n):]
}
