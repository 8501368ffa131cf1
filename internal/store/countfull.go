package store

import (
	"context"

	"github.com/dmarcd/dmarcd"
)

// A count of a day is full at dmarcd.MaxCount, and may stand for more. The column exact has all
// counts of such a day, so that something can be subtracted without adding up the day's shares:
// there may be millions, and other writers would wait for that. It is NULL while no count is full,
// and empty while countFull is due.

// fullKey is a day, and whether countFull is due.
type fullKey struct {
	full bool
	tallyKey
}

func scanFull(scan scanner) (k fullKey, err error) {
	err = scan(&k.full, &k.domain, &k.day)
	return k, err
}

// eachFull calls f with the days for which countFull is due.
func eachFull(keys []fullKey, f func(tallyKey) error) error {
	for _, key := range keys {
		if !key.full {
			continue
		}
		if err := f(key.tallyKey); err != nil {
			return err
		}
	}
	return nil
}

// countedDay is a day of a domain or of the team.
type countedDay struct {
	table, condition string // $1 is the team
	args             []any
	// sum adds up the counts of the day's parts.
	sum func(context.Context, tx) (wideCounts, error)
}

func (t *Team) domainDay(key tallyKey) countedDay {
	return countedDay{
		`domain_days`, `team_id = $1 AND domain_id = $2 AND day = $3`,
		[]any{t.id, key.domain, key.day},
		func(ctx context.Context, tx tx) (wideCounts, error) { return t.sumShares(ctx, tx, key) },
	}
}

func (t *Team) teamDay(day dmarcd.Day) countedDay {
	return countedDay{
		`team_days`, `team_id = $1 AND day = $2`,
		[]any{t.id, day},
		func(ctx context.Context, tx tx) (wideCounts, error) { return t.sumDomainDays(ctx, tx, day) },
	}
}

// countFull adds a change to the counts of a day that is or becomes full.
func (d countedDay) countFull(ctx context.Context, tx tx, change wideCounts) error {
	sums, ok, err := d.exact(ctx, tx)
	if err != nil {
		return err
	}
	if ok {
		sums = sums.plus(change)
	} else if sums, err = d.sum(ctx, tx); err != nil { // the parts are changed already
		return err
	}
	var exact any
	if sums.full() {
		exact = sums.String()
	}
	values, args := inList(d.args, append([]any{exact}, countValues(sums.saturated())...))
	_, err = tx.exec(ctx, `UPDATE `+d.table+` SET (exact, `+countColumns+`) = `+values+` WHERE `+d.condition, args...)
	return err
}

// exact returns the counts of a day. It is not ok if an older program filled the day, which does not
// know the column.
func (d countedDay) exact(ctx context.Context, tx tx) (sums wideCounts, ok bool, err error) {
	var exact string
	var counts dmarcd.Counts
	err = tx.queryRow(ctx, `SELECT COALESCE(exact, ''), `+countColumns+` FROM `+d.table+` WHERE `+d.condition,
		d.args, append([]any{&exact}, countFields(&counts)...)...)
	if err != nil {
		return sums, false, err
	}
	if sums, ok = parseWide(exact); ok {
		return sums, true, nil
	}
	sums = widen(counts)
	return sums, !sums.full(), nil
}

// exactOrSum is exact, or the sum of the day's parts.
func (d countedDay) exactOrSum(ctx context.Context, tx tx) (wideCounts, error) {
	sums, ok, err := d.exact(ctx, tx)
	if err == nil && !ok {
		return d.sum(ctx, tx)
	}
	return sums, err
}

// sumShares adds up the shares that count in a day of a domain.
func (t *Team) sumShares(ctx context.Context, tx tx, key tallyKey) (sums wideCounts, err error) {
	err = tx.queryRow(ctx, `SELECT `+wideSums("shares")+` FROM shares JOIN reports ON reports.team_id = shares.team_id AND reports.id = shares.report_id
		WHERE shares.team_id = $1 AND shares.domain_id = $2 AND shares.day = $3 AND reports.state = 'counted'`,
		[]any{t.id, key.domain, key.day}, sums.fields()...)
	return sums.plus(wideCounts{}), err
}

// sumDomainDays adds up a day of all domains of the team.
func (t *Team) sumDomainDays(ctx context.Context, tx tx, day dmarcd.Day) (sums wideCounts, err error) {
	domains, err := collect(ctx, tx, `SELECT domain_id FROM domain_days WHERE team_id = $1 AND day = $2
			AND EXISTS (SELECT 1 FROM domains WHERE domains.team_id = $1 AND domains.id = domain_days.domain_id AND domains.deleted_at = 0)`,
		[]any{t.id, day}, scanValue[dmarcd.DomainID])
	if err != nil {
		return sums, err
	}
	for _, id := range domains {
		counts, err := t.domainDay(tallyKey{id, day}).exactOrSum(ctx, tx)
		if err != nil {
			return sums, err
		}
		sums = sums.plus(counts)
	}
	return sums, nil
}

// fullIntegrity compares the exact counts of full days with their parts.
func (s *Store) fullIntegrity(ctx context.Context) (problem string, err error) {
	teams, err := s.teamIDs(ctx, `SELECT DISTINCT team_id FROM team_days WHERE exact IS NOT NULL ORDER BY team_id`)
	if err != nil {
		return "", err
	}
	for _, id := range teams {
		same := true
		err := s.own().recordSnapshot(ctx, func(read tx) error {
			same, err = s.Team(id).fullIntegrity(ctx, read)
			return err
		})
		if err != nil {
			return "", err
		}
		if !same {
			return "the exact counts of a full day are not the sum of its parts in " + id.String(), nil
		}
	}
	return "", nil
}

func (t *Team) fullIntegrity(ctx context.Context, read tx) (same bool, err error) {
	keys, err := collect(ctx, read, `SELECT TRUE, 0, day FROM team_days WHERE team_id = $1 AND exact IS NOT NULL
		UNION ALL SELECT TRUE, domain_id, day FROM domain_days
			JOIN domains ON domains.team_id = domain_days.team_id AND domains.id = domain_days.domain_id AND domains.deleted_at = 0
		WHERE domain_days.team_id = $1 AND exact IS NOT NULL`, []any{t.id}, scanFull)
	for _, key := range keys {
		day := t.domainDay(key.tallyKey)
		if key.domain == 0 {
			day = t.teamDay(key.day)
		}
		have, ok, err := day.exact(ctx, read)
		if err != nil {
			return false, err
		}
		want, err := day.sum(ctx, read)
		if err != nil || !ok || have != want {
			return false, err
		}
	}
	return true, err
}
