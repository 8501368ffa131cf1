package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
)

func TestImportTellsWhatBecameOfFiles(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, "")
	folder := t.TempDir()
	settings := []string{"--data=" + folder, "--database=" + filepath.Join(folder, "dmarcd.db")}
	for _, args := range [][]string{{"team", "create", "acme"}, {"domain", "add", "--team", "acme", "example.com"}} {
		if status, _, stderr := runProgram(t, server, "", append(args, settings...)...); status != exitDone {
			t.Fatal(stderr)
		}
	}
	good, bad, missing := filepath.Join(folder, "good.xml"), filepath.Join(folder, "bad.xml"), filepath.Join(folder, "missing")
	for name, content := range map[string]string{good: reportOf("receiver.example", recordFrom("192.0.2.1")), bad: "hello"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name   string
		paths  []string
		status int
		stdout string
		stderr string
	}{
		{"nothing is there", []string{missing}, exitFailed, "0 files read; 0 new records, 0 messages\n", "stat " + missing + ": no such file or directory\ndmarcd: 1 of 1 files could not be read\n"},
		{"one report", []string{good}, exitDone, "1 file read, 1 report stored; 1 new record, 1 message\n", ""},
		{
			"all of it",
			[]string{good, bad, missing},
			exitFailed, "2 files read, 1 duplicate, 1 rejected; 0 new records, 0 messages\n",
			"stat " + missing + ": no such file or directory\n" + bad + ": the content is not a report: it is text\ndmarcd: 1 of 3 files could not be read\n",
		},
	} {
		status, stdout, stderr := runProgram(t, server, "", append(append([]string{"import", "--team", "acme"}, tt.paths...), settings...)...)
		if status != tt.status || stdout != tt.stdout || stderr != tt.stderr {
			t.Errorf("%s: got status %d, %q and %q, want %d, %q and %q", tt.name, status, stdout, stderr, tt.status, tt.stdout, tt.stderr)
		}
	}
}
