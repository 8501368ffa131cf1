package realdns_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// startLimit is generous: the machine may be busy with other tests.
const startLimit = 2 * time.Minute

// writeFile writes a file that the servers can read.
func writeFile(t *testing.T, path, text string) {
	t.Helper()
	musttest.Do(t, os.WriteFile(path, []byte(text), 0o644))
}

// control runs a program that tells a server what to do, and returns when that
// is done.
func control(t *testing.T, from, program string, arguments ...string) {
	t.Helper()
	if said, err := exec.Command(daemon.FindServer(t, from, program), arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(arguments, " "), err, said)
	}
}
