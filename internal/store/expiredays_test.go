package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestDaysExpireInSmallSteps removes very many daily counters of a domain.
func TestDaysExpireInSmallSteps(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		domain := musttest.Get(in.team.Domain(in.Context(), ours))(in)
		const days = 12_000
		rows := make([]string, days)
		for day := range rows {
			rows[day] = fmt.Sprintf("(%d, %d, %d, 0, 0, 0, 0, 0, 0, 0)", in.team.ID(), domain.ID, day)
		}
		for part := range slices.Chunk(rows, 1000) {
			in.damage(`INSERT INTO domain_days (team_id, domain_id, day, compliant, non_compliant, quarantined, rejected, dkim, spf, unverified)
				VALUES ` + strings.Join(part, ", "))
		}
		expire := func(ctx context.Context) (bool, error) {
			return in.store.Expire(ctx, store.Retention{Counters: ofDays(1)})
		}
		more := musttest.Get(expire(in.Context()))(in)
		if got := in.rows("domain_days"); !more || got == 0 || got == days {
			in.Errorf("after a step: got %d rows, and more to do: %v, want some of %d", got, more, days)
		}
		storetest.All(in, expire)
		if got := in.rows("domain_days"); got != 0 {
			in.Errorf("got %d rows at the end, want none", got)
		}
	})
}
