package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
)

func TestExportWritesWhatWasImported(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, "")
	folder := t.TempDir()
	settings := []string{"--data=" + folder, "--database=" + filepath.Join(folder, "dmarcd.db")}
	run := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		status, stdout, stderr := runProgram(t, server, "", append(args, settings...)...)
		if status != want {
			t.Fatalf("%q: got status %d and %q, want %d", args, status, stderr, want)
		}
		return stdout, stderr
	}
	report := filepath.Join(folder, "report.xml")
	musttest.Do(t, os.WriteFile(report, []byte(reportOf("receiver.example", recordFrom("192.0.2.1"), recordFrom("192.0.2.2"))), 0o600))
	run(exitDone, "team", "create", "acme")
	run(exitDone, "domain", "add", "--team", "acme", "example.com")
	run(exitDone, "import", "--team", "acme", report)

	stdout, _ := run(exitDone, "export", "--team", "acme")
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	var first struct {
		Domain       string `json:"domain"`
		SourceIP     string `json:"source_ip"`
		Organization string `json:"organization"`
	}
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil || len(lines) != 2 || first.Domain != "example.com" ||
		first.SourceIP != "192.0.2.1" || first.Organization != "receiver.example" {
		t.Errorf("got %v and %q, want two lines with the records", err, stdout)
	}
	for name, begins := range map[string]string{"all.parquet": "PAR1", "all.csv": "id,domain,", "all.ndjson": `{"id":"rep_`} {
		file := filepath.Join(folder, name)
		if _, stderr := run(exitDone, "export", "--team", "acme", "--domain", "example.com", "--output", file); stderr != "2 records exported to "+file+"\n" {
			t.Errorf("%s: got %q, want the number of records", name, stderr)
		}
		content, err := os.ReadFile(file)
		if err != nil || !bytes.HasPrefix(content, []byte(begins)) {
			t.Errorf("%s: got %v and %.20q, want it to begin with %q", name, err, content, begins)
		}
		if name == "all.parquet" {
			if opened, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content))); err != nil || opened.NumRows() != 2 {
				t.Errorf("got error %v, want a file with two rows", err)
			}
		}
	}
	if stdout, _ := run(exitDone, "export", "--team", "acme", "--from", "2001-01-01", "--to", "2001-01-31"); stdout != "" {
		t.Errorf("got %q, want nothing from before the report", stdout)
	}
	if _, stderr := run(exitProblem, "export", "--team", "acme", "--domain", "other.example", "--output", filepath.Join(folder, "other.csv")); !strings.Contains(stderr, "other.example") {
		t.Errorf("got %q, want the unknown domain named", stderr)
	}
	run(exitFailed, "export", "--team", "acme", "--format", "xlsx")
	run(exitFailed, "export", "--team", "acme", "--from", "2026-10-31", "--to", "2026-10-01")
	run(exitFailed, "export", "--team", "acme", "--syslog", "tcp://127.0.0.1:1", "--events", "--from", "2026-10-01")
	entries := musttest.Get(os.ReadDir(folder))(t)
	for _, entry := range entries {
		if strings.Contains(entry.Name(), "other.csv") {
			t.Errorf("a failed export left %s", entry.Name())
		}
	}
}

// syslogServer receives messages in octet counting until the client closes.
func syslogServer(t *testing.T) (address string, received <-chan []string) {
	t.Helper()
	listener := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	sessions := make(chan []string, 10)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			var messages []string
			in := bufio.NewReader(conn)
			for {
				length, err := in.ReadString(' ')
				n, _ := strconv.Atoi(strings.TrimSpace(length))
				message := make([]byte, n)
				if _, short := io.ReadFull(in, message); err != nil || short != nil {
					break
				}
				messages = append(messages, string(message))
			}
			sessions <- messages
			_ = conn.Close()
		}
	}()
	return listener.Addr().String(), sessions
}

