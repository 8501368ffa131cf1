package backend

import (
	"context"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
)

// verdicts implements web.Verdicts.
type verdicts struct{ desk }

func (v verdicts) SetCounted(ctx context.Context, id string, counted bool) error {
	parsed, err := dmarcd.ParseReportID(id)
	if err != nil {
		return dmarcd.ErrNotFound
	}
	_, err = v.team.SetCounted(ctx, parsed, counted)
	return err
}

func (v verdicts) SetCountedAll(ctx context.Context, selected service.Selection, counted bool) (int, error) {
	return v.team.SetCountedAll(ctx, selected, counted)
}

func (v verdicts) DeleteReport(ctx context.Context, id string) error {
	parsed, err := dmarcd.ParseReportID(id)
	if err != nil {
		return dmarcd.ErrNotFound
	}
	return v.team.DeleteReport(ctx, parsed)
}

func (v verdicts) DeleteRejected(ctx context.Context, id string) error {
	parsed, err := dmarcd.ParseRejectedID(id)
	if err != nil {
		return dmarcd.ErrNotFound
	}
	return v.team.DeleteRejected(ctx, parsed)
}
