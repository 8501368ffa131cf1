package insight

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestTop(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		all := rapid.SliceOf(rapid.IntRange(0, 30)).Draw(r, "all")
		n := rapid.IntRange(1, 8).Draw(r, "n")
		want := slices.Sorted(slices.Values(all))
		want = want[:min(n, len(want))]
		if got := top(all, n, cmp.Compare[int]); !slices.Equal(got, want) {
			r.Errorf("got %v, want %v", got, want)
		}
	})
}
