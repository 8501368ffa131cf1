package backend

import (
	"context"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// rejected implements web.RejectedReports.
type rejected struct{ desk }

// rejectedPerPage is how many of them a page shows.
const rejectedPerPage = 50

func (r rejected) Rejected(ctx context.Context, after string) (wire.Page[dmarcd.Rejected], error) {
	var page wire.Page[dmarcd.Rejected]
	before, err := parseCursor(after)
	if err != nil {
		return page, err
	}
	found, err := r.team.Rejected(ctx, dmarcd.RejectedID(before.ID), rejectedPerPage+1)
	if err != nil {
		return page, err
	}
	return wire.NewPage(found, rejectedPerPage, func(item dmarcd.Rejected) string {
		return wire.FormatCursor(item.ReceivedAt, int64(item.ID))
	}, asItIs)
}

func (r rejected) RejectedOriginal(ctx context.Context, id string) (web.Original, error) {
	parsed, err := dmarcd.ParseRejectedID(id)
	if err != nil {
		return web.Original{}, dmarcd.ErrNotFound
	}
	kept, err := r.team.RejectedOriginal(ctx, parsed)
	return newOriginal(id, kept, err)
}

func (r rejected) Retry(ctx context.Context, id string) ([]dmarcd.Receipt, error) {
	parsed, err := dmarcd.ParseRejectedID(id)
	if err != nil {
		return nil, dmarcd.ErrNotFound
	}
	_, receipts, err := r.team.Retry(ctx, parsed)
	return receipts, err
}
