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
