package app

import (
	"context"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/jobs"
	"github.com/dmarcd/dmarcd/internal/store"
)

// freezeDelay is how long after the start old records are stored by column for the first time:
// replicas of the version before, which does not find them there, have been replaced by then.
const freezeDelay = time.Hour

// storeSenders updates when senders were first and last seen.
func (a *App) storeSenders(ctx context.Context) (more bool, err error) {
	return a.store.UpdateSenders(ctx, func(ctx context.Context, t *store.Team, days dmarcd.Days, save func([]dmarcd.Sender) error, saveDays func([]dmarcd.DomainDay) error) error {
		return a.sources.FindSenders(ctx, t, days, save, saveDays)
	})
}

// coldAfter is the age from which on records are stored by column, in a tenth of the space:
// most are read in their first weeks.
const coldAfter = 30 * 24 * time.Hour

// chores are the maintenance jobs: those of the database, at which replicas take turns, and
// those about the disk and the memory of a replica, which each does.
func (a *App) chores() []*jobs.Chore {
	retention := a.retention()
	expire := func(ctx context.Context) (more bool, err error) { return a.store.Expire(ctx, retention) }
	began := time.Now()
	freeze := func(ctx context.Context) (more bool, err error) {
		if time.Since(began) < freezeDelay {
			return false, nil
		}
		return a.store.Freeze(ctx, coldAfter)
	}
	shared := []*jobs.Chore{
		{Name: "purge deleted domains", Step: a.store.Purge, Poll: jobs.Soon},
		{Name: "claim waiting reports", Step: a.store.ClaimShares, Poll: jobs.Soon},
		{Name: "rebuild day rollups", Step: a.store.BuildRollups, Poll: jobs.Minutely},
		{Name: "store senders", Step: a.storeSenders, Poll: jobs.Minutely},
		{Name: "notify owners of disabled webhooks", Step: a.service.NotifyOwners, Poll: jobs.Minutely},
		{Name: "detect alerts", Step: a.service.DetectAlerts, Poll: jobs.Minutely},
		{Name: "send grouped alerts", Step: a.store.SendAlertGroups, Poll: jobs.Soon},
		{Name: "queue digests", Step: a.service.QueueDigests, Poll: jobs.Minutely},
		{Name: "detect failing mailboxes", Step: a.service.DetectMailboxes, Poll: jobs.Minutely},
		{Name: "remove expired data", Step: expire, Poll: jobs.Hourly},
		{Name: "store old records by column", Step: freeze, Poll: freezeDelay / 2},
		{Name: "partition records", Step: a.store.Partition, Poll: jobs.Hourly},
		{Name: "reclaim free database pages", Step: a.store.Reclaim, Poll: jobs.Minutely},
		{Name: "purge retired reporting addresses", Step: a.store.ForgetMailboxes, Poll: jobs.Hourly},
		{Name: "purge expired sessions", Step: a.store.PurgeSignIns, Poll: jobs.Hourly},
	}
	for _, chore := range shared {
		chore.Leases = a.store
	}
	chores := slices.Concat(shared, []*jobs.Chore{
		{Name: "refresh advice", Step: a.service.RefreshAdvice, Poll: jobs.Minutely},
		{Name: "detect low disk space", Step: a.detectLowDisk, Poll: jobs.Minutely},
	})
	for _, chore := range chores {
		chore.Log, chore.Recovered, chore.Observe = a.log, a.recovered, a.metrics.observeJob
	}
	return chores
}
