// Package e2e contains the black-box tests of the daemon. They build the real binary,
// start it with its own database, data folder and DNS server, and use it like its users:
// over HTTP and SMTP, on the command line, and with signals. Expectations come from the
// documentation of the interface, not from the code.
//
// Every HTTP exchange is compared with the OpenAPI document of the server. At the end of
// a complete run, every documented answer must have been seen on every engine. Every
// token that a test used is searched for in logs, metrics and the database.
//
// DMARCD_E2E_KILLS sets how often the kill tests kill the process. If DMARCD_CORPUS names
// a folder of collected reports, they are imported and compared with its index. The test
// of a full disk mounts its own file system if it may.
package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dmarcd/dmarcd/internal/api/apitest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

var (
	// program is the path of the binary, which TestMain builds.
	program string
	// detecting is the path of the binary with the race detector, if RaceVariable is set,
	// and otherwise that of program. It prints races on standard error.
	detecting string
)

// proven records which documented answers the tests have seen.
var proven contracts

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

// parallelism is how many tests run at once: most of the time they wait for
// processes, clocks and a silent DNS.
const parallelism = "8"

func buildAndRun(m *testing.M) int {
	flag.Parse()
	if err := flag.Set("test.parallel", parallelism); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	folder, err := os.MkdirTemp("", "dmarcd-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(folder) }() // a temporary folder
	if err := build(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	status := m.Run()
	if status != 0 || !wholeSuite() {
		return status
	}
	for _, missing := range proven.missing() {
		fmt.Fprintln(os.Stderr, "no test provoked the documented answer", missing)
		status = 1
	}
	return status
}

// build sets program and detecting.
func build(folder string) (err error) {
	if program, err = daemon.Build(folder); err != nil {
		return err
	}
	detecting = program
	if os.Getenv(daemon.RaceVariable) != "" {
		detecting, err = daemon.BuildRace(folder)
	}
	return err
}

// wholeSuite reports whether the flags select all tests.
func wholeSuite() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if flag.Lookup(name).Value.String() != "" {
			return false
		}
	}
	return true
}

// contracts has a Validator per engine, to report which answers are missing on which
// engine. It is safe for concurrent use.
type contracts struct {
	mu       sync.Mutex
	byEngine map[string]*apitest.Validator
}

// of returns the Validator of an engine. The first call creates it from the document.
func (c *contracts) of(engine string, document []byte) (*apitest.Validator, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.byEngine[engine]; ok {
		return v, nil
	}
	v, err := apitest.New(document)
	if err != nil {
		return nil, err
	}
	if c.byEngine == nil {
		c.byEngine = map[string]*apitest.Validator{}
	}
	c.byEngine[engine] = v
	return v, nil
}

// missing returns the documented answers that were not seen, with their engine.
func (c *contracts) missing() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var missing []string
	for engine, v := range c.byEngine {
		for _, answer := range v.Missing() {
			if !unprovokable(engine, answer) {
				missing = append(missing, fmt.Sprintf("%s on %s", answer, engine))
			}
		}
	}
	slices.Sort(missing)
	return missing
}

// unprovokable reports whether no test can cause an answer from outside:
//
//   - 500 is a bug, and known bugs are fixed.
//   - 503 for a read needs an unavailable database. A SQLite file in WAL mode can be read
//     while it is locked for writing.
func unprovokable(engine, answer string) bool {
	operation, status, _ := strings.Cut(answer, " ")
	switch status {
	case "500":
		return true
	case "503":
		writes := []string{"addDomain", "deleteDomain", "verifyDomain", "uploadReport", "retryRejected", "setReportCounted", "setReportsCounted", "deleteReport", "deleteRejected"}
		return engine == "sqlite" && !slices.Contains(writes, operation)
	}
	return false
}
