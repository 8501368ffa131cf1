package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
)

func TestTeamQuota(t *testing.T) {
	t.Parallel()
	settings := []string{"--database=" + filepath.Join(t.TempDir(), "dmarcd.db")}
	server := resolvertest.Start(t, "")
	if status, _, stderr := runProgram(t, server, "", append(settings, "team", "create", "acme")...); status != exitDone {
		t.Fatal(stderr)
	}
	for _, tt := range []struct {
		args []string
		want []string // words of one line each, or of the error
		code int
	}{
		{[]string{"acme"}, []string{"domains 0 10000", "stored 0 10 GiB", "unreadable 0 256 MiB", "reports 0 20000", "mailboxes 0 20"}, exitDone},
		{[]string{"acme", "stored=1 GiB", "reports=none"}, []string{"stored 0 1 GiB", "reports 0 none"}, exitDone},
		{[]string{"acme", "stored=default"}, []string{"stored 0 10 GiB", "reports 0 none"}, exitDone},
		{[]string{"acme", "--json"}, []string{`"quota": "reports"`, `"max": null`}, exitDone},
		{[]string{"acme", "domains=5", "users=5"}, []string{"NAME=VALUE"}, exitProblem},
		{[]string{"acme"}, []string{"domains 0 10000"}, exitDone},
		{[]string{"missing"}, []string{"missing"}, exitProblem},
	} {
		status, stdout, stderr := runProgram(t, server, "", slices.Concat(settings, []string{"team", "quota"}, tt.args)...)
		printed := strings.Join(strings.Fields(stdout+stderr), " ")
		if status != tt.code {
			t.Errorf("%v: got status %d, want %d: %s", tt.args, status, tt.code, printed)
		}
		for _, want := range tt.want {
			if !strings.Contains(printed, want) {
				t.Errorf("%v: got %s, want it to say %q", tt.args, printed, want)
			}
		}
	}
}
