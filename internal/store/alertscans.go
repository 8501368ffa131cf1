package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/shape"
)

const (
	// mailDaysKept is how many days of figures are stored for detections: some more than
	// package alert reads.
	mailDaysKept = 70
	// fullScan is how often all domains of a team are judged: that reports stopped is seen in
	// no change.
	fullScan = 6 * time.Hour
	// scanPause is the time from one pass to the next that changes cause.
	scanPause = 5 * time.Minute
	// scanOverlap is how far a pass looks back behind the beginning of the last one: what was
	// changed then may have been committed later.
	scanOverlap = 10 * time.Minute
)

// AlertTeams returns the teams whose alerts are to be detected, in no particular order.
func (s *Store) AlertTeams(ctx context.Context) ([]dmarcd.TeamID, error) {
	return s.teamIDs(ctx, `SELECT teams.id FROM teams LEFT JOIN alert_scans ON alert_scans.team_id = teams.id
		WHERE alert_scans.team_id IS NULL OR alert_scans.due_at <= $1 AND alert_scans.lease_until <= $1`, unix(s.now()))
}

// ClaimAlertScan claims the detection of the team's alerts for as long as lease; ok is false
// if it is not due, or claimed.
func (t *Team) ClaimAlertScan(ctx context.Context, lease time.Duration) (scan dmarcd.AlertScan, ok bool, err error) {
	now := t.store.now()
	var due, began, changed int64
	err = t.tx(ctx, func(tx tx) error {
		// A pass that begins sees what changed since the last one began, and from time to time all.
		return tx.queryRow(ctx, `INSERT INTO alert_scans (team_id, due_at, lease_until, began_at, after_id, changed_at, is_full, full_at)
			VALUES ($1, $2, $3, $2, 0, 0, TRUE, $2)
			ON CONFLICT (team_id) DO UPDATE SET lease_until = excluded.lease_until,
				began_at = CASE WHEN alert_scans.after_id = 0 THEN excluded.began_at ELSE alert_scans.began_at END,
				is_full = CASE WHEN alert_scans.after_id = 0 THEN alert_scans.full_at <= $4 ELSE alert_scans.is_full END,
				full_at = CASE WHEN alert_scans.after_id = 0 AND alert_scans.full_at <= $4 THEN excluded.full_at ELSE alert_scans.full_at END
			WHERE alert_scans.due_at <= $2 AND alert_scans.lease_until <= $2
			RETURNING due_at, began_at, after_id, changed_at, is_full`,
			[]any{t.id, unix(now), unix(now.Add(lease)), unix(now.Add(-fullScan))}, &due, &began, &scan.After, &changed, &scan.Full)
	})
	if errors.Is(err, dmarcd.ErrNotFound) {
		return scan, false, nil
	}
	scan.Team, scan.LeaseUntil = t.id, now.Add(lease).Truncate(time.Second)
	scan.DueAt, scan.Began, scan.Since = fromUnix(due), fromUnix(began), fromUnix(changed)
	return scan, err == nil, err
}

// EndAlertScan gives a claim back after the domain after was judged; 0 ends the pass.
func (t *Team) EndAlertScan(ctx context.Context, scan dmarcd.AlertScan, after dmarcd.DomainID) error {
	now := t.store.now()
	return t.tx(ctx, func(tx tx) error {
		if after != 0 {
			_, err := tx.exec(ctx, `UPDATE alert_scans SET lease_until = 0, after_id = $3 WHERE team_id = $1 AND lease_until = $2`,
				t.id, unix(scan.LeaseUntil), after)
			return err
		}
		// What asked for a pass meanwhile has changed due_at.
		_, err := tx.exec(ctx, `UPDATE alert_scans SET lease_until = 0, after_id = 0, changed_at = $3,
				due_at = CASE WHEN due_at = $4 THEN $5 ELSE due_at END
			WHERE team_id = $1 AND lease_until = $2`,
			t.id, unix(scan.LeaseUntil), unix(scan.Began.Add(-scanOverlap)), unix(scan.DueAt), unix(now.Add(fullScan)))
		return err
	})
}

