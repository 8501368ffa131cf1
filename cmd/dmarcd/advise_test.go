package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func TestAdvise(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, `_dmarc.example.com. TXT "v=DMARC1; p=none; rua=mailto:d@example.com"`)
	database := "--database=" + filepath.Join(t.TempDir(), "dmarcd.db")
	run := func(args ...string) (status int, stdout, stderr string) {
		t.Helper()
		return runProgram(t, server, "", append(args, database)...)
	}
	for _, args := range [][]string{
		{"team", "create", "acme"},
		{"domain", "add", "--team", "acme", "example.com", "new.example"},
		{"domain", "verify", "--team", "acme", "example.com"},
		{"domain", "sender", "--team", "acme", "example.com", "AS64496", "yours"},
		{"domain", "sender", "--team", "acme", "example.com", "AS64496", "automatic"},
	} {
		if status, _, stderr := run(args...); status != exitDone {
			t.Fatalf("%v: status %d, %s", args, status, stderr)
		}
	}
	if status, stdout, stderr := run("advise", "--team", "acme", "example.com"); status != exitDone ||
		!strings.Contains(stdout, "monitoring") || !strings.Contains(stdout, "Connect the mailbox") {
		t.Errorf("got status %d, %s%s, want the stage and the next action", status, stdout, stderr)
	}
	if status, stdout, _ := run("advise", "--team", "acme", "new.example"); status != exitDone || !strings.Contains(stdout, "Check the DNS") {
		t.Errorf("before a check: got status %d, %s, want no conclusion", status, stdout)
	}
	if status, stdout, stderr := run("advise", "--team", "acme", "example.com", "--tag", "shop"); status == exitDone || !strings.Contains(stderr, "not both") {
		t.Errorf("a domain and a tag: got status %d, %s%s, want an error", status, stdout, stderr)
	}
	run("domain", "verify", "--team", "acme", "new.example") // it has no record, which is the status
	status, stdout, stderr := run("advise", "--team", "acme", "new.example", "--json")
	var advice wire.Advice
	if err := json.Unmarshal([]byte(stdout), &advice); status != exitDone || err != nil {
		t.Fatalf("got status %d, %v, %s", status, err, stderr)
	}
	if advice.Stage != "none" || advice.NextAction == nil || advice.NextAction.Record == nil ||
		advice.NextAction.Record.Name != "_dmarc.new.example" || !strings.HasPrefix(advice.NextAction.Record.Value, "v=DMARC1; p=none") {
		t.Errorf("got %s, want a record to publish", stdout)
	}
	for _, step := range []struct {
		args   []string
		status int
		want   string // in the list after it
	}{
		{[]string{"add", "our-crm", "Our CRM"}, exitProblem, ""},
		{[]string{"add", "our-crm", "Our CRM", "--network", "192.0.2.9/24", "--class", "yours", "--domain", "a.example,B.example"}, exitDone, "our-crm  Our CRM  yours  192.0.2.0/24         a.example,b.example\n"},
		{[]string{"add", "our-crm", "CRM", "--host", "c.example"}, exitDone, "our-crm  CRM   -                c.example  \n"},
		{[]string{"remove", "our-crm"}, exitDone, ""},
		{[]string{"remove", "our-crm"}, exitProblem, ""},
	} {
		args := append(append([]string{"sender"}, step.args...), "--team", "acme")
		if status, _, stderr := run(args...); status != step.status {
			t.Errorf("%v: got status %d want %d: %s", args, status, step.status, stderr)
		}
		if _, stdout, _ := run("sender", "list", "--team", "acme"); !strings.HasSuffix(stdout, step.want) {
			t.Errorf("after %v: got %q want it to end with %q", args, stdout, step.want)
		}
	}
	for _, args := range [][]string{
		{"advise", "--team", "acme", "other.example"},
		{"domain", "sender", "--team", "acme", "other.example", "AS64496", "yours"},
	} {
		if status, _, _ := run(args...); status != exitProblem {
			t.Errorf("%v: got status %d, want 1", args, status)
		}
	}
	if status, _, _ := run("domain", "sender", "--team", "acme", "example.com", "AS64496", "service"); status != exitFailed {
		t.Errorf("got status %d for a class that a team does not set, want 2", status)
	}
}
