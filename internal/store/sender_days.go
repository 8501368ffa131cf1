package store

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// FindSenders finds the senders of a team's mail in the given days. It calls save with
// some of them at a time, and saveDays with all mail of these days.
type FindSenders func(ctx context.Context, t *Team, days dmarcd.Days, save func([]dmarcd.Sender) error, saveDays func([]dmarcd.DomainDay) error) error

// UpdateSenders stores the senders of some changed days of each team, and the figures for alerts,
// and reports whether there may be more. Errors of one team do not affect others, see eachTeam.
func (s *Store) UpdateSenders(ctx context.Context, find FindSenders) (more bool, err error) {
	return s.eachTeam(ctx, "senders", func(t *Team) (bool, error) { return t.updateSenders(ctx, find) },
		`SELECT DISTINCT team_id FROM team_days WHERE `+dueSenders)
}

const (
	// dueSenders selects days whose senders have to be found.
	dueSenders = `(in_senders <> changes OR senders_due)`
	// removedSenders selects days from which records were removed that should not have counted.
	removedSenders = `in_senders <> -1 AND removed > in_senders AND NOT expired`
)

type senderDay struct {
	day     dmarcd.Day
	changes int64
	removed bool // see removedSenders
}

// updateSenders adds the senders of the first period of changed days; further ones follow in later
// steps, after those of other teams. If records were removed, it first shortens the spans of
// senders that may depend on them, and makes all days due, because any day may be the next one of a
// sender. If the job is interrupted before its last transaction, or the team changes its own
// senders meanwhile, it runs again.
func (t *Team) updateSenders(ctx context.Context, find FindSenders) (more bool, err error) {
	own, err := t.TeamSenders(ctx)
	if err != nil {
		return false, err
	}
	changed, err := db.Collect(ctx, t.store, `SELECT day, changes, `+removedSenders+`
		FROM team_days WHERE team_id = $1 AND `+dueSenders+` ORDER BY day`, []any{t.id}, func(scan db.Scanner) (d senderDay, err error) {
		return d, scan(&d.day, &d.changes, &d.removed)
	})
	if err != nil || len(changed) == 0 {
		return false, err
	}
	var days, removed []dmarcd.Day
	for _, d := range changed {
		days = append(days, d.day)
		if d.removed {
			removed = append(removed, d.day)
		}
	}
	if len(removed) > 0 {
		return true, t.takeBackSenders(ctx, removed)
	}
	period := firstPeriod(days)
	err = find(ctx, t, period, func(found []dmarcd.Sender) error {
		return t.tx(ctx, func(tx tx) error { return t.addSenders(ctx, tx, found) })
	}, func(found []dmarcd.DomainDay) error { return t.saveMailDays(ctx, period, found) })
	if err != nil {
		return false, err
	}
	read := changed[:slices.Index(days, *period.To)+1]
	return len(read) < len(changed), t.tx(ctx, func(tx tx) error {
		if err := t.shareLock(ctx, tx); err != nil {
			return err
		}
		now, err := t.teamSenders(ctx, tx)
		if err != nil || !reflect.DeepEqual(now, own) {
			return err
		}
		for _, d := range read {
			if _, err := tx.Exec(ctx, `UPDATE team_days SET in_senders = $1, senders_due = FALSE WHERE team_id = $2 AND day = $3`, d.changes, t.id, d.day); err != nil {
				return err
			}
		}
		return nil
	})
}

// maxPeriod is the number of days read at once.
const maxPeriod = 30

// firstPeriod returns the first consecutive days of a list in ascending order, at most maxPeriod.
func firstPeriod(days []dmarcd.Day) dmarcd.Days {
	to := 0
	for to+1 < min(len(days), maxPeriod) && days[to+1] == days[to]+1 {
		to++
	}
	return dmarcd.Days{From: &days[0], To: &days[to]}
}

// sendersPerStep is the number of rows of senders per transaction of takeBackSenders: a sender has
// one for each domain that it sends for, and one for the team.
const sendersPerStep = 4_000

// takeBackSenders shortens the spans of senders that start or end on a day from which records were
// removed, and makes these days and all days with mail due: adding their senders extends the spans
// again. If it is interrupted, it runs again.
func (t *Team) takeBackSenders(ctx context.Context, days []dmarcd.Day) error {
	keys, err := t.senderSteps(ctx)
	if err != nil {
		return err
	}
	for i := range keys {
		if err := t.tx(ctx, func(tx tx) error { return t.shortenSpans(ctx, tx, keys[i:min(i+2, len(keys))]) }); err != nil {
			return err
		}
	}
	return t.tx(ctx, func(tx tx) error {
		if err := t.lock(ctx, tx); err != nil { // it locks days in no particular order
			return err
		}
		for _, day := range days {
			if _, err := tx.Exec(ctx, `UPDATE team_days SET in_senders = changes, senders_due = TRUE WHERE team_id = $1 AND day = $2`, t.id, day); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `UPDATE team_days SET senders_due = TRUE WHERE team_id = $1 AND in_senders = changes AND (compliant > 0 OR non_compliant > 0)`, t.id)
		return err
	})
}

