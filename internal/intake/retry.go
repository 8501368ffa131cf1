package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// RejectedStore stores rejected reports.
type RejectedStore interface {
	DeliveryStore
	// RejectedByID and RejectedOriginal return dmarcd.ErrNotFound for an unknown id.
	RejectedByID(ctx context.Context, id dmarcd.RejectedID) (dmarcd.Rejected, error)
	RejectedOriginal(ctx context.Context, id dmarcd.RejectedID) (dmarcd.StoredOriginal, error)
	// SettleRejected removes a rejected report.
	SettleRejected(ctx context.Context, id dmarcd.RejectedID) error
}

// Retry reads a rejected report again, with the verdict on its mail unchanged, because DKIM
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
		Team: team, Intake: rejected.Intake, Verdict: rejected.Verdict, Name: rejected.Name, Content: content, Size: content.Size(), Audit: audit,
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