// ScannedMail returns the mail of up to limit domains of a scan, in the order of their ids,
// from the one after scan.After on. There are no more where it returns fewer.
func (t *Team) ScannedMail(ctx context.Context, scan dmarcd.AlertScan, limit int) (all []dmarcd.DomainMail, err error) {
	err = t.store.longRead(ctx, func(read tx) error {
		from := dmarcd.DayOf(t.store.now()) - mailDaysKept
		// The engines must not look for a domain among all changes of the team.
		judged, args := `EXISTS (SELECT 1 FROM mail_days WHERE mail_days.team_id = $1 AND mail_days.domain_id = domains.id)`, []any{t.id, scan.After, limit}
		if !scan.Full {
			judged = `domains.id IN (SELECT mail_days.domain_id FROM mail_days WHERE mail_days.team_id = $1 AND mail_days.changed_at >= $4)`
			args = append(args, unix(scan.Since))
		}
		ids, err := collect(ctx, read, `SELECT domains.id FROM domains WHERE domains.team_id = $1 AND domains.id > $2 AND domains.deleted_at = 0
			AND `+judged+` ORDER BY domains.id LIMIT $3`, args, scanValue[dmarcd.DomainID])
		if err != nil {
			return err
		}
		for _, id := range ids {
			mail, err := t.domainMail(ctx, read, id, from)
			if err != nil {
				return err
			}
			all = append(all, mail)
		}
		return nil
	})
	return all, err
}

// domainMail returns the mail of a domain from a day on.
func (t *Team) domainMail(ctx context.Context, read tx, id dmarcd.DomainID, from dmarcd.Day) (mail dmarcd.DomainMail, err error) {
	mail.ID = id
	mail.Days, err = collect(ctx, read, `SELECT day, document FROM mail_days WHERE team_id = $1 AND domain_id = $2 AND day >= $3 ORDER BY day`,
		[]any{t.id, id, from}, func(scan scanner) (day dmarcd.MailDay, err error) {
			var of dmarcd.Day
			var document string
			if err := scan(&of, &document); err != nil {
				return day, err
			}
			day, err = shape.DecodeMailDay(document)
			day.Day = of
			return day, err
		})
	if err != nil {
		return mail, err
	}
	if err := t.addSessions(ctx, read, &mail, from); err != nil {
		return mail, err
	}
	mail.Classes, err = collectMap[string, dmarcd.Class](ctx, read, `SELECT key, class FROM (
			SELECT 0 AS n, key, class FROM team_senders WHERE team_id = $1 AND class <> ''
			UNION ALL SELECT 1, sender, class FROM sender_classes WHERE team_id = $1 AND domain_id = $2
		) AS classes ORDER BY n`, t.id, id)
	if err != nil {
		return mail, err
	}
	mail.First, err = collectMap[string, dmarcd.Day](ctx, read, `SELECT key, first_day FROM senders
		WHERE team_id = $1 AND domain_id = $2 AND last_day >= $3`, t.id, id, from)
	return mail, err
}

// addSessions adds the figures of TLS reports. A report about several domains counts whole
// for each.
func (t *Team) addSessions(ctx context.Context, read tx, mail *dmarcd.DomainMail, from dmarcd.Day) error {
	found, err := collect(ctx, read, `SELECT shares.day, `+sumOf(`reports.messages`)+`, `+sumOf(`reports.compliant`)+`
		FROM shares JOIN reports ON reports.team_id = $1 AND reports.id = shares.report_id AND reports.state = 'counted'
		WHERE shares.team_id = $1 AND shares.domain_id = $2 AND shares.kind = 'tls' AND shares.day >= $3
		GROUP BY shares.day ORDER BY shares.day`, []any{t.id, mail.ID, from}, func(scan scanner) (d dmarcd.MailDay, err error) {
		return d, scan(&d.Day, &d.Sessions, &d.Secure)
	})
	at := 0
	for _, d := range found {
		for at < len(mail.Days) && mail.Days[at].Day < d.Day {
			at++
		}
		if at < len(mail.Days) && mail.Days[at].Day == d.Day {
			mail.Days[at].Sessions, mail.Days[at].Secure = d.Sessions, d.Secure
		}
	}
	return err
}

