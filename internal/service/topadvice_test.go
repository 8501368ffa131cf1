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
	cache.put(adviceKey{team: 1}, 5, []dmarcd.Advice{{Domain: "example.com"}}, now, time.Second)
	for _, row := range []struct {
		name    string
		key     adviceKey
		domains int
		after   time.Duration
		want    bool
	}{
		{"at once", adviceKey{team: 1}, 5, 0, true},
		{"before it is over", adviceKey{team: 1}, 5, 100*time.Second - 1, true},
		{"when it is over", adviceKey{team: 1}, 5, 100 * time.Second, false},
		{"with another domain", adviceKey{team: 1}, 6, 0, false},
		{"by another team", adviceKey{team: 2}, 5, 0, false},
		{"for a tag", adviceKey{1, "eu"}, 5, 0, false},
	} {
		if _, got := cache.get(row.key, row.domains, now.Add(row.after)); got != row.want {
			t.Errorf("%s: got it reused %t, want %t", row.name, got, row.want)
		}
	}
	cache.put(adviceKey{1, "eu"}, 5, nil, now, time.Second)
	cache.forget(1)
	if _, got := cache.get(adviceKey{team: 1}, 5, now); got || len(cache.known) > 0 {
		t.Error("after a change of a class: got it reused, want it made anew")
	}
	cache.put(adviceKey{team: 1}, 5, nil, now, time.Second)
	cache.put(adviceKey{team: 2}, 5, nil, now.Add(time.Hour), time.Second)
	if len(cache.known) != 1 {
		t.Errorf("got %d answers remembered, want those alone that are not over", len(cache.known))
	}
}