// senderSteps returns the first key of each step of takeBackSenders.
func (t *Team) senderSteps(ctx context.Context) ([]string, error) {
	keys, rows := []string{""}, 0
	err := t.store.Query(ctx, `SELECT key, COUNT(*) FROM senders WHERE team_id = $1 GROUP BY key ORDER BY key`, []any{t.id}, func(scan db.Scanner) error {
		var key string
		var own int
		err := scan(&key, &own)
		if rows += own; rows > sendersPerStep && rows > own {
			keys, rows = append(keys, key), own
		}
		return err
	})
	return keys, err
}

// shortenSpans is a step of takeBackSenders for the senders from the first key up to the second
// one, or to the last sender if there is only one key. It recomputes the senders of the team from
// those of its domains, one of which may be gone.
func (t *Team) shortenSpans(ctx context.Context, tx tx, keys []string) error {
	const removed = ` IN (SELECT day FROM team_days WHERE team_days.team_id = $1 AND ` + removedSenders + `)`
	between, args := ` AND senders.key >= $2`, []any{t.id, keys[0]}
	if len(keys) > 1 {
		between, args = between+` AND senders.key < $3`, append(args, keys[1])
	}
	ofDomains := ` WHERE senders.team_id = $1 AND senders.domain_id IN (SELECT id FROM domains WHERE domains.team_id = $1 AND deleted_at = 0)` + between
	for _, step := range []string{
		`DELETE FROM senders` + ofDomains + ` AND first_day` + removed + ` AND last_day` + removed,
		`UPDATE senders SET first_day = CASE WHEN first_day` + removed + ` THEN last_day ELSE first_day END,
			last_day = CASE WHEN last_day` + removed + ` THEN first_day ELSE last_day END` + ofDomains + ` AND (first_day` + removed + ` OR last_day` + removed + `)`,
		`DELETE FROM senders WHERE team_id = $1 AND domain_id = 0` + between,
		`INSERT INTO senders (team_id, domain_id, key, first_day, last_day)
			SELECT senders.team_id, 0, senders.key, MIN(senders.first_day), MAX(senders.last_day)
			FROM senders` + ofDomains + ` GROUP BY senders.team_id, senders.key`,
	} {
		if _, err := tx.Exec(ctx, step, args...); err != nil {
			return err
		}
	}
	return nil
}

func (t *Team) addSenders(ctx context.Context, tx tx, found []dmarcd.Sender) error {
	rows := make([][]any, len(found))
	for i, s := range found {
		rows[i] = []any{t.id, s.Domain, s.Key, s.First, s.Last}
	}
	_, err := tx.InsertMany(ctx, `INSERT INTO senders (team_id, domain_id, key, first_day, last_day) VALUES `, rows,
		` ON CONFLICT (team_id, domain_id, key) DO UPDATE SET
			first_day = CASE WHEN excluded.first_day < senders.first_day THEN excluded.first_day ELSE senders.first_day END,
			last_day = CASE WHEN excluded.last_day > senders.last_day THEN excluded.last_day ELSE senders.last_day END`)
	return err
}

// keysPerQuery is the number of senders per query.
const keysPerQuery = 90

// Senders returns the first and last day, over all time, of the senders with these keys
// in the mail of a domain, or of all domains of the view if name is "". Unknown domains
// and senders are missing in the result.
func (t *Team) Senders(ctx context.Context, name string, keys []string) (map[string]dmarcd.SeenDays, error) {
	var domain dmarcd.DomainID
	if name != "" {
		err := t.store.QueryRow(ctx, `SELECT id FROM domains WHERE team_id = $1 AND name = $2 AND deleted_at = 0`, []any{t.id, db.Plain(name)}, &domain)
		if errors.Is(err, dmarcd.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	tag := t.tag
	if name != "" {
		tag = ""
	}
	from := `senders WHERE senders.team_id = $1 AND senders.domain_id = $2`
	if tag != "" {
		from = `domains JOIN senders ON senders.team_id = $1 AND senders.domain_id = domains.id AND senders.domain_id <> $2
			WHERE domains.team_id = $1 AND domains.deleted_at = 0`
	}
	seen := make(map[string]dmarcd.SeenDays, len(keys))
	for some := range slices.Chunk(keys, keysPerQuery) {
		wanted, args := db.In([]any{t.id, domain}, some)
		tagged, args := hasTag(tag, args)
		err := t.store.Query(ctx, `SELECT senders.key, MIN(senders.first_day), MAX(senders.last_day) FROM `+from+tagged+`
			AND senders.key IN `+wanted+` GROUP BY senders.key`, args, func(scan db.Scanner) error {
			var s dmarcd.Sender
			err := scan(&s.Key, &s.First, &s.Last)
			seen[s.Key] = s.SeenDays
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return seen, nil
}
