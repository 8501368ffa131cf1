package store_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/cold"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
)

// bucket is a bucket in memory. test/bucket has a real one.
type bucket struct {
	mu      sync.Mutex
	objects map[string][]byte
	fail    error // of Put, after it stored the object
}

func (b *bucket) Put(_ context.Context, name string, data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.objects[name] = data
	return b.fail
}

func (b *bucket) Get(_ context.Context, name string, limit int64) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	data, ok := b.objects[name]
	switch {
	case !ok:
		return nil, dmarcd.ErrNotFound
	case int64(len(data)) > limit:
		return nil, errors.New("too long")
	}
	return data, nil
}

func (b *bucket) Delete(_ context.Context, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.objects, name)
	return nil
}

// withBucket opens the store again, with a bucket or none.
func (in *inbox) withBucket(blobs store.Blobs) *inbox {
	in.Helper()
	other := *in
	other.store = in.db.Open(in, store.Options{Now: in.clock.Now, Blobs: blobs})
	other.team = other.store.Team(in.team.ID())
	return &other
}

func TestColdRecordsInABucket(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		objects := &bucket{objects: map[string][]byte{}}
		in.fill()
		before := in.everything()
		full := in.withBucket(objects)
		full.freeze()
		if len(objects.objects) == 0 || in.number(`SELECT COUNT(*) FROM cold_blocks WHERE blob = ''`) > 0 || in.number(`SELECT COUNT(*) FROM unused_blobs`) > 0 {
			in.Errorf("got %d objects, want those of all blocks", len(objects.objects))
		}
		in.damage(`DELETE FROM records`)
		full.wantSame("from the bucket", before)
		full.withBucket(objects).wantSame("without a cache", before)

		// A backup has all of it.
		full.restored().wantSame("restored", before)

		// Without the bucket, the errors say what to do.
		report := before.Reports[1].ID
		none := in.withBucket(nil)
		_, _, err := none.team.Records(in.Context(), report, store.RecordCursor{}, 10)
		if err == nil || !strings.Contains(err.Error(), "set DMARCD_BLOBS") {
			in.Errorf("without a bucket: got %v", err)
		}
		if err := none.store.Backup(in.Context(), filepath.Join(in.TempDir(), "backup.db"), nil); err == nil || !strings.Contains(err.Error(), "set DMARCD_BLOBS") {
			in.Errorf("backup without a bucket: got %v", err)
		}

		// Objects that are other ones, or lost.
		for name := range objects.objects {
			objects.objects[name] = []byte("other")
		}
		for range 2 {
			broken := in.withBucket(objects)
			if _, _, err := broken.team.Records(in.Context(), report, store.RecordCursor{}, 10); !errors.Is(err, cold.ErrDamaged) {
				in.Errorf("got %v, want %v", err, cold.ErrDamaged)
			}
			problem := musttest.Get(broken.store.Integrity(in.Context()))(in)
			if !strings.Contains(problem, cold.ErrDamaged.Error()) {
				in.Errorf("got the problem %q", problem)
			}
			clear(objects.objects)
		}
	})
}

// TestObjectsAreRemoved removes objects that no block refers to any more, or did not yet when a
// process died.
func TestObjectsAreRemoved(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		objects := &bucket{objects: map[string][]byte{}, fail: errors.New("a test")}
		in.fill()
		before := in.everything()
		full := in.withBucket(objects)
		if _, err := full.store.Freeze(in.Context(), freezeAll); !errors.Is(err, objects.fail) {
			in.Errorf("got %v, want %v", err, objects.fail)
		}
		if len(objects.objects) != 1 {
			in.Errorf("got %d objects, want the abandoned one", len(objects.objects))
		}
		objects.fail = nil
		in.clock.advance(2 * time.Hour)
		full.freeze()
		if len(objects.objects) != 1 || in.number(`SELECT COUNT(*) FROM unused_blobs`) > 0 {
			in.Errorf("got %d objects, want the one that is used", len(objects.objects))
		}
		full.wantSame("from the bucket", before)

		in.must(full.team.DeleteReport(in.Context(), before.Reports[1].ID, decided("report.delete")))
		full.purge()
		after := full.everything()
		in.clock.advance(time.Hour)
		full.freeze()
		if len(objects.objects) != 2 {
			in.Errorf("got %d objects, want the new one, and the old one for its readers", len(objects.objects))
		}
		in.clock.advance(time.Hour)
		full.freeze()
		if len(objects.objects) != 1 {
			in.Errorf("got %d objects, want the new one", len(objects.objects))
		}
		full.wantSame("rewritten", after)
		full.withBucket(objects).wantSame("without a cache", after)
	})
}
