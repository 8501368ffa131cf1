package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/alert"
	"github.com/dmarcd/dmarcd/internal/store"
)

// alertBatch is the number of domains of a team whose mail is examined before the next team has its turn.
const alertBatch = 100

// DetectAlerts detects incidents in the mail of domains, a batch of each team that is due.
func (s *Service) DetectAlerts(ctx context.Context) (more bool, err error) {
	return s.store.ScanAlerts(ctx, func(t *store.Team, scan dmarcd.AlertScan) (more bool, err error) {
		domains, err := t.ScannedMail(ctx, scan, alertBatch)
		if err != nil {
			return false, err
		}
		var found []dmarcd.Detection
		for _, domain := range domains {
			found = append(found, alert.Detect(domain, scan.Today)...)
		}
		since := scan.Today - alert.Days
		if scan.After == 0 { // once in each pass
			rejected, err := t.RejectedByDay(ctx, since)
			if err != nil {
				return false, err
			}
			found = append(found, alert.Rejected(rejected, scan.Today)...)
		}
		incidents, err := t.Incidents(ctx, since)
		if err != nil {
			return false, err
		}
		fresh, extended := alert.Merge(incidents, found)
		var last dmarcd.DomainID
		if len(domains) == alertBatch {
			last = domains[alertBatch-1].ID
		}
		err = t.SaveScan(ctx, scan, last, fresh, extended)
		if errors.Is(err, dmarcd.ErrConflict) {
			return false, nil // another process took over
		}
		return last != 0, err
	})
}

// mailboxGrace is how long a mailbox may fail before that is an alert.
const mailboxGrace = time.Hour

// DetectMailboxes raises alerts for mailboxes that cannot be read.
func (s *Service) DetectMailboxes(ctx context.Context) (more bool, err error) {
	failing, err := s.store.FailingMailboxes(ctx, time.Now().Add(-mailboxGrace))
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
		errs = append(errs, s.saveDetections(ctx, team, detections, today))
	}
	return false, errors.Join(errs...)
}

// ReportLowDisk raises an alert of the team default: less than twice the bytes that the intake needs are
// free.
func (s *Service) ReportLowDisk(ctx context.Context, needed int64) error {
	team, err := s.store.TeamByName(ctx, dmarcd.DefaultTeam)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	today := dmarcd.DayOf(time.Now())
	return s.saveDetections(ctx, team.ID, []dmarcd.Detection{{
		Kind: dmarcd.DiskLow, Day: today,
		Reason: fmt.Sprintf("less than %d MiB are free. Below %d MiB no reports are received.", 2*needed>>20, needed>>20),
	}}, today)
}

// saveDetections stores detections that are about the team, as far as they are new.
func (s *Service) saveDetections(ctx context.Context, team dmarcd.TeamID, found []dmarcd.Detection, today dmarcd.Day) error {
	of := s.store.Team(team)
	incidents, err := of.Incidents(ctx, today-alert.Days)
	if err != nil {
		return err
	}
	fresh, extended := alert.Merge(incidents, found)
	return of.SaveDetections(ctx, fresh, extended)
}
