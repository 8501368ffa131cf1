// Package daemon runs the real binary for black-box tests. It builds it once, starts it
// with settings, waits until it is ready, measures its memory, and stops it. It depends
// only on the operating contract: commands, settings, signals, and the log lines with the
// listener addresses.
package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// StartLimit limits a start, including the demo, which generates a year of reports.
	// It is generous, because the machine may be busy.
	StartLimit = 20 * time.Minute
	// StopLimit is three times the guaranteed time after SIGTERM, for the same reason.
	StopLimit = 30 * time.Second
	// CommandLimit limits commands other than serve.
	CommandLimit = 2 * time.Minute
)

// Installation is a binary with a database and a data folder.
type Installation struct {
	Program string
	// Settings are NAME=value pairs. They are the whole environment of the process. The
	// last value of a name applies.
	Settings []string
	// MemoryNet is the resident memory in bytes at which a daemon is killed, to protect
	// the machine from bugs. 0 means no limit.
	MemoryNet int64
}

// With returns the installation with further settings.
func (in Installation) With(settings ...string) Installation {
	in.Settings = append(in.Settings[:len(in.Settings):len(in.Settings)], settings...)
	return in
}

// Result is the result of a command.
type Result struct {
	Stdout, Stderr string
	Status         int
}

// Run runs a command of the binary and waits for its end.
func (in Installation) Run(t testing.TB, stdin string, args ...string) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), CommandLimit)
	defer cancel()
	process := exec.CommandContext(ctx, in.Program, args...)
	process.Env, process.Dir = in.Settings, t.TempDir()
	process.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	process.Stdout, process.Stderr = &stdout, &stderr
	err := process.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("dmarcd %s: %v", strings.Join(args, " "), err)
	}
	if ctx.Err() != nil {
		t.Fatalf("dmarcd %s: still running after %v", strings.Join(args, " "), CommandLimit)
	}
	return Result{Stdout: stdout.String(), Stderr: stderr.String(), Status: process.ProcessState.ExitCode()}
}

// lockedRetries is how often Do repeats a command that says to try again.
const lockedRetries = 10

// Do runs a command that must succeed, and returns its standard output without the
// trailing newline.
func (in Installation) Do(t testing.TB, args ...string) string {
	t.Helper()
	r := in.Run(t, "", args...)
	// A daemon on a busy machine may have the lock of SQLite for longer than a command waits.
	for range lockedRetries {
		if r.Status == 0 || !strings.Contains(r.Stderr, "temporarily unavailable") {
			break
		}
		r = in.Run(t, "", args...)
	}
	if r.Status != 0 {
		t.Fatalf("dmarcd %s: got status %d want 0; it said: %s", strings.Join(args, " "), r.Status, r.Stderr)
	}
	return strings.TrimSpace(r.Stdout)
}

// List runs a command that must succeed, and decodes its JSON output.
func (in Installation) List(t testing.TB, into any, args ...string) {
	t.Helper()
	args = append(args, "--json")
	if printed := in.Do(t, args...); json.Unmarshal([]byte(printed), into) != nil {
		t.Fatalf("dmarcd %s: got %s want JSON of another shape", strings.Join(args, " "), printed)
	}
}

// raceFlags enable the race detector, except for SQLite: it uses memory that the detector
// does not watch, and would take ten times as long. Keep them equal to those in the
// Makefile.
var raceFlags = []string{
	"-race", "-gcflags=modernc.org/sqlite/lib=-race=false", "-gcflags=modernc.org/libc/...=-race=false", "-gcflags=modernc.org/memory=-race=false",
}

// RaceVariable names the environment variable that has tests use BuildRace where they
// support both. `make race` sets it.
const RaceVariable = "DMARCD_TEST_RACE"

// Build builds the daemon in a folder and returns the path of the binary.
func Build(folder string) (string, error) { return build(folder, "dmarcd") }

// BuildRace is Build with the race detector. It needs a C compiler.
func BuildRace(folder string) (string, error) { return build(folder, "dmarcd-race", raceFlags...) }

// build compiles into .cache/daemon, where go build links only after a change, so that
// the packages of one test run share the work. It returns a copy: a later build must not
// replace a running binary.
func build(folder, name string, flags ...string) (program string, err error) {
	// With -trimpath the test does not know where its source is.
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/dmarcd/dmarcd").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	root := strings.TrimSpace(string(module))
	cache := filepath.Join(root, ".cache", "daemon")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	built := filepath.Join(cache, name)
	unlock, err := lock(built + ".lock")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	command := exec.Command("go", append(append([]string{"build"}, flags...), "-o", built, "./cmd/dmarcd")...)
	command.Dir = root
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the daemon: %w\n%s", err, output)
	}
	content, err := os.ReadFile(built)
	if err != nil {
		return "", err
	}
	program = filepath.Join(folder, name)
	return program, os.WriteFile(program, content, 0o755)
}

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

// FailedStart waits for a daemon that must not start, and returns its exit status and log.
func (d *Daemon) FailedStart() (status int, log string) {
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

// maxOutput is the number of bytes stored of an output.
const maxOutput = 64 << 20

// Output stores the end of an output, up to maxOutput. It is safe for concurrent use.
type Output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.buffer.Len() > maxOutput {
		o.buffer.Next(maxOutput / 2)
	}
	return o.buffer.Write(p)
}

// String returns the stored output.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

func (o *Output) tail(n int) string {
	all := o.String()
	return all[max(0, len(all)-n):]
}
