package fair_test

import (
	"testing"

	"github.com/dmarcd/dmarcd/internal/fair"
)

func TestCounter(t *testing.T) {
	t.Parallel()
	c := fair.Counter[string]{Max: 2}
	first, ok := c.Enter("a")
	_, second := c.Enter("a")
	if _, third := c.Enter("a"); !ok || !second || third {
		t.Errorf("got %t, %t, %t of one key, want two", ok, second, third)
	}
	if _, other := c.Enter("b"); !other {
		t.Error("another key is refused")
	}
	first()
	if _, again := c.Enter("a"); !again {
		t.Error("nothing is free after one left")
	}
	if _, more := c.Enter("a"); more {
		t.Error("more entered than left")
	}
}
