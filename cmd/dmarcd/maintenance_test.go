package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestMigrateDistribute distributes a database, or says what to do.
func TestMigrateDistribute(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, "")
	status, _, stderr := runProgram(t, server, "", "migrate", "--distribute", "--database="+filepath.Join(t.TempDir(), "dmarcd.db"))
	if status == exitDone || !strings.Contains(stderr, "DMARCD_DATABASE") || !strings.Contains(stderr, "docs/scaling.md") {
		t.Errorf("SQLite: got status %d and %q, want an error that says what to do", status, stderr)
	}
	if !storetest.Distributed() {
		return
	}
	db := storetest.EmptyCluster(t)
	for _, want := range []string{" tables distributed", "distributed already"} {
		status, stdout, stderr := runProgram(t, server, "", "migrate", "--distribute", "--database="+db.DSN)
		if status != exitDone || !strings.Contains(stdout, want) {
			t.Errorf("got status %d, %q and %q, want %q", status, stdout, stderr, want)
		}
	}
}
