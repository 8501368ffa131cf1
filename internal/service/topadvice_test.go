package service

import (
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
)

// TestAdviceCache reuses an answer for a hundred times as long as it took, for the same
// number of domains.
func TestAdviceCache(t *testing.T) {
	t.Parallel()
	var cache adviceCache
	now := time.Unix(1e9, 0)
	cache.put(1, 5, []dmarcd.Advice{{Domain: "example.com"}}, now, time.Second)
	for _, row := range []struct {
		name    string
		team    dmarcd.TeamID
		domains int
		after   time.Duration
		want    bool
	}{
		{"at once", 1, 5, 0, true},
		{"before it is over", 1, 5, 100*time.Second - 1, true},
		{"when it is over", 1, 5, 100 * time.Second, false},
		{"with another domain", 1, 6, 0, false},
		{"by another team", 2, 5, 0, false},
	} {
		if _, got := cache.get(row.team, row.domains, now.Add(row.after)); got != row.want {
			t.Errorf("%s: got it reused %t, want %t", row.name, got, row.want)
		}
	}
	cache.forget(1)
	if _, got := cache.get(1, 5, now); got {
		t.Error("after a change of a class: got it reused, want it made anew")
	}
	cache.put(1, 5, nil, now, time.Second)
	cache.put(2, 5, nil, now.Add(time.Hour), time.Second)
	if len(cache.teams) != 1 {
		t.Errorf("got %d teams remembered, want those alone whose answers are not over", len(cache.teams))
	}
}
