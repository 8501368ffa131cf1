package fair_test

import (
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/dmarcd/dmarcd/internal/fair"
)

// TestBucketsAreBounded uses more keys than are remembered. Those whose bucket is full again are
// forgotten first, then all.
func TestBucketsAreBounded(t *testing.T) {
	t.Parallel()
	const most = 10_000
	var b fair.Buckets[int]
	now := time.Now()
	if _, ok := b.Tokens(-1, now); ok {
		t.Error("got tokens of a key that was never used")
	}
	use := func(key int) { b.Of(key, rate.Every(time.Hour), 2, now).AllowN(now, 1) }
	want := func(when string, key int, known bool) {
		t.Helper()
		if left, ok := b.Tokens(key, now); ok != known || ok && left > 1.1 {
			t.Errorf("%s: got %v tokens of key %d, known: %t, want %t", when, left, key, ok, known)
		}
	}
	for key := range most - 1 {
		use(key)
	}
	now = now.Add(time.Hour)
	use(most)
	use(most + 1)
	want("the first ones are full", 0, false)
	want("the first ones are full", most, true)
	for key := range most {
		use(key)
	}
	want("none is full", most, false)
	want("none is full", most-1, true)
}
