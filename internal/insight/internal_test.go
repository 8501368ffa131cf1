package insight

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
)

// TestAnswersAreBounded caches small answers about many periods, and one again after it expired.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	var cached answers
	now := time.Now()
	of := func(team dmarcd.TeamID, day dmarcd.Day) answerKey {
		return answerKey{basis: basis{team: team, from: day}}
	}
	const each, all = maxTeamAnswers / entryBytes, maxAnswers / entryBytes
	for team := range dmarcd.TeamID(all/each + 1) {
		for day := range dmarcd.Day(each + 1) {
			cached.put(of(team, day), day, 0, now)
		}
		if got, want := len(cached.known), min(all, each*(int(team)+1)); got != want {
			t.Fatalf("got %d answers of %d teams, want %d", got, team+1, want)
		}
	}
	if _, ok := cached.get(of(1, each-1), now); !ok {
		t.Error("got no answer, want that of a team that has room")
	}
	later := now.Add(answerAge)
	if _, ok := cached.get(of(1, 0), later); ok {
		t.Error("got an answer that has expired")
	}
	for range each + 1 { // it replaces itself
		cached.put(of(1, 0), "new", 0, later)
	}
	if got, ok := cached.get(of(1, 0), later); !ok || got != "new" || len(cached.known) != 1 {
		t.Errorf("got %v among %d answers, want the new one alone", got, len(cached.known))
	}
}

// TestPartsLeaveHeadroom caches parts, of which there are too many, and then an answer.
func TestPartsLeaveHeadroom(t *testing.T) {
	t.Parallel()
	var cached answers
	now := time.Now()
	for day := range dmarcd.Day(4) {
		cached.put(answerKey{basis: basis{team: 1, from: day}, question: parts}, day, maxTeamAnswers/4, now)
	}
	if cached.bytes == 0 || cached.bytes > maxTeamAnswers/2 {
		t.Errorf("got %d bytes of parts, want some, and at most half of %d", cached.bytes, maxTeamAnswers)
	}
	answer := answerKey{basis: basis{team: 1}, question: "list"}
	cached.put(answer, "answer", maxTeamAnswers/2, now)
	if _, ok := cached.get(answer, now); !ok {
		t.Error("got no answer after the parts, want it cached")
	}
}

// TestKnowledge changes what is known of a domain, each part of it.
func TestKnowledge(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_794_900_000, 0)
	seen := map[[32]byte]int{knowledge(nil): -1}
	for i, d := range []Domain{
		{},
		{ID: 1},
		{Name: "example.com"},
		{Check: 1},
		{Checks: []facts.StoredCheck{{ID: 1}}},
		{Checks: []facts.StoredCheck{{ID: 1, FirstAt: at}}},
		{Checks: []facts.StoredCheck{{ID: 1}, {ID: 2}}},
		{Classes: map[string]dmarcd.Class{"a": dmarcd.ClassYours}},
		{Classes: map[string]dmarcd.Class{"a": dmarcd.ClassSpoofing}},
	} {
		known := knowledge([]Domain{d})
		if other, ok := seen[known]; ok {
			t.Errorf("got the same for the domains %d and %d, want another", other, i)
		}
		seen[known] = i
	}
}

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
