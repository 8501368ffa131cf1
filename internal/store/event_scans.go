package store

import (
	"context"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
	"github.com/dmarcd/dmarcd/internal/store/shape"
)

const (
	// mailDaysStored is the number of days whose figures are stored for detection: a few more than
	// package alert reads.
	mailDaysStored = 70
	// fullScan is the interval of passes over all domains of a team: reports that stop arriving are
	// not a change.
	fullScan = 6 * time.Hour
	// scanPause is the minimum time between passes that changes cause.
	scanPause = 5 * time.Minute
	// scanOverlap is subtracted from the start of the last pass: a change from before it may have
	// been committed later.
	scanOverlap = 10 * time.Minute
)

// ScanAlerts calls detect for each team that is due, to find alerts in some of its domains, and
// reports whether there may be more. Errors of one team do not affect others, see eachTeam.
func (s *Store) ScanAlerts(ctx context.Context, detect func(*Team, dmarcd.AlertScan) (more bool, err error)) (more bool, err error) {
	return s.eachTeam(ctx, "detection of alerts", func(t *Team) (bool, error) {
		scan, err := t.beginScan(ctx)
		if err != nil {
			return false, err
		}
		return detect(t, scan)
	}, `SELECT teams.id FROM teams LEFT JOIN alert_scans ON alert_scans.team_id = teams.id
		WHERE teams.deleted_at = 0 AND (alert_scans.team_id IS NULL OR alert_scans.due_at <= $1)`, unix(s.now()))
}

// beginScan begins or continues a pass over the team's domains: those that changed since the last
// pass began, or all every fullScan.
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

// SaveScan saves the detections of a scan, see SaveDetections, and its progress: it covered the
// domains up to after; 0 ends the pass. It is dmarcd.ErrConflict if another process continued the
// pass, after this one lost the lease of the job.
func (t *Team) SaveScan(ctx context.Context, scan dmarcd.AlertScan, after dmarcd.DomainID, fresh []dmarcd.Detection, extended []dmarcd.Incident) error {
	since, next, full := scan.Since, scan.DueAt, false
	if after == 0 {
		since, next, full = scan.Began.Add(-scanOverlap), t.store.now().Add(fullScan), scan.Full
	}
	return t.tx(ctx, func(tx tx) error {
		// due_at differs if a change made a further pass due meanwhile.
		err := tx.ExecOr(ctx, dmarcd.ErrConflict, `UPDATE alert_scans SET after_id = $4, changed_at = $5,
				due_at = CASE WHEN due_at = $6 THEN $7 ELSE due_at END, full_at = CASE WHEN $8 THEN began_at ELSE full_at END
			WHERE team_id = $1 AND began_at = $2 AND after_id = $3`,
			t.id, unix(scan.Began), scan.After, after, unix(since), unix(scan.DueAt), unix(next), full)
		if err != nil {
			return err
		}
		return t.saveDetections(ctx, tx, fresh, extended)
	})
}

