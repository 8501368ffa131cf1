package backend

import (
	"context"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// housekeeping implements web.Housekeeping.
type housekeeping struct{ desk }

const (
	day = 24 * time.Hour
	// auditPerPage is how many entries of the audit log a page shows.
	auditPerPage = 100
)

func (h housekeeping) Retention(ctx context.Context) (web.Retention, error) {
	own, err := h.team.Retention(ctx)
	keep := own.Or(h.options.Retention)
	return web.Retention{
		Counters: wholeDays(keep.Counters), Records: wholeDays(keep.Records), Originals: wholeDays(keep.Originals),
	}, err
}

// wholeDays rounds up: what is kept for an hour is not kept for ever.
func wholeDays(d time.Duration) int { return int((d + day - 1) / day) }

func (h housekeeping) SetRetention(ctx context.Context, keep web.Retention) error {
	return h.change.SetRetention(ctx, service.Retention{Counters: keep.Counters, Records: keep.Records, Originals: keep.Originals})
}

func (h housekeeping) Audit(ctx context.Context, after string) (wire.Page[web.AuditEntry], error) {
	return auditPage(ctx, after, h.team.Audit, func(dmarcd.TeamID) string { return "" })
}
