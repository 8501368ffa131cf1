package service

import (
	"context"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store"
)

// Retention is in days; 0 means forever.
type Retention struct{ Counters, Records, Originals int }

const day = 24 * time.Hour

// Retention returns the effective retention of the team.
func (t *Team) Retention(ctx context.Context) (Retention, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return Retention{}, err
	}
	own, err := t.team.Retention(ctx)
	retention := own.Or(t.service.options.Retention)
	return Retention{Counters: wholeDays(retention.Counters), Records: wholeDays(retention.Records), Originals: wholeDays(retention.Originals)}, err
}

// wholeDays rounds up, so that an hour does not become 0, which means forever.
func wholeDays(d time.Duration) int { return int((d + day - 1) / day) }

// Quota returns the quotas and the usage of the team.
func (t *Team) Quota(ctx context.Context) (quota dmarcd.Quota, used dmarcd.Usage, err error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, nil, err
	}
	if quota, err = t.team.Quota(ctx); err != nil {
		return nil, nil, err
	}
	used, err = t.team.Usage(ctx)
	return quota, used, err
}

// SetRetention sets the retention of the team.
func (t *Team) SetRetention(ctx context.Context, retention Retention) error {
	if err := t.may(dmarcd.RightManage); err != nil {
		return err
	}
	if retention.Counters != 0 && (retention.Records == 0 || retention.Records > retention.Counters) {
		return &dmarcd.InvalidError{Field: "counters", Message: "Daily totals must be stored at least as long as the records."}
	}
	return t.team.SetRetention(ctx, store.Retention{
		Counters: time.Duration(retention.Counters) * day, Records: time.Duration(retention.Records) * day,
		Originals: time.Duration(retention.Originals) * day,
	}, t.actor.to("retention.set", "", fmt.Sprintf("counters %d days, records %d, originals %d; 0 means forever", retention.Counters, retention.Records, retention.Originals)))
}