// ScannedMail returns the mail of up to limit domains of a scan, in order of id, after scan.After.
// Fewer than limit are the last ones.
func (t *Team) ScannedMail(ctx context.Context, scan dmarcd.AlertScan, limit int) (all []dmarcd.DomainMail, err error) {
	err = t.store.longRead(ctx, func(read tx) error {
		from := dmarcd.DayOf(t.store.now()) - mailDaysStored
		// Two conditions, so that neither engine searches all changes of the team for each domain.
		selected, args := `EXISTS (SELECT 1 FROM mail_days WHERE mail_days.team_id = $1 AND mail_days.domain_id = domains.id)`, []any{t.id, scan.After, limit}
		if !scan.Full {
			selected = `domains.id IN (SELECT mail_days.domain_id FROM mail_days WHERE mail_days.team_id = $1 AND mail_days.changed_at >= $4)`
			args = append(args, unix(scan.Since))
		}
		ids, err := db.Collect(ctx, read, `SELECT domains.id FROM domains WHERE domains.team_id = $1 AND domains.id > $2 AND domains.deleted_at = 0
			AND `+selected+` ORDER BY domains.id LIMIT $3`, args, db.Value[dmarcd.DomainID])
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
	mail.Days, err = db.Collect(ctx, read, `SELECT day, document FROM mail_days WHERE team_id = $1 AND domain_id = $2 AND day >= $3 ORDER BY day`,
		[]any{t.id, id, from}, func(scan db.Scanner) (day dmarcd.MailDay, err error) {
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
	mail.Classes, err = db.CollectMap[string, dmarcd.Class](ctx, read, `SELECT key, class FROM (
			SELECT 0 AS n, key, class FROM team_senders WHERE team_id = $1 AND class <> ''
			UNION ALL SELECT 1, sender, class FROM sender_classes WHERE team_id = $1 AND domain_id = $3
			UNION ALL SELECT 2, sender, class FROM sender_classes WHERE team_id = $1 AND domain_id = $2
		) AS classes ORDER BY n`, t.id, id, allDomains)
	if err != nil {
		return mail, err
	}
	mail.First, err = db.CollectMap[string, dmarcd.Day](ctx, read, `SELECT key, first_day FROM senders
		WHERE team_id = $1 AND domain_id = $2 AND last_day >= $3`, t.id, id, from)
	return mail, err
}

// addSessions adds the figures of TLS reports. A report about several domains counts in full for
// each.
func (t *Team) addSessions(ctx context.Context, read tx, mail *dmarcd.DomainMail, from dmarcd.Day) error {
	found, err := db.Collect(ctx, read, `SELECT shares.day, `+sumOf(`reports.messages`)+`, `+sumOf(`reports.compliant`)+`
		FROM shares JOIN reports ON reports.team_id = $1 AND reports.id = shares.report_id AND reports.state = 'counted'
		WHERE shares.team_id = $1 AND shares.domain_id = $2 AND shares.kind = 'tls' AND shares.day >= $3
		GROUP BY shares.day ORDER BY shares.day`, []any{t.id, mail.ID, from}, func(scan db.Scanner) (d dmarcd.MailDay, err error) {
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

// saveMailDays replaces the stored mail of domains in a period. The days of a domain ascend.
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
			_, err := tx.InsertMany(ctx, `INSERT INTO mail_days (team_id, domain_id, day, changed_at, document) VALUES `, part,
				` ON CONFLICT (team_id, domain_id, day) DO UPDATE SET document = excluded.document, changed_at = excluded.changed_at
					WHERE mail_days.document <> excluded.document`)
			return err
		})
		if err != nil {
			return err
		}
	}
	stored, err := db.Collect(ctx, t.store, `SELECT domain_id, day FROM mail_days WHERE team_id = $1 AND day BETWEEN $2 AND $3`,
		[]any{t.id, from, *period.To}, func(scan db.Scanner) (key tallyKey, err error) { return key, scan(&key.domain, &key.day) })
	if err != nil {
		return err
	}
	gone := slices.DeleteFunc(stored, func(key tallyKey) bool { return have[key] })
	for part := range slices.Chunk(gone, mailDaysAtOnce) {
		err := t.tx(ctx, func(tx tx) error {
			for _, key := range part {
				if _, err := tx.Exec(ctx, `DELETE FROM mail_days WHERE team_id = $1 AND domain_id = $2 AND day = $3`, t.id, key.domain, key.day); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	// Makes the next pass due, scanPause after the last one.
	_, err = t.exec(ctx, `UPDATE alert_scans SET due_at = CASE WHEN began_at + $3 > $2 THEN began_at + $3 ELSE $2 END
		WHERE team_id = $1 AND due_at > CASE WHEN began_at + $3 > $2 THEN began_at + $3 ELSE $2 END`, t.id, now, int64(scanPause/time.Second))
	return err
}

// mailDaysAtOnce is the number of days that one transaction stores or removes.
const mailDaysAtOnce = 500

// expireMailDays removes figures that are too old for detections.
func (t *Team) expireMailDays(ctx context.Context, tx tx, before time.Time) (bool, error) {
	return t.expireOldest(ctx, tx, "mail_days", "", dmarcd.DayOf(before), purgeRows)
}
