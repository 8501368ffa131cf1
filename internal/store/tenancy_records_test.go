package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
)

// addRecord gives the victim a managed record.
func addRecord(t *testing.T, s *store.Store, mine *store.Team) {
	t.Helper()
	musttest.Get(s.OpenZone(t.Context(), "dns.example.net", ""))(t)
	musttest.Get(mine.PublishRecord(t.Context(), "example.com", 0, dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=none"}, nil))(t)
}

// recordState is what the victim reads of its managed record, and what the zone answers.
func recordState(t *testing.T, mine *store.Team, v victim) string {
	t.Helper()
	return fmt.Sprintf("%+v %+v", musttest.Get(mine.RecordVersions(t.Context(), v.domain.Name))(t), musttest.Get(v.store.ZoneNames(t.Context(), "", 100))(t))
}

// recordAttacks are attacks on managed records.
var recordAttacks = map[string]func(ctx context.Context, other *store.Team, v victim) error{
	"RecordVersions": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.RecordVersions(ctx, v.domain.Name)
		return wantNotFound(err)
	},
	"PublishRecord": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.PublishRecord(ctx, v.domain.Name, 1, dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "forged"}, nil)
		return wantNotFound(err)
	},
	"ServeRecord": func(ctx context.Context, other *store.Team, v victim) error {
		names, err := v.store.ZoneNames(ctx, "", 1)
		if err != nil || len(names) == 0 {
			return fmt.Errorf("read the name: %d, %w", len(names), err)
		}
		published := dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Version: 1, Label: names[0].Label}
		return wantNotFound(other.ServeRecord(ctx, v.domain.Name, published, []store.ZoneRecord{{Type: dns.TXT, Data: "forged"}}))
	},
	"StopRecord": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.StopRecord(ctx, v.domain.Name, dmarcd.RecordDMARC))
	},
}
