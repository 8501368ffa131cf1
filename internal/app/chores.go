package app

import (
	"context"

	"github.com/dmarcd/dmarcd/internal/jobs"
)

// chores are what is done to the store without anybody asking for it.
func (a *App) chores() []*jobs.Chore {
	keep := a.retention()
	expire := func(ctx context.Context) (more bool, err error) { return a.store.Expire(ctx, keep) }
	return []*jobs.Chore{
		{Name: "purge deleted domains", Step: a.store.Purge, Poll: jobs.Soon, Log: a.log},
		{Name: "put the records of days on sheets", Step: a.store.MakeSheets, Poll: jobs.Minutely, Log: a.log},
		{Name: "remove what is past its time", Step: expire, Poll: jobs.Hourly, Log: a.log},
		{Name: "return free pages", Step: a.store.Reclaim, Poll: jobs.Minutely, Log: a.log},
		{Name: "purge sessions that are over", Step: a.store.PurgeSignIns, Poll: jobs.Hourly, Log: a.log},
	}
}
