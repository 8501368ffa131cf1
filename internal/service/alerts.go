package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/alert"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/store"
)

// Alerts returns up to limit alerts, newest first, of events with numbers below before; 0
// begins with the newest.
func (t *Team) Alerts(ctx context.Context, filter dmarcd.AlertFilter, before int64, limit int) ([]dmarcd.Alert, error) {
	return see(t, func() ([]dmarcd.Alert, error) { return t.team.Alerts(ctx, filter, before, limit) })
}

// AlertGroups returns up to limit groups of open alerts that match the filter, those with the newest alert
// first, whose newest alert is older than before; 0 begins with the newest. Each has up to each alerts.
func (t *Team) AlertGroups(ctx context.Context, filter dmarcd.AlertFilter, before int64, limit, each int) ([]dmarcd.AlertGroup, error) {
	return see(t, func() ([]dmarcd.AlertGroup, error) { return t.team.AlertGroups(ctx, filter, before, limit, each) })
}

// OpenAlerts returns the number of open alerts that match the filter, at most limit.
func (t *Team) OpenAlerts(ctx context.Context, filter dmarcd.AlertFilter, limit int) (int, error) {
	return see(t, func() (int, error) { return t.team.OpenAlerts(ctx, filter, limit) })
}

// AcknowledgeAlerts records that the actor took note of all open alerts that match the filter, and returns
// their number.
func (t *Team) AcknowledgeAlerts(ctx context.Context, filter dmarcd.AlertFilter) (int64, error) {
	if err := t.may(dmarcd.RightChange); err != nil {
		return 0, err
	}
	return t.team.AcknowledgeAlerts(ctx, filter, t.actor.entry.Actor, func(n int64) dmarcd.AuditEntry {
		return t.actor.to("alert.acknowledge", filter.Domain, phrase.Count(n, "alert"))
	})
}

// AcknowledgeAlert records that the actor took note of an alert, and returns it.
func (t *Team) AcknowledgeAlert(ctx context.Context, seq int64) (dmarcd.Alert, error) {
	if err := t.may(dmarcd.RightChange); err != nil {
		return dmarcd.Alert{}, err
	}
	alert, err := t.team.Alert(ctx, seq)
	if err != nil {
		return dmarcd.Alert{}, err
	}
	entry := t.actor.to("alert.acknowledge", alert.Event.ID.String(), string(alert.Event.Kind))
	if err := t.team.AcknowledgeAlert(ctx, seq, t.actor.entry.Actor, entry); err != nil {
		return dmarcd.Alert{}, err
	}
	return t.team.Alert(ctx, seq)
}

// TestAlert sends a test event to all channels that are on, except those of digests alone, and
// returns its alert. It is a *ThrottledError after many tests.
func (t *Team) TestAlert(ctx context.Context) (dmarcd.Alert, error) {
	if err := t.mayConnect(); err != nil {
		return dmarcd.Alert{}, err
	}
	if err := t.mayTest(t.team.ID().String()); err != nil {
		return dmarcd.Alert{}, err
	}
	return t.team.TestAlert(ctx, t.actor.to("alert.test", "", ""))
}

// AlertRules returns the rules that decide which events are sent.
func (t *Team) AlertRules(ctx context.Context) (dmarcd.AlertRules, error) {
	return see(t, func() (dmarcd.AlertRules, error) { return t.team.AlertRules(ctx) })
}

// SetAlertRules replaces the rules. Rules that cannot be right are an *dmarcd.InvalidError.
func (t *Team) SetAlertRules(ctx context.Context, rules dmarcd.AlertRules) error {
	if err := t.mayConnect(); err != nil {
		return err
	}
	var err error
	for i, name := range rules.Domains {
		if rules.Domains[i], err = dmarcd.ParseName(name); err != nil {
			return err
		}
	}
	for i, tag := range rules.Tags {
		if rules.Tags[i], err = dmarcd.ParseTag(tag); err != nil {
			return err
		}
	}
	for i, m := range rules.Mutes {
		if m.Domain == "" {
			continue
		}
		if rules.Mutes[i].Domain, err = dmarcd.ParseName(m.Domain); err != nil {
			return err
		}
	}
	if err := rules.Validate(); err != nil {
		return err
	}
	return t.team.SetAlertRules(ctx, rules, t.actor.to("alert.rules", "", ""))
}

// alertBatch is the number of domains of a team that are examined before the next team.
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
		// The answer of the server is not shown: it may be a server in a private network.
		reason := "It could not be read for an hour. The page of mailboxes shows more."
		if !m.PausedAt.IsZero() {
			reason = m.Error
		}
		found[m.Team] = append(found[m.Team], dmarcd.Detection{
			Kind: dmarcd.MailboxFailing, Subject: m.ID.String(), Name: m.Username + " at " + m.Host, Day: today, Reason: reason,
		})
	}
	return false, s.saveAllDetections(ctx, found, today)
}

// tokenNotice is how long before its end an alert reminds of a token.
const tokenNotice = 14 * 24 * time.Hour

// DetectTokens raises alerts for tokens that are in use and expire soon.
func (s *Service) DetectTokens(ctx context.Context) (more bool, err error) {
	expiring, err := s.store.ExpiringTokens(ctx, tokenNotice)
	if err != nil {
		return false, err
	}
	today := dmarcd.DayOf(s.options.Now())
	found := make(map[dmarcd.TeamID][]dmarcd.Detection)
	for _, token := range expiring {
		found[token.Team] = append(found[token.Team], dmarcd.Detection{
			Kind: dmarcd.TokenExpiring, Subject: token.ID.String(), Name: token.Name, Day: dmarcd.DayOf(token.ExpiresAt),
		})
	}
	return false, s.saveAllDetections(ctx, found, today)
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

// saveAllDetections is saveDetections for several teams.
func (s *Service) saveAllDetections(ctx context.Context, found map[dmarcd.TeamID][]dmarcd.Detection, today dmarcd.Day) error {
	var errs []error
	for team, detections := range found {
		errs = append(errs, s.saveDetections(ctx, team, detections, today))
	}
	return errors.Join(errs...)
}

// saveDetections stores those of the team's detections that are new.
func (s *Service) saveDetections(ctx context.Context, team dmarcd.TeamID, found []dmarcd.Detection, today dmarcd.Day) error {
	of := s.store.Team(team)
	incidents, err := of.Incidents(ctx, today-alert.Days)
	if err != nil {
		return err
	}
	fresh, extended := alert.Merge(incidents, found)
	return of.SaveDetections(ctx, fresh, extended)
}
