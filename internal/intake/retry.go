package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dmarcd/dmarcd"
)

// Shelf holds what was rejected.
type Shelf interface {
	Keeper
	// RejectedByID and RejectedOriginal return dmarcd.ErrNotFound for what is not
	// there.
	RejectedByID(ctx context.Context, id dmarcd.RejectedID) (dmarcd.Rejected, error)
	RejectedOriginal(ctx context.Context, id dmarcd.RejectedID) (dmarcd.KeptOriginal, error)
	// SettleRejected takes it off the shelf.
	SettleRejected(ctx context.Context, id dmarcd.RejectedID) error
}

// Retry reads something that was rejected for a team once more, as it came: the verdict on the
// mail stays, because keys of that time may be gone from the DNS. Where it can be used
// now it is taken off the shelf, which settled tells. It returns what became of all
// that was sent with it: each of these has an entry of its own, which stays until it is
// read again itself, and is then known already. What is not there, or whose bytes are
// gone, is dmarcd.ErrNotFound.
func (a *Acceptor) Retry(ctx context.Context, team dmarcd.TeamID, shelf Shelf, id dmarcd.RejectedID, audit ...dmarcd.AuditEntry) (settled bool, receipts []dmarcd.Receipt, err error) {
	rejected, err := shelf.RejectedByID(ctx, id)
	if err != nil {
		return false, nil, err
	}
	original, err := shelf.RejectedOriginal(ctx, id)
	if err != nil {
		return false, nil, err
	}
	content, err := CopyOf(Unpack(original.Packed), a.Limits.Containers.Folder, original.Size)
	if err != nil {
		return false, nil, fmt.Errorf("read original: %w", err)
	}
	defer content.Close()
	receipts, err = a.Accept(ctx, shelf, Message{
		Team: team, Intake: rejected.Intake, Verdict: rejected.Verdict, Name: rejected.Name, Content: content, Size: content.Size(), Audit: audit,
	})
	if err != nil {
		return false, nil, err
	}
	if slices.ContainsFunc(receipts, func(r dmarcd.Receipt) bool {
		return r.Status == dmarcd.Refused && r.Member == rejected.Member
	}) {
		return false, receipts, nil
	}
	// It may be gone: somebody else had it read again, too.
	if err := shelf.SettleRejected(ctx, id); err != nil && !errors.Is(err, dmarcd.ErrNotFound) {
		return false, nil, err
	}
	return true, receipts, nil
}