// saveMailDays stores the mail of domains in a period, instead of what was stored of it.
// The days ascend within a domain.
func (t *Team) saveMailDays(ctx context.Context, period dmarcd.Days, found []dmarcd.DomainDay) error {
	from := max(*period.From, dmarcd.DayOf(t.store.now())-mailDaysKept)
	if *period.To < from {
		return nil
	}
	now := unix(t.store.now())
	have := make(map[tallyKey]bool, len(found))
	var rows [][]any
	for _, d := range found {
		if d.Day >= from {
			have[tallyKey{d.Domain, d.Day}] = true
			rows = append(rows, []any{t.id, d.Domain, d.Day, now, shape.EncodeMailDay(d.MailDay)})
		}
	}
	for part := range slices.Chunk(rows, mailDaysAtOnce) {
		err := t.tx(ctx, func(tx tx) error {
			_, err := tx.insertMany(ctx, `INSERT INTO mail_days (team_id, domain_id, day, changed_at, document) VALUES `, part,
				` ON CONFLICT (team_id, domain_id, day) DO UPDATE SET document = excluded.document, changed_at = excluded.changed_at
					WHERE mail_days.document <> excluded.document`)
			return err
		})
		if err != nil {
			return err
		}
	}
	stored, err := collectRead(ctx, t.store, `SELECT domain_id, day FROM mail_days WHERE team_id = $1 AND day BETWEEN $2 AND $3`,
		[]any{t.id, from, *period.To}, func(scan scanner) (key tallyKey, err error) { return key, scan(&key.domain, &key.day) })
	if err != nil {
		return err
	}
	gone := slices.DeleteFunc(stored, func(key tallyKey) bool { return have[key] })
	for part := range slices.Chunk(gone, mailDaysAtOnce) {
		err := t.tx(ctx, func(tx tx) error {
			for _, key := range part {
				if _, err := tx.exec(ctx, `DELETE FROM mail_days WHERE team_id = $1 AND domain_id = $2 AND day = $3`, t.id, key.domain, key.day); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	// The next pass is due, soon after the last one.
	_, err = t.exec(ctx, `UPDATE alert_scans SET due_at = CASE WHEN began_at + $3 > $2 THEN began_at + $3 ELSE $2 END
		WHERE team_id = $1 AND due_at > CASE WHEN began_at + $3 > $2 THEN began_at + $3 ELSE $2 END`, t.id, now, int64(scanPause/time.Second))
	return err
}

// mailDaysAtOnce is how many days one transaction stores or removes.
const mailDaysAtOnce = 500

// expireMailDays removes figures that are too old for detections.
func (t *Team) expireMailDays(ctx context.Context, tx tx, before time.Time) (bool, error) {
	return t.expireOldest(ctx, tx, "mail_days", "", dmarcd.DayOf(before), purgeRows)
}

// RejectedByDay returns how many reports that could not be read arrived, by day.
func (t *Team) RejectedByDay(ctx context.Context, from dmarcd.Day) (map[dmarcd.Day]int64, error) {
	const day = 24 * 60 * 60
	return inRead(ctx, t.store, func(read tx) (map[dmarcd.Day]int64, error) {
		return collectMap[dmarcd.Day, int64](ctx, read, `SELECT received_at / $3, count(*) FROM rejected WHERE team_id = $1 AND received_at >= $2 GROUP BY 1`,
			t.id, int64(from)*day, int64(day))
	})
}

// FailingMailboxes returns mailboxes of all teams that could not be read since a time, or
// are paused because of an error.
func (s *Store) FailingMailboxes(ctx context.Context, since time.Time) ([]dmarcd.Mailbox, error) {
	return collectRead(ctx, s.own(), `SELECT `+strings.TrimSpace(mailboxColumns)+` FROM mailboxes
		WHERE error <> '' AND (paused_at > 0 OR seen_at < $1 AND created_at < $1) ORDER BY team_id, id`, []any{unix(since)}, scanMailbox)
}
