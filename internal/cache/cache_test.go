package cache_test

import (
	"slices"
	"testing"

	"github.com/dmarcd/dmarcd/internal/cache"
)

func TestCache(t *testing.T) {
	t.Parallel()
	c := cache.New[string, int](10)
	stored := func() (keys []string) {
		for _, key := range []string{"a", "b", "c", "large"} {
			if _, ok := c.Get(key); ok {
				keys = append(keys, key)
			}
		}
		return keys
	}
	want := func(when string, want ...string) {
		t.Helper()
		if got := stored(); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", when, got, want)
		}
	}
	c.Put("a", 1, 4)
	c.Put("b", 2, 4)
	if value, ok := c.Get("a"); !ok || value != 1 {
		t.Errorf("got %d and %t, want 1", value, ok)
	}
	c.Put("c", 3, 4)
	want("after a third value", "a", "c") // b was used least recently
	c.Put("a", 4, 8)
	want("after one has grown", "a")
	if value, _ := c.Get("a"); value != 4 {
		t.Errorf("got %d, want the new value", value)
	}
	c.Put("large", 5, 11)
	want("after one that is too large", "a")
	c.Delete("a")
	c.Delete("a")
	want("after its removal")
	c.Put("b", 6, 10)
	want("with room again", "b")
}
