package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// RejectedStore stores rejected reports.
type RejectedStore interface {
	DeliveryStore
	// RejectedByID and RejectedOriginal return dmarcd.ErrNotFound for an unknown id.
	RejectedByID(ctx context.Context, id dmarcd.RejectedID) (dmarcd.Rejected, error)
	RejectedOriginal(ctx context.Context, id dmarcd.RejectedID) (dmarcd.StoredOriginal, error)
	// SettleRejected removes a rejected report.
	SettleRejected(ctx context.Context, id dmarcd.RejectedID) error
}

// Retry reads a rejected report again, with the authentication result of its mail unchanged, because DKIM
// keys of that time may be gone. If it is accepted now, its entry is removed and settled is
// true. It never is if the stored original does not contain it; see redaction. The receipts
// cover everything in the same original: other rejected items keep their entries until they are
// retried, and are duplicates then. An unknown id or a deleted original is dmarcd.ErrNotFound.
func (a *Acceptor) Retry(ctx context.Context, team dmarcd.TeamID, store RejectedStore, id dmarcd.RejectedID, audit ...dmarcd.AuditEntry) (settled bool, receipts []dmarcd.Receipt, err error) {
	rejected, err := store.RejectedByID(ctx, id)
	if err != nil {
		return false, nil, err
	}
	original, err := store.RejectedOriginal(ctx, id)
	if err != nil {
		return false, nil, err
	}
	content, err := CopyOf(Unpack(original.Packed), a.Limits.Containers.Folder, original.Size)
	if err != nil {
		return false, nil, fmt.Errorf("read original: %w", err)
	}
	defer content.Close()
	receipts, err = a.Accept(ctx, store, Message{
		Team: team, Intake: rejected.Intake, Authentication: rejected.Authentication, Name: rejected.Name, Content: content, Size: content.Size(), Audit: audit,
	})
	if err != nil {
		return false, nil, err
	}
	if !settles(rejected.Rejection, receipts) {
		return false, receipts, nil
	}
	// A concurrent retry may have removed it.
	if err := store.SettleRejected(ctx, id); err != nil && !errors.Is(err, dmarcd.ErrNotFound) {
		return false, nil, err
	}
	return true, receipts, nil
}

// settles reports whether the receipts of an original show that a rejected item in it is accepted
// now.
func settles(rejected dmarcd.Rejection, receipts []dmarcd.Receipt) bool {
	has := func(is func(dmarcd.Receipt) bool) bool { return slices.ContainsFunc(receipts, is) }
	if has(func(r dmarcd.Receipt) bool { return r.Kind == dmarcd.KindFailure }) {
		// The original holds only the failure reports of the message, which may have other
		// members than before.
		return rejected.Kind == dmarcd.KindFailure && !has(isRejected)
	}
	return has(func(r dmarcd.Receipt) bool { return !isRejected(r) && isWithin(r.Member, rejected.Member) }) &&
		!has(func(r dmarcd.Receipt) bool { return isRejected(r) && r.Member == rejected.Member })
}

func isRejected(r dmarcd.Receipt) bool { return r.Status == dmarcd.StatusRejected }

// isWithin reports whether a member is another one or in it. All are in the message, "".
func isWithin(member, outer string) bool {
	return outer == "" || member == outer || strings.HasPrefix(member, outer+"/")
}
