package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/internal/store"
)

var linkForm = regexp.MustCompile(`^https://dmarc\.example/app/invitation/([A-Z2-7]{26})\n$`)

func TestUserCommands(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, "")
	file := filepath.Join(t.TempDir(), "dmarcd.db")
	run := func(wantStatus int, args ...string) (stdout, stderr string) {
		t.Helper()
		args = append(args, "--database="+file)
		status, stdout, stderr := runWith(t, []string{"DMARCD_DNS=" + server.Addr(), "DMARCD_BASE_URL=https://dmarc.example/api"}, "", args...)
		if status != wantStatus {
			t.Fatalf("%v: got status %d, want %d: %s%s", args, status, wantStatus, stdout, stderr)
		}
		return stdout, stderr
	}
	run(exitDone, "team", "create", "acme")
	if stdout, _ := run(exitDone, "user", "list", "--json"); stdout != "[]\n" {
		t.Errorf("no users: got %q, want an empty list", stdout)
	}
	for _, test := range []struct {
		name   string
		status int
		args   []string
	}{
		{"a team that is not there", exitProblem, []string{"ann@example.com", "--team", "missing"}},
		{"a role that is none", exitFailed, []string{"ann@example.com", "--team", "acme", "--role", "admin"}},
		{"a role without a team", exitFailed, []string{"ann@example.com", "--role", "owner"}},
		{"nothing to do on the page", exitFailed, []string{"ann@example.com"}},
		{"no address", exitProblem, []string{"ann", "--operator"}},
	} {
		if stdout, _ := run(test.status, append([]string{"user", "invite"}, test.args...)...); stdout != "" {
			t.Errorf("%s: got %q on standard output, want nothing", test.name, stdout)
		}
	}

	stdout, _ := run(exitDone, "user", "invite", "Ann@Example.com", "--team", "acme", "--role", "owner", "--operator")
	match := linkForm.FindStringSubmatch(stdout)
	if match == nil {
		t.Fatalf("got %q, want the link alone", stdout)
	}
	useInvitation(t, file, match[1])

	stdout, _ = run(exitDone, "user", "list", "--json")
	var users []userShape
	if err := json.Unmarshal([]byte(stdout), &users); err != nil || len(users) != 1 {
		t.Fatalf("got %q, %v; want one user", stdout, err)
	}
	if u := users[0]; u.Email != "ann@example.com" || u.Name != "Ann" || !u.Operator || !u.Password || u.SignedInAt != nil ||
		len(u.Teams) != 1 || u.Teams[0] != (membershipShape{Team: "acme", Role: "owner"}) {
		t.Errorf("got %+v", u)
	}
	if stdout, _ = run(exitDone, "user", "list"); strings.Count(stdout, "\n") != 2 || !strings.Contains(stdout, "acme (owner)") {
		t.Errorf("got %q, want a heading and a line", stdout)
	}
	// The user already exists: the link signs them in again.
	if stdout, _ = run(exitDone, "user", "invite", "ann@example.com"); !linkForm.MatchString(stdout) {
		t.Errorf("got %q, want a link", stdout)
	}
	if _, stderr := run(exitDone, "user", "remove", "ANN@example.com"); !strings.Contains(stderr, `"acme" no longer has an owner`) {
		t.Errorf("got %q, want a warning about the team without an owner", stderr)
	}
	run(exitProblem, "user", "remove", "ann@example.com")
}

// useInvitation does what the web interface does with a link.
func useInvitation(t *testing.T, file, secret string) {
	t.Helper()
	s := musttest.Get(store.Open(t.Context(), file, store.Options{}))(t)
	defer func() { _ = s.Close() }() // the test's own
	invitations := auth.Invitations{Store: s, Passwords: auth.NewPasswords(), Now: time.Now}
	musttest.Get(invitations.Accept(t.Context(), secret, auth.Answer{Name: "Ann", Password: "correct horse battery"}))(t)
	log, err := s.Audit(t.Context(), store.AuditFilter{Action: "user.invite"}, store.Cursor{}, 10)
	if err != nil || len(log) != 1 || log[0].Target != "ann@example.com" || log[0].Actor != "command line" {
		t.Errorf("the audit log has %+v, %v; want the invitation", log, err)
	}
}
