package app

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// Checks of one domain that overlap are both saved: the later one has its changes since
// the other.
func TestOverlappingChecks(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		created, err := s.CreateTeam(t.Context(), "a", true)
		if err != nil {
			t.Fatal(err)
		}
		team := s.Team(created.ID)
		if _, err := team.AddDomain(t.Context(), "example.com", time.Now()); err != nil {
			t.Fatal(err)
		}
		const rounds, overlapping = 10, 2
		for round := range rounds {
			var group sync.WaitGroup
			for i := range overlapping {
				group.Go(func() {
					now := time.Now()
					check := dmarcd.Check{At: now, Conclusive: true}
					plan := dmarcd.Plan{Next: now.Add(time.Hour), NextFull: now.Add(time.Hour)}
					entry := store.CheckEntry{Document: fmt.Sprintf(`{"domain":"example.com","grade":"%d"}`, round*overlapping+i)}
					if err := saveExamined(t.Context(), team, "example.com", check, plan, entry); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
		}
		history, err := team.Checks(t.Context(), "example.com", store.Cursor{}, 2*rounds*overlapping)
		if err != nil || len(history) < rounds {
			t.Errorf("got %d checks in the history, %v, want at least %d", len(history), err, rounds)
		}
	})
}
