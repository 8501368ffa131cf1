package daemon

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

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
