package insight

import (
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
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
	for range each + 1 { // it takes its own place
		cached.put(of(1, 0), "new", 0, later)
	}
	if got, ok := cached.get(of(1, 0), later); !ok || got != "new" || len(cached.known) != 1 {
		t.Errorf("got %v among %d answers, want the new one alone", got, len(cached.known))
	}
}
