package fair_test

import (
	"testing"

	"github.com/dmarcd/dmarcd/internal/fair"
)

func TestCounter(t *testing.T) {
	t.Parallel()
	c := fair.Counter[string]{Max: 2}
	enter := func(key string, want bool) (leave func()) {
		t.Helper()
		leave, ok := c.Enter(key)
		if ok != want {
			t.Fatalf("enter %s: got %t, want %t", key, ok, want)
		}
		return leave
	}
	leave := enter("a", true)
	enter("a", true)
	enter("a", false)
	enter("b", true)
	leave()
	enter("a", true)
	enter("a", false)
	if _, ok := new(fair.Counter[string]).Enter("a"); ok {
		t.Error("got an operation from the zero value, want none")
	}
}
