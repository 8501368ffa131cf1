package backend

import (
	"context"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// housekeeping implements web.Housekeeping.
type housekeeping struct{ desk }

// auditPerPage is how many entries of the audit log a page shows.
const auditPerPage = 100

func (h housekeeping) Retention(ctx context.Context) (web.Retention, error) {
	keep, err := h.team.Retention(ctx)
	return web.Retention{Counters: keep.Counters, Records: keep.Records, Originals: keep.Originals}, err
}

func (h housekeeping) SetRetention(ctx context.Context, keep web.Retention) error {
	return h.team.SetRetention(ctx, service.Retention{Counters: keep.Counters, Records: keep.Records, Originals: keep.Originals})
}

func (h housekeeping) Audit(ctx context.Context, after string) (wire.Page[web.AuditEntry], error) {
	return auditPage(ctx, after, h.team.Audit, func(dmarcd.TeamID) string { return "" })
}
