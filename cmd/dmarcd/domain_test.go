package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/internal/store"
)

func TestDomainListEscapesRecordsForTheTerminal(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, `_dmarc.evil.example. TXT "v=DMARC1; p=none; x=\027]0;title\007\009tab\010line"`)
	database := "--database=" + filepath.Join(t.TempDir(), "dmarcd.db")
	for _, args := range [][]string{
		{"team", "create", "acme"},
		{"domain", "add", "--team", "acme", "evil.example"},
		{"domain", "verify", "--team", "acme", "evil.example"},
		{"domain", "list", "--team", "acme"},
	} {
		status, stdout, stderr := runProgram(t, server, "", append(args, database)...)
		if status != exitDone {
			t.Fatalf("%v: status %d, %s", args, status, stderr)
		}
		if strings.ContainsAny(stdout, "\x1b\a") {
			t.Errorf("%v: the terminal would obey %q", args, stdout)
		}
		if lines := strings.Count(stdout, "\n"); args[0] == "domain" && args[1] != "add" && (lines != 2 || !strings.Contains(stdout, "p=none")) {
			t.Errorf("%v: got %q, want a heading and a line with the record", args, stdout)
		}
	}
}

func TestDomainAddReportsRejectedNamesWithoutTheirControlCharacters(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, "")
	database := "--database=" + filepath.Join(t.TempDir(), "dmarcd.db")
	if status, _, stderr := runProgram(t, server, "", "team", "create", "acme", database); status != exitDone {
		t.Fatal(stderr)
	}
	status, _, stderr := runProgram(t, server, "\x1b]0;title\a_\n", "domain", "add", "--team", "acme", "-", database)
	if status != exitProblem || strings.ContainsAny(stderr, "\x1b\a") {
		t.Errorf("got status %d and %q, want 1 and no control characters", status, stderr)
	}
}

func TestDomainAddReportsHowFarItCame(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, "")
	settings := []string{"--database=" + filepath.Join(t.TempDir(), "dmarcd.db")}
	for _, args := range [][]string{{"team", "create", "acme"}, {"team", "quota", "acme", "domains=700"}} {
		if status, _, stderr := runProgram(t, server, "", append(args, settings...)...); status != exitDone {
			t.Fatal(stderr)
		}
	}
	var names strings.Builder
	for i := range 2 * addPart {
		names.WriteString("d" + strings.Repeat("x", i%50) + string(rune('a'+i/50)) + ".example\n")
	}
	status, _, stderr := runProgram(t, server, names.String(), append([]string{"domain", "add", "--team", "acme", "-"}, settings...)...)
	if status != exitProblem || !strings.Contains(stderr, "500 domains added") {
		t.Errorf("got status %d and %q, want 1 and how many were added", status, stderr)
	}
}

// TestCommandsAgreeWithTheDaemon runs commands with no, the same and a different report
// domain than the daemon.
func TestCommandsAgreeWithTheDaemon(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, `_dmarc.sender.example. TXT "v=DMARC1; p=none; rua=mailto:else@where.example"`)
	file := filepath.Join(t.TempDir(), "dmarcd.db")
	database := "--database=" + file
	for _, args := range [][]string{{"team", "create", "acme"}, {"domain", "add", "--team", "acme", "sender.example"}} {
		if status, _, stderr := runProgram(t, server, "", append(args, database)...); status != exitDone {
			t.Fatal(stderr)
		}
	}
	s := musttest.Get(store.Open(t.Context(), file, store.Options{}))(t)
	musttest.Do(t, errors.Join(s.SetReportDomain(t.Context(), "reports.example"), s.Close()))
	verify := []string{"domain", "verify", "--team", "acme", "sender.example", database}
	dns := "DMARCD_DNS=" + server.Addr()
	for _, same := range [][]string{{dns}, {dns, "DMARCD_REPORT_DOMAIN=reports.example"}} {
		status, stdout, stderr := runWith(t, same, "", verify...)
		if status != exitDone || !strings.Contains(stdout, "@reports.example") || strings.Contains(stdout, "yes") {
			t.Errorf("%v: got status %d, %q and %q, want an inactive domain with a reporting address", same, status, stdout, stderr)
		}
	}
	status, _, stderr := runWith(t, []string{dns, "DMARCD_REPORT_DOMAIN=other.example"}, "", verify...)
	if status != exitFailed || !strings.Contains(stderr, `"reports.example"`) || !strings.Contains(stderr, "DMARCD_REPORT_DOMAIN") {
		t.Errorf("got status %d and %q, want 2 and the setting that differs", status, stderr)
	}
}

func TestReadingCommandsCreateNoDatabase(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, "")
	for _, args := range [][]string{
		{"team", "list"},
		{"token", "list", "--team", "acme"},
		{"domain", "list", "--team", "acme"},
		{"report", "list", "--team", "acme"},
		{"user", "list"},
		{"mailbox", "list", "--team", "acme"},
		{"backup", "copy.db"},
		{"doctor"},
	} {
		folder := filepath.Join(t.TempDir(), "data")
		status, _, stderr := runProgram(t, server, "", append(args, "--data="+folder)...)
		if args[0] != "doctor" && (status != exitFailed || !strings.Contains(stderr, "DMARCD_DATA")) {
			t.Errorf("%v: got status %d and %q, want 2 and what to do", args, status, stderr)
		}
		if _, err := os.Stat(folder); !os.IsNotExist(err) {
			t.Errorf("%v: got %v, want no data folder", args, err)
		}
	}
}

// TestListsOfADomain names a domain in another spelling, and one that the team does not have.
func TestListsOfADomain(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, `_dmarc.example.com. TXT "v=DMARC1; p=none"`)
	database := "--database=" + filepath.Join(t.TempDir(), "dmarcd.db")
	run := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		status, stdout, stderr := runProgram(t, server, "", append(args, database)...)
		if status != want {
			t.Fatalf("%v: got status %d and %q, want %d", args, status, stderr, want)
		}
		return stdout, stderr
	}
	run(exitDone, "team", "create", "acme")
	run(exitDone, "domain", "add", "--team", "acme", "example.com")
	run(exitDone, "domain", "verify", "--team", "acme", "example.com")
	musttest.Do(t, server.Set(`_dmarc.example.com. TXT "v=DMARC1; p=reject"`))
	run(exitDone, "domain", "verify", "--team", "acme", "example.com")
	for _, list := range []string{"event", "alert"} {
		if stdout, _ := run(exitDone, list, "list", "--team", "acme", "--domain", "EXAMPLE.com."); !strings.Contains(stdout, "policy.strengthened") {
			t.Errorf("%s list: got %q, want the change of the policy", list, stdout)
		}
	}
	for _, list := range []string{"event", "alert"} { // reports are also about other domains
		if _, stderr := run(exitProblem, list, "list", "--team", "acme", "--domain", "other.example"); !strings.Contains(stderr, "no domain other.example") {
			t.Errorf("%s list: got %q, want that the domain is unknown", list, stderr)
		}
	}
}
