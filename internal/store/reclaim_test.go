package store_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestRemovedRowsLeaveTheFile stores and removes data on SQLite, and checks that the file
// no longer contains it and shrinks.
func TestRemovedRowsLeaveTheFile(t *testing.T) {
	t.Parallel()
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "dmarcd.db")
	now := time.Now()
	open := func() *store.Store {
		s, err := store.Open(ctx, path, store.Options{Now: func() time.Time { return now }})
		must(t, err)
		if _, err := s.Migrate(ctx); err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	team := storetest.Team(t, s, "a team")
	secret := []byte("a-very-personal-local-part@example.com")
	refused := storetest.Delivery()
	refused.Original = storetest.Original(bytes.Repeat(secret, 100_000))
	refused.Rejections = []dmarcd.Rejection{{Kind: dmarcd.KindFailure, Reason: "A test."}}
	if _, err := s.Team(team.ID).Receive(ctx, []*dmarcd.Delivery{refused}); err != nil {
		t.Fatal(err)
	}
	size := func() int64 {
		if err := s.Close(); err != nil { // the last connection checkpoints the WAL
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		must(t, err)
		s = open()
		return info.Size()
	}
	before := size()
	now = now.Add(2 * time.Hour)
	if _, err := s.Expire(ctx, store.Retention{Failure: time.Hour}); err != nil {
		t.Fatal(err)
	}
	storetest.All(t, s.Purge)
	storetest.All(t, s.Reclaim)
	if after := size(); after > before/2 {
		t.Errorf("the file has %d bytes, and had %d before its rows were removed", after, before)
	}
	must(t, s.Close())
	content, err := os.ReadFile(path)
	must(t, err)
	if bytes.Contains(content, secret) {
		t.Error("what was removed is still in the file")
	}
}
