package insight

import (
	"testing"

	"pgregory.net/rapid"
)

// TestNearby compares it with Go's map, also for numbers that have much in common.
func TestNearby(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		var m ipv4Map[int]
		want := make(map[uint64]int)
		number := rapid.OneOf(rapid.Uint64Range(0, 1<<64-2), rapid.Uint64Range(0, 3000), rapid.Map(rapid.Uint64Range(0, 3000), func(n uint64) uint64 { return n << 32 }))
		for i, n := range rapid.SliceOfN(number, 0, 2000).Draw(r, "numbers") {
			got, known := m.get(n)
			if value, ok := want[n]; known != ok || got != value {
				r.Fatalf("%d: got %d, %t, want %d, %t", n, got, known, value, ok)
			}
			if !known {
				m.set(n, i)
				want[n] = i
			}
		}
		for n, value := range want {
			if got, known := m.get(n); !known || got != value {
				r.Errorf("%d: got %d, %t, want %d", n, got, known, value)
			}
		}
		m.clear()
		for n := range want {
			if _, known := m.get(n); known {
				r.Errorf("%d is there after clear", n)
			}
		}
	})
}
