package api

import (
	"errors"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func (a *API) listRejected(c *call) error {
	limit, after, err := readCursor(c)
	if err != nil {
		return err
	}
	rejected, err := c.service.Rejected(c.r.Context(), dmarcd.RejectedID(after.ID), limit+1)
	if err != nil {
		return err
	}
	page, err := wire.NewPage(rejected, limit, func(r dmarcd.Rejected) string {
		return wire.FormatCursor(r.ReceivedAt, int64(r.ID))
	}, func(r dmarcd.Rejected) (wire.Rejected, error) { return wire.NewRejected(r), nil })
	if err != nil {
		return err
	}
	writeCacheable(c, page)
	return nil
}

// namedRejected returns the rejected item of the path.
func namedRejected(c *call) (dmarcd.Rejected, error) {
	id, err := dmarcd.ParseRejectedID(c.params.Get("id"))
	if err != nil {
		return dmarcd.Rejected{}, errNoSuchRejected
	}
	rejected, err := c.service.RejectedByID(c.r.Context(), id)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return dmarcd.Rejected{}, errNoSuchRejected
	}
	return rejected, err
}

func rejectedOriginal(c *call, id dmarcd.RejectedID) (dmarcd.StoredOriginal, error) {
	original, err := c.service.RejectedOriginal(c.r.Context(), id)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return dmarcd.StoredOriginal{}, errOriginalGone
	}
	return original, err
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
	if errors.Is(err, dmarcd.ErrNotFound) {
		return errOriginalGone
	}
	if err != nil {
		return err
	}
	writeReceipts(c.w, receipts)
	return nil
}
