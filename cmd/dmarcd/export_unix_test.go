//go:build unix

package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestExportPreservesWhatIsNotAFile exports to a pipe, which must not be replaced by a file, as
// /dev/null would be.
func TestExportPreservesWhatIsNotAFile(t *testing.T) {
	t.Parallel()
	folder, run := installation(t)
	report, pipe := filepath.Join(folder, "report.xml"), filepath.Join(folder, "pipe")
	musttest.Do(t, os.WriteFile(report, []byte(reportOf("receiver.example", recordFrom("192.0.2.1"))), 0o600))
	run(exitDone, "", "team", "create", "acme")
	run(exitDone, "", "domain", "add", "--team", "acme", "example.com")
	run(exitDone, "", "import", "--team", "acme", report)
	musttest.Do(t, syscall.Mkfifo(pipe, 0o600))
	reader := musttest.Get(os.OpenFile(pipe, os.O_RDWR, 0))(t) // so that no open blocks
	defer func() { musttest.Do(t, reader.Close()) }()
	run(exitDone, "", "export", "--team", "acme", "--format", "csv", "--output", pipe)
	if info := musttest.Get(os.Lstat(pipe))(t); info.Mode().Type() != os.ModeNamedPipe {
		t.Fatalf("got %s, want the pipe to stay", info.Mode())
	}
	line, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "id,domain,") {
		t.Errorf("got %v and %q, want the columns in the pipe", err, line)
	}
}
