package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// claimedMail returns what ClaimSpooled claims, in order, as "name envelope size crashes".
func claimedMail(t *testing.T, s *store.Store, limit int) (claimed []string) {
	t.Helper()
	err := s.ClaimSpooled(t.Context(), 3, limit, func(name string, envelope []byte, size int64, crashes int) {
		claimed = append(claimed, fmt.Sprintf("%s %s %d %d", name, envelope, size, crashes))
	})
	musttest.Do(t, err)
	return claimed
}

// TestSpool has two processes on one spool, one of which dies.
func TestSpool(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx := t.Context()
		now := time.Unix(1_800_000_000, 0)
		clock := store.Options{Now: func() time.Time { return now }}
		a, b := db.Open(t, clock), db.Open(t, clock)
		hold := func(s *store.Store) {
			t.Helper()
			if err := s.HoldSpool(ctx, 15*time.Second); err != nil {
				t.Fatalf("hold: %v", err)
			}
		}
		check := func(what string, err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		hold(a)
		content := strings.Repeat("0123456789abcdef", 50_000) // several chunks
		for _, name := range []string{"1", "2", "3", "4"} {
			check("add", a.AddSpooled(ctx, name, "7 192.0.2.0/24", []byte("{"+name+"}"), int64(len(content)), strings.NewReader(content)))
		}
		if err := a.AddSpooled(ctx, "1", "", []byte{}, 0, strings.NewReader("")); !errors.Is(err, dmarcd.ErrConflict) {
			t.Errorf("the same name: got %v want %v", err, dmarcd.ErrConflict)
		}
		check("crashes", a.SetSpooledCrashes(ctx, []string{"2", "3"}, 1))
		check("set aside", a.SetSpooledCrashes(ctx, []string{"4"}, 4))

		hold(b)
		if got := claimedMail(t, b, 10); len(got) != 0 {
			t.Errorf("got %q claimed from a live process want nothing", got)
		}
		check("crashes", b.SetSpooledCrashes(ctx, []string{"1"}, 2)) // not its own
		check("remove", b.RemoveSpooled(ctx, "1"))
		var others []string
		check("others", b.OthersSpooled(ctx, 3, func(charged string, entries int, bytes int64) {
			others = append(others, fmt.Sprintf("%s: %d, %d", charged, entries, bytes))
		}))
		if diff := cmp.Diff([]string{"7 192.0.2.0/24: 3, 2400000"}, others); diff != "" {
			t.Errorf("others (-want +got):\n%s", diff)
		}

		// It holds them once more, and then no longer.
		now = now.Add(10 * time.Second)
		hold(a)
		hold(b)
		now = now.Add(10 * time.Second)
		hold(b)
		if got := claimedMail(t, b, 10); len(got) != 0 {
			t.Errorf("got %q claimed from a live process want nothing", got)
		}
		now = now.Add(time.Minute) // the leases of both have expired
		hold(b)
		if got := claimedMail(t, b, 10); len(got) != 0 {
			t.Errorf("got %q claimed when the database is back want nothing", got)
		}
		hold(b)
		if diff := cmp.Diff([]string{"1 {1} 800000 0"}, claimedMail(t, b, 1)); diff != "" {
			t.Errorf("claimed (-want +got):\n%s", diff)
		}
		if got := claimedMail(t, b, 10); len(got) != 2 {
			t.Errorf("got %q claimed want the other two", got)
		}
		check("remove", a.RemoveSpooled(ctx, "1")) // no longer its own
		var copied bytes.Buffer
		check("copy", b.CopySpooled(ctx, "1", &copied))
		if copied.String() != content {
			t.Errorf("got %d bytes want %d, the same", copied.Len(), len(content))
		}
		check("remove", b.RemoveSpooled(ctx, "1"))
		if err := b.CopySpooled(ctx, "1", &copied); !errors.Is(err, dmarcd.ErrNotFound) {
			t.Errorf("a removed message: got %v want %v", err, dmarcd.ErrNotFound)
		}

		check("leave", b.LeaveSpool(ctx))
		if diff := cmp.Diff([]string{"2 {2} 800000 1"}, claimedMail(t, a, 1)); diff != "" {
			t.Errorf("claimed after it left (-want +got):\n%s", diff)
		}
	})
}
