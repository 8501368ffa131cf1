package intake

import (
	"context"
	"errors"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/trace"
)

// DeliveryStore stores deliveries.
type DeliveryStore interface {
	// Receive stores all deliveries or none, and returns the receipts of each delivery: one
	// for each report and rejection. It does not use the deliveries after it returns.
	Receive(ctx context.Context, deliveries []*dmarcd.Delivery) ([][]dmarcd.Receipt, error)
}

// storeAttempts is how often a delivery fails before it is rejected.
const storeAttempts = 3

// Store stores a delivery and returns its receipts. If it fails repeatedly with an error that is
// dmarcd.Permanent, its reports are stored as rejected, with the error as the reason, and
// what the transport has after them does not wait.
func (a *Acceptor) Store(ctx context.Context, store DeliveryStore, delivery *dmarcd.Delivery) ([]dmarcd.Receipt, error) {
	var receipts [][]dmarcd.Receipt
	var err error
	for attempt := 0; ; attempt++ {
		if attempt == storeAttempts {
			rejectReports(delivery, err)
		}
		receipts, err = a.receive(ctx, store, delivery)
		switch {
		case err == nil:
			return receipts[0], nil
		case !dmarcd.Permanent(err) || len(delivery.Reports) == 0:
			return nil, err
		}
	}
}

// rejectReports rejects the reports of a delivery, each as a retry finds it.
func rejectReports(delivery *dmarcd.Delivery, err error) {
	for i := range delivery.Reports {
		delivery.Rejections = append(delivery.Rejections, dmarcd.Rejection{
			Kind: delivery.Reports[i].Kind, Member: delivery.Reports[i].Member, Reason: plain("the report could not be stored: " + err.Error()),
		})
	}
	delivery.Reports = nil
}

// StoreAll stores deliveries together or, if one of them cannot be stored, each as Store does. It
// returns the receipts and the error of each, in order.
func (a *Acceptor) StoreAll(ctx context.Context, store DeliveryStore, deliveries []*dmarcd.Delivery) ([][]dmarcd.Receipt, []error) {
	errs := make([]error, len(deliveries))
	if len(deliveries) == 0 {
		return nil, errs
	}
	receipts, err := a.receive(ctx, store, deliveries...)
	if err == nil {
		return receipts, errs
	}
	receipts = make([][]dmarcd.Receipt, len(deliveries))
	for i, delivery := range deliveries {
		if errors.Is(err, dmarcd.ErrTemporary) || ctx.Err() != nil { // for the others too
			errs[i] = err
			continue
		}
		receipts[i], errs[i] = a.Store(ctx, store, delivery)
		if errs[i] != nil {
			err = errs[i]
		}
	}
	return receipts, errs
}

// receive stores deliveries, all or none. Every delivery is stored here, so that Received sees all
// of them.
func (a *Acceptor) receive(ctx context.Context, store DeliveryStore, deliveries ...*dmarcd.Delivery) ([][]dmarcd.Receipt, error) {
	began := time.Now()
	traced, span := trace.Start(ctx, "store reports", trace.Internal)
	span.Int("dmarcd.deliveries", int64(len(deliveries)))
	receipts, err := store.Receive(traced, deliveries)
	span.End(err)
	if err != nil {
		return receipts, err
	}
	a.took("store", began)
	if a.Received != nil {
		for i, d := range deliveries {
			a.Received(d.Intake, receipts[i])
		}
	}
	return receipts, nil
}
