package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestReadsOnAStandbySeeTheWritesBefore writes to a primary and reads each change at once
// from its standby.
func TestReadsOnAStandbySeeTheWritesBefore(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	pair := storetest.StartPair(t)
	s := pair.DB.Open(t, store.Options{Read: pair.Standby})
	in := &inbox{T: t, db: pair.DB, clock: newClock(), store: s, team: newTeam(t, s, "a")}
	in.add(ours)
	for i := range 100 {
		name := fmt.Sprintf("d%d.example", i)
		in.add(name)
		if _, err := in.team.Domain(t.Context(), name); err != nil {
			t.Fatalf("domain %d: %v", i, err)
		}
		id := in.receive(storetest.Aggregate(fmt.Sprint(i), ours, today, storetest.Passed(ours, 1)))[0].ID
		if records, _, err := in.team.Records(t.Context(), id, store.RecordCursor{}, 10); err != nil || len(records) != 1 {
			t.Fatalf("report %d: got %d records, %v; want 1", i, len(records), err)
		}
		// One statement without a transaction.
		claimed, err := s.ClaimJob(t.Context(), name, time.Hour, true)
		var known bool
		if err == nil {
			err = s.QueryStandby(t.Context(), `SELECT EXISTS (SELECT 1 FROM job_leases WHERE name = $1)`, []any{name}, &known)
		}
		if err != nil || !claimed || !known {
			t.Fatalf("lease %d: claimed %t, known to the standby %t, %v", i, claimed, known, err)
		}
	}
	in.sound()
	if sum, err := in.team.DomainSummary(t.Context(), ours, dmarcd.Days{}); err != nil || sum != passed(100) {
		t.Errorf("got %+v, %v; want 100 messages", sum, err)
	}
	var recovering bool
	if err := s.QueryStandby(t.Context(), `SELECT pg_is_in_recovery()`, nil, &recovering); err != nil || !recovering {
		t.Errorf("reads go to a standby: got %t, %v", recovering, err)
	}
}
