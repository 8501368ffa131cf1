// Package adversary attacks the real binary as outsiders, reporters and tenants
// can: with a hostile IMAP host, SMTP client, DNS server, HTTPS host and team.
// During every attack another team goes on with its work. The daemon must stay
// small, must not answer that team with an error of its own, and must answer
// each of its requests in time.
//
// The tests know only what is promised from outside: HTTP, SMTP, IMAP, DNS and
// the command line. Attacks are bounded in count and time, and stay on
// loopback. DMARCD_SOAK=1 runs the sizes of the original findings.
//
// Some faults no known input causes: a panic of a check, a job or a reader, and an error
// that rollups of one team meet again and again. For these the tests of the packages
// jobs, store, intake, spool and recovered stand in. What such faults do to the process
// is imitated here where it can be: it is killed while a certain mail is handled, and a
// team's rows refuse to be changed.
package adversary_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/dmarcd/dmarcd/test/daemon"
)

// program is the binary under attack, built once and without the race detector,
// which would take many times the memory.
var program string

// soak reports whether attacks have the size of the original findings.
var soak = os.Getenv("DMARCD_SOAK") != ""

// parallelism is how many attacks run at once. Most of the time they wait.
const parallelism = "3"

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	flag.Parse()
	if flag.Lookup("test.parallel").Value.String() != "1" {
		if err := flag.Set("test.parallel", parallelism); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	folder, err := os.MkdirTemp("", "dmarcd-adversary-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(folder) }() // a temporary folder
	if program, err = daemon.Build(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
