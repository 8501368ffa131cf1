package app

import (
	"context"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/jobs"
)

// checks returns the job that checks domains by schedule.
func (a *App) checks() *jobs.Checks {
	return &jobs.Checks{
		Log:       a.log,
		Recovered: a.recovered,
		Rate:      a.config.Schedule.Rate,
		Teams:     a.store.DueTeams,
		Claim:     a.store.ClaimDueDomains,
		Check: func(ctx context.Context, due dmarcd.DueDomain) (err error) {
			began := time.Now()
			defer func() { a.metrics.observeCheck(due.Full, time.Since(began), err) }()
			return a.service.CheckDue(ctx, due)
		},
		Ended: func(ctx context.Context, due dmarcd.DueDomain) error {
			return a.store.Team(due.Team).CheckEnded(ctx, due.Name)
		},
	}
}
