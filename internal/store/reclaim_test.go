package store_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
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
		s := musttest.Get(store.Open(ctx, path, store.Options{Now: func() time.Time { return now }}))(t)
		musttest.Get(s.Migrate(ctx))(t)
		return s
	}
	s := open()
	team := storetest.Team(t, s, "a team")
	secret := []byte("a-very-personal-local-part@example.com")
	refused := storetest.Delivery()
	refused.Original = storetest.Original(bytes.Repeat(secret, 100_000))
	refused.Rejections = []dmarcd.Rejection{{Kind: dmarcd.KindFailure, Reason: "A test."}}
	musttest.Get(s.Team(team.ID).Receive(ctx, []*dmarcd.Delivery{refused}))(t)
	size := func() int64 {
		if err := s.Close(); err != nil { // the last connection checkpoints the WAL
			t.Fatal(err)
		}
		info := musttest.Get(os.Stat(path))(t)
		s = open()
		return info.Size()
	}
	before := size()
	now = now.Add(2 * time.Hour)
	musttest.Get(s.Expire(ctx, store.Retention{Failure: time.Hour}))(t)
	storetest.All(t, s.Purge)
	storetest.All(t, s.Reclaim)
	if after := size(); after > before/2 {
		t.Errorf("the file has %d bytes, and had %d before its rows were removed", after, before)
	}
	musttest.Do(t, s.Close())
	content := musttest.Get(os.ReadFile(path))(t)
	if bytes.Contains(content, secret) {
		t.Error("what was removed is still in the file")
	}
}
