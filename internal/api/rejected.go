package api

import (
	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func (a *API) listRejected(c *call) error {
	limit, after := c.query.cursor()
	if err := c.reserveRows(limit); err != nil {
		return err
	}
	rejected, err := c.service.Rejected(c.r.Context(), dmarcd.RejectedID(after.ID), limit+1)
	if err != nil {
		return err
	}
	return c.writeCacheable(wire.NewPage(rejected, limit, func(r dmarcd.Rejected) string {
		return wire.FormatCursor(r.ReceivedAt, int64(r.ID))
	}, wire.NewRejected))
}

// namedRejected returns the rejected item of the path.
func namedRejected(c *call) (dmarcd.Rejected, error) {
	id, err := dmarcd.ParseRejectedID(c.params.Get("id"))
	if err != nil {
		return dmarcd.Rejected{}, errNoSuchRejected
	}
	rejected, err := c.service.RejectedByID(c.r.Context(), id)
	return rejected, missing(err, errNoSuchRejected)
}

// retryRejected reads the original again.
func (a *API) retryRejected(c *call) error {
	rejected, err := namedRejected(c)
	if err != nil {
		return err
	}
	answer := a.bodyRead(c.w)
	_, receipts, err := c.service.Retry(c.r.Context(), rejected.ID)
	answer()
	if err != nil {
		return missing(err, errOriginalGone)
	}
	writeReceipts(c.w, receipts)
	return nil
}
