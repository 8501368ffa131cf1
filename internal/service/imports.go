package service

import (
	"context"
	"slices"

	"github.com/dmarcd/dmarcd"
)

// Import stores reports from files. It is an intake.DeliveryStore for one goroutine.
type Import struct {
	team  *Team
	entry dmarcd.AuditEntry
	// noted means that the audit entry is written.
	noted bool
}

// Import starts an import from a source, such as a folder. It writes one audit entry, with the
// first stored reports.
func (t *Team) Import(source string) (*Import, error) {
	if err := t.may(dmarcd.RightChange); err != nil {
		return nil, err
	}
	return &Import{team: t, entry: t.actor.to("report.import", source, "")}, nil
}

// Receive stores deliveries, all or none.
func (i *Import) Receive(ctx context.Context, deliveries []*dmarcd.Delivery) ([][]dmarcd.Receipt, error) {
	if !i.noted && len(deliveries) > 0 {
		first := *deliveries[0]
		first.Audit = append(slices.Clone(first.Audit), i.entry)
		deliveries = append([]*dmarcd.Delivery{&first}, deliveries[1:]...)
	}
	receipts, err := i.team.team.Receive(ctx, deliveries)
	i.noted = i.noted || err == nil && len(deliveries) > 0
	return receipts, err
}
