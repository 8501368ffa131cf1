package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/shape"
)

const (
	// mailDaysStored is how many days of figures are stored for detections: some more than
	// package alert reads.
	mailDaysStored = 70
	// fullScan is how often all domains of a team are scanned: reports that stop
	// arriving are no change.
	fullScan = 6 * time.Hour
	// scanPause is the time from one pass to the next that changes cause.
	scanPause = 5 * time.Minute
	// scanOverlap is how far a pass looks back behind the beginning of the last one: what was
	// changed then may have been committed later.
	scanOverlap = 10 * time.Minute
)

// ScanAlerts has detect find the alerts of the teams that are due, in some domains of each, and
// reports whether there may be more. Errors of one team do not affect others, see eachTeam.
func (s *Store) ScanAlerts(ctx context.Context, detect func(*Team, dmarcd.AlertScan) (more bool, err error)) (more bool, err error) {
	return s.eachTeam(ctx, "detection of alerts", func(t *Team) (bool, error) {
		scan, err := t.beginScan(ctx)
		if err != nil {
			return false, err
		}
		return detect(t, scan)
	}, `SELECT teams.id FROM teams LEFT JOIN alert_scans ON alert_scans.team_id = teams.id
		WHERE alert_scans.team_id IS NULL OR alert_scans.due_at <= $1`, unix(s.now()))
}

// beginScan begins a pass over the team's domains, or continues one. It sees what changed since the
// last one began, and from time to time all.
func (t *Team) beginScan(ctx context.Context) (scan dmarcd.AlertScan, err error) {
	now := t.store.now()
	var due, began, changed int64
	err = t.execRow(ctx, `INSERT INTO alert_scans (team_id, due_at, began_at, after_id, changed_at, is_full, full_at)
		VALUES ($1, $2, $2, 0, 0, TRUE, 0)
		ON CONFLICT (team_id) DO UPDATE SET
			began_at = CASE WHEN alert_scans.after_id = 0 THEN excluded.began_at ELSE alert_scans.began_at END,
			is_full = CASE WHEN alert_scans.after_id = 0 THEN alert_scans.full_at <= $3 ELSE alert_scans.is_full END
		RETURNING due_at, began_at, after_id, changed_at, is_full`,
		[]any{t.id, unix(now), unix(now.Add(-fullScan))}, &due, &began, &scan.After, &changed, &scan.Full)
	scan.Today, scan.DueAt, scan.Began, scan.Since = dmarcd.DayOf(now), fromUnix(due), fromUnix(began), fromUnix(changed)
	return scan, err
}

// SaveScan saves what a scan detected, see SaveDetections, and that it covered the domains up to
// after; 0 ends the pass. It is dmarcd.ErrConflict if another process continued the pass: one that
// was paused for so long that it lost the job.
func (t *Team) SaveScan(ctx context.Context, scan dmarcd.AlertScan, after dmarcd.DomainID, fresh []dmarcd.Detection, extended []dmarcd.Incident) error {
	since, next, full := scan.Since, scan.DueAt, false
	if after == 0 {
		since, next, full = scan.Began.Add(-scanOverlap), t.store.now().Add(fullScan), scan.Full
	}
	return t.tx(ctx, func(tx tx) error {
		// What asked for a pass meanwhile has changed due_at.
		err := tx.execOr(ctx, dmarcd.ErrConflict, `UPDATE alert_scans SET after_id = $4, changed_at = $5,
				due_at = CASE WHEN due_at = $6 THEN $7 ELSE due_at END, full_at = CASE WHEN $8 THEN began_at ELSE full_at END
			WHERE team_id = $1 AND began_at = $2 AND after_id = $3`,
			t.id, unix(scan.Began), scan.After, after, unix(since), unix(scan.DueAt), unix(next), full)
		if err != nil {
			return err
		}
		return t.saveDetections(ctx, tx, fresh, extended)
	})
}

// ScannedMail returns the mail of up to limit domains of a scan, in the order of their ids,
// from the one after scan.After on. There are no more where it returns fewer.
func (t *Team) ScannedMail(ctx context.Context, scan dmarcd.AlertScan, limit int) (all []dmarcd.DomainMail, err error) {
	err = t.store.longRead(ctx, func(read tx) error {
		from := dmarcd.DayOf(t.store.now()) - mailDaysStored
		// The engines must not look for a domain among all changes of the team.
		selected, args := `EXISTS (SELECT 1 FROM mail_days WHERE mail_days.team_id = $1 AND mail_days.domain_id = domains.id)`, []any{t.id, scan.After, limit}
		if !scan.Full {
			selected = `domains.id IN (SELECT mail_days.domain_id FROM mail_days WHERE mail_days.team_id = $1 AND mail_days.changed_at >= $4)`
			args = append(args, unix(scan.Since))
		}
		ids, err := collect(ctx, read, `SELECT domains.id FROM domains WHERE domains.team_id = $1 AND domains.id > $2 AND domains.deleted_at = 0
			AND `+selected+` ORDER BY domains.id LIMIT $3`, args, scanValue[dmarcd.DomainID])
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
	from := max(*period.From, dmarcd.DayOf(t.store.now())-mailDaysStored)
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