func TestExportToSyslogContinues(t *testing.T) {
	if testing.Short() {
		return // waits until a report is final
	}
	t.Parallel()
	server := resolvertest.Start(t, "")
	folder := t.TempDir()
	settings := []string{"--data=" + folder, "--database=" + filepath.Join(folder, "dmarcd.db")}
	address, received := syslogServer(t)
	run := func(want int, args ...string) string {
		t.Helper()
		status, _, stderr := runProgram(t, server, "", append(args, settings...)...)
		if status != want {
			t.Fatalf("%q: got status %d and %q, want %d", args, status, stderr, want)
		}
		return stderr
	}
	write := func(organization string) {
		t.Helper()
		file := filepath.Join(folder, organization+".xml")
		musttest.Do(t, os.WriteFile(file, []byte(reportOf(organization, recordFrom("192.0.2.1"), recordFrom("192.0.2.2"))), 0o600))
		run(exitDone, "import", "--team", "acme", file)
	}
	run(exitDone, "team", "create", "acme")
	run(exitDone, "domain", "add", "--team", "acme", "example.com")
	write("first.example")
	export := []string{"export", "--team", "acme", "--syslog", "tcp://" + address}
	if stderr := run(exitDone, export...); stderr != "2 messages sent to tcp://"+address+"\n" {
		t.Errorf("got %q, want the number of messages", stderr)
	}
	got := <-received
	if len(got) != 2 || !strings.Contains(got[0], " dmarcd ") || !strings.Contains(got[0], " record - {") || !strings.Contains(got[1], `"source_ip":"192.0.2.2"`) {
		t.Fatalf("got %q, want both records", got)
	}
	// A cursor file continues after its record.
	var first struct{ ID string }
	musttest.Do(t, json.Unmarshal([]byte(got[0][strings.IndexByte(got[0], '{'):]), &first))
	cursor := filepath.Join(folder, "cursor")
	musttest.Do(t, os.WriteFile(cursor, []byte(first.ID+"\n"), 0o600))
	// The report counts as settled some seconds after its receipt.
	for deadline, sent := time.Now().Add(2*time.Minute), false; !sent; {
		sent = strings.HasPrefix(run(exitDone, append(export, "--cursor-file", cursor)...), "1 message ")
		if !sent && time.Now().After(deadline) {
			t.Fatal("the second record is never sent")
		}
		<-time.After(200 * time.Millisecond)
	}
	if got := <-received; len(got) != 1 || !strings.Contains(got[0], `"source_ip":"192.0.2.2"`) {
		t.Errorf("got %q, want the record after the cursor", got)
	}
	if content, err := os.ReadFile(cursor); err != nil || string(content) == first.ID+"\n" {
		t.Errorf("got %v and %q, want the cursor of the second record", err, content)
	}
	for _, content := range []string{"x", "-1"} {
		musttest.Do(t, os.WriteFile(cursor, []byte(content), 0o600))
		if stderr := run(exitProblem, append(export, "--cursor-file", cursor)...); !strings.Contains(stderr, cursor) {
			t.Errorf("got %q, want the file named", stderr)
		}
		run(exitFailed, append(export, "--events", "--cursor-file", cursor)...)
	}
	run(exitDone, "alert", "test", "--team", "acme")
	run(exitDone, append(export, "--events")...)
	if got := <-received; len(got) == 0 || !strings.Contains(got[0], " event - {") {
		t.Errorf("got %q, want the event of the test", got)
	}
	run(exitDone, append(export, "--audit")...)
	if got := <-received; len(got) < 3 || !strings.Contains(got[0], " audit - {") || !strings.Contains(got[0], `"domain.add"`) {
		t.Errorf("got %q, want the audit log, oldest first", got)
	}
	run(exitFailed, append(export, "--audit", "--cursor-file", cursor)...)
	file := filepath.Join(folder, "audit.ndjson")
	run(exitDone, "export", "--team", "acme", "--audit", "--output", file)
	for line := range strings.Lines(string(musttest.Get(os.ReadFile(file))(t))) {
		var entry struct{ ID, Action string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.ID == "" || entry.Action == "" {
			t.Errorf("got %q and %v, want an entry", line, err)
		}
	}
	run(exitFailed, "export", "--team", "acme", "--audit", "--format", "csv")
	run(exitFailed, "export", "--team", "acme", "--follow")
	run(exitFailed, "export", "--team", "acme", "--syslog", "siem.example")
}
