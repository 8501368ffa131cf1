package adversary_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
)

// TestManyRecords has a team upload very many records at once.
func TestManyRecords(t *testing.T) {
	uploads, records := 8, 15_000
	if soak {
		records = 1_000_000
	}
	onEach(t, func(t *testing.T, a *arena) {
		bodies := make([][]byte, uploads)
		for i := range bodies {
			bodies[i] = distinct(t, "mallory.test", fmt.Sprint("many ", i), i*records, records)
		}
		var mu sync.Mutex
		stored := int64(0)
		a.watch("many records", func() {
			var attacking sync.WaitGroup
			for i, body := range bodies {
				attacking.Go(func() {
					got, err := a.mallory.try(t.Context(), http.MethodPost, "/reports", "application/octet-stream", body)
					switch {
					case err != nil:
						t.Errorf("upload %d: %v", i, err)
					case got.status == http.StatusCreated:
						mu.Lock()
						defer mu.Unlock()
						stored++
					case got.status != http.StatusServiceUnavailable && got.status != http.StatusTooManyRequests:
						t.Errorf("upload %d: got %v want 201, or to be told to come later", i, got)
					}
				})
			}
			attacking.Wait()
		})
		if stored == 0 {
			t.Error("got none of the uploads stored want some")
		}
		if got, want := a.mallory.counted("").Total, stored*int64(records); got != want {
			t.Errorf("got %d messages counted want %d: a report counts as a whole or not at all", got, want)
		}
		a.d.Stop()
	})
}
