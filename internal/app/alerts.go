package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/alert"
	"github.com/dmarcd/dmarcd/internal/store"
)

// alertSource gives package alert what it needs of the store.
type alertSource struct{ *store.Store }

func (s alertSource) Claim(ctx context.Context, team dmarcd.TeamID, lease time.Duration) (dmarcd.AlertScan, bool, error) {
	return s.Team(team).ClaimAlertScan(ctx, lease)
}

func (s alertSource) Read(ctx context.Context, scan dmarcd.AlertScan, limit int, since dmarcd.Day) (read alert.Batch, err error) {
	team := s.Team(scan.Team)
	if read.Domains, err = team.ScannedMail(ctx, scan, limit); err != nil {
		return read, err
	}
	if read.Rejected, err = team.RejectedByDay(ctx, since); err != nil {
		return read, err
	}
	read.Incidents, err = team.Incidents(ctx, since)
	return read, err
}

func (s alertSource) Save(ctx context.Context, scan dmarcd.AlertScan, fresh []dmarcd.Detection, extended []dmarcd.Incident) error {
	return s.Team(scan.Team).SaveDetections(ctx, &scan, fresh, extended)
}

func (s alertSource) End(ctx context.Context, scan dmarcd.AlertScan, after dmarcd.DomainID) error {
	return s.Team(scan.Team).EndAlertScan(ctx, scan, after)
}

// mailboxGrace is how long a mailbox may fail before that is an alert.
const mailboxGrace = time.Hour

// detectMailboxes finds mailboxes that cannot be read.
func (a *App) detectMailboxes(ctx context.Context) (more bool, err error) {
	failing, err := a.store.FailingMailboxes(ctx, time.Now().Add(-mailboxGrace))
	if err != nil {
		return false, err
	}
	today := dmarcd.DayOf(time.Now())
	found := make(map[dmarcd.TeamID][]dmarcd.Detection)
	for _, m := range failing {
		// What a server said is not for the team to know: it may be that of a private network.
		reason := "It could not be read for an hour. The page of mailboxes shows more."
		if !m.PausedAt.IsZero() {
			reason = m.Error
		}
		found[m.Team] = append(found[m.Team], dmarcd.Detection{
			Kind: dmarcd.MailboxFailing, Subject: m.ID.String(), Name: m.Username + " at " + m.Host, Day: today, Reason: reason,
		})
	}
	var errs []error
	for team, detections := range found {
		errs = append(errs, a.saveDetections(ctx, team, detections, today))
	}
	return false, errors.Join(errs...)
}

// saveDetections stores detections that are about the team, as far as they are new.
func (a *App) saveDetections(ctx context.Context, team dmarcd.TeamID, found []dmarcd.Detection, today dmarcd.Day) error {
	of := a.store.Team(team)
	incidents, err := of.Incidents(ctx, today-alert.Days)
	if err != nil {
		return err
	}
	fresh, extended := alert.Merge(incidents, found)
	return of.SaveDetections(ctx, nil, fresh, extended)
}

// detectLowDisk warns operators before the intake stops for want of disk space: in the log
// when that changes, by a metric, and by an event of the team default.
func (a *App) detectLowDisk(ctx context.Context) (more bool, err error) {
	want := int64(a.config.Limit.FreeDisk)
	low := want > 0 && enoughDisk(a.config.Data, 2*want) != nil
	if a.lowDisk.Swap(low) != low {
		if low {
			a.log.WarnContext(ctx, "disk nearly full", "folder", a.config.Data, "minimum", want)
		} else {
			a.log.InfoContext(ctx, "disk no longer nearly full", "folder", a.config.Data)
		}
	}
	a.metrics.lowDisk.Set(map[bool]float64{true: 1}[low])
	if !low {
		return false, nil
	}
	team, err := a.store.TeamByName(ctx, dmarcd.DefaultTeam)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	today := dmarcd.DayOf(time.Now())
	return false, a.saveDetections(ctx, team.ID, []dmarcd.Detection{{
		Kind: dmarcd.DiskLow, Day: today,
		Reason: fmt.Sprintf("less than %d MiB are free. Below %d MiB no reports are received.", 2*want>>20, want>>20),
	}}, today)
}
