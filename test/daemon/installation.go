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
	"os/exec"
	"strings"
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

// Do runs a command that must succeed, and returns its standard output without the
// trailing newline.
func (in Installation) Do(t testing.TB, args ...string) string {
	t.Helper()
	r := in.Run(t, "", args...)
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
