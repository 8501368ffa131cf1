package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

const (
	// recordBytes is the approximate size of a record without long texts; reportRowBytes, of a
	// report without its document.
	recordBytes    = 100
	reportRowBytes = 1000
	// rejectedBytes is the approximate size of a rejected item.
	rejectedBytes = 500
)

// reportBytes is an SQL expression for the size of a report.
const reportBytes = `(1000 + octet_length(reports.document) + CASE WHEN reports.emptied_at <= 0 THEN 100 * reports.records + reports.text_bytes ELSE 0 END)`

// used is a change of a team's usage.
type used struct {
	stored, unreadable, reports int64
}

// charges are the usage changes of a transaction, written just before the commit: the row of a
// team's day is locked last except for event_counters, and briefly.
type charges map[dmarcd.TeamID]used

// charge adds to a team's usage; removals are negative.
func (t tx) charge(team dmarcd.TeamID, more used) {
	sum := t.charges[team]
	sum.stored += more.stored
	sum.unreadable += more.unreadable
	sum.reports += more.reports
	t.charges[team] = sum
}

// writeCharges adds the charges to the day of each team.
func (t tx) writeCharges(ctx context.Context) error {
	for _, team := range slices.Sorted(maps.Keys(t.charges)) {
		sum := t.charges[team]
		if sum == (used{}) {
			continue
		}
		_, err := t.Exec(ctx, `INSERT INTO team_usage (team_id, day, stored, unreadable, reports) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (team_id, day) DO UPDATE SET stored = team_usage.stored + excluded.stored,
				unreadable = team_usage.unreadable + excluded.unreadable, reports = team_usage.reports + excluded.reports`,
			team, dmarcd.DayOf(t.store.now()), sum.stored, sum.unreadable, sum.reports)
		if err != nil {
			return fmt.Errorf("account for what is stored: %w", err)
		}
	}
	return nil
}

// quotaColumns are in the order of dmarcd.QuotaNames.
const quotaColumns = `quota_domains, quota_stored, quota_unreadable, quota_reports, quota_mailboxes`

// Quota returns the team's quotas, with the defaults of the installation.
func (t *Team) Quota(ctx context.Context) (dmarcd.Quota, error) { return t.quota(ctx, t.store) }

func (t *Team) quota(ctx context.Context, from db.Querier) (dmarcd.Quota, error) {
	amounts := make([]int64, len(dmarcd.QuotaNames()))
	dest := make([]any, len(amounts))
	for i := range amounts {
		dest[i] = &amounts[i]
	}
	if err := from.QueryRow(ctx, `SELECT `+quotaColumns+` FROM teams WHERE id = $1`, []any{t.id}, dest...); err != nil {
		return nil, err
	}
	quota := make(dmarcd.Quota)
	for i, name := range dmarcd.QuotaNames() {
		quota[name] = amounts[i]
		if amounts[i] == dmarcd.QuotaDefault {
			quota[name] = t.store.options.Quota[name]
		}
	}
	return quota, nil
}

// SetQuotas sets the given quotas: 0 is unlimited, dmarcd.QuotaDefault the default of the
// installation.
func (t *Team) SetQuotas(ctx context.Context, quotas dmarcd.Quota, audit ...dmarcd.AuditEntry) error {
	var set []string
	args := []any{t.id}
	for _, name := range dmarcd.QuotaNames() {
		if amount, given := quotas[name]; given {
			args = append(args, amount)
			set = append(set, fmt.Sprintf("quota_%s = $%d", name, len(args)))
		}
	}
	if len(set) < len(quotas) || len(set) == 0 {
		return dmarcd.ErrInvalid
	}
	return t.change(ctx, audit, `UPDATE teams SET `+strings.Join(set, ", ")+` WHERE id = $1`, args...)
}

// Usage returns the team's usage.
func (t *Team) Usage(ctx context.Context) (usage dmarcd.Usage, err error) {
	err = t.store.longRead(ctx, func(read tx) error {
		if usage, err = t.storage(ctx, read); err != nil {
			return err
		}
		var domains, mailboxes int64
		err := read.QueryRow(ctx, `SELECT (SELECT count(*) FROM domains WHERE team_id = $1 AND deleted_at = 0),
			(SELECT count(*) FROM mailboxes WHERE team_id = $1)`, []any{t.id}, &domains, &mailboxes)
		usage[dmarcd.QuotaDomains], usage[dmarcd.QuotaMailboxes] = domains, mailboxes
		return err
	})
	return usage, err
}

// storage returns the stored bytes, and the reports received today.
func (t *Team) storage(ctx context.Context, tx tx) (dmarcd.Usage, error) {
	var stored, unreadable, reports int64
	err := tx.QueryRow(ctx, `SELECT CAST(COALESCE(SUM(stored), 0) AS BIGINT), CAST(COALESCE(SUM(unreadable), 0) AS BIGINT),
			CAST(COALESCE(SUM(CASE WHEN day = $2 THEN reports END), 0) AS BIGINT)
		FROM team_usage WHERE team_id = $1`, []any{t.id, dmarcd.DayOf(t.store.now())}, &stored, &unreadable, &reports)
	return dmarcd.Usage{dmarcd.QuotaStored: max(0, stored), dmarcd.QuotaUnreadable: max(0, unreadable), dmarcd.QuotaReports: reports}, err
}

// Admit returns a *dmarcd.QuotaError if the team may not receive more reports now. Transports
// call it before they acknowledge a message.
func (t *Team) Admit(ctx context.Context) error {
	return t.store.pointRead(ctx, func(ctx context.Context, read tx) error {
		_, _, err := t.admit(ctx, read)
		return err
	})
}

func (t *Team) admit(ctx context.Context, tx tx) (dmarcd.Quota, dmarcd.Usage, error) {
	quota, err := t.quota(ctx, tx)
	if err != nil {
		return nil, nil, err
	}
	usage, err := t.storage(ctx, tx)
	if err != nil {
		return nil, nil, err
	}
	return quota, usage, quota.Check(usage, dmarcd.QuotaStored, dmarcd.QuotaReports)
}

// StoredBytes returns the total of all teams.
func (s *Store) StoredBytes(ctx context.Context) (int64, error) {
	return db.Value[int64](db.Row(ctx, s.own(), `SELECT CAST(COALESCE(SUM(stored), 0) AS BIGINT) FROM team_usage`))
}

// QuotaUse is how much of a quota the teams use.
type QuotaUse struct {
	// Near counts the teams that use at least 80 % of the quota; Full, those that use all of it.
	Near, Full int
	// Highest is the highest use of a team; 1 is all of its quota.
	Highest float64
}

// QuotaUse returns the use of each quota. Teams without that quota are not counted.
func (s *Store) QuotaUse(ctx context.Context) (map[dmarcd.QuotaName]QuotaUse, error) {
	all := make(map[dmarcd.QuotaName]QuotaUse)
	err := s.eachUsage(ctx, func(_ dmarcd.TeamID, quota dmarcd.Quota, usage dmarcd.Usage) {
		for name, limit := range quota {
			if limit > 0 {
				all[name] = all[name].with(float64(usage[name]) / float64(limit))
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read the use of quotas: %w", err)
	}
	return all, nil
}

// eachUsage calls visit with the quotas and the usage of each team.
func (s *Store) eachUsage(ctx context.Context, visit func(team dmarcd.TeamID, quota dmarcd.Quota, usage dmarcd.Usage)) error {
	var team dmarcd.TeamID
	names := dmarcd.QuotaNames()
	limits, used := make([]int64, len(names)), make([]int64, len(names))
	dest := []any{&team}
	for _, amounts := range [][]int64{limits, used} {
		for i := range amounts {
			dest = append(dest, &amounts[i])
		}
	}
	return s.own().Query(ctx, `SELECT id, `+quotaColumns+`, COALESCE(owned.n, 0), COALESCE(spent.stored, 0), COALESCE(spent.unreadable, 0),
			COALESCE(spent.reports, 0), COALESCE(polled.n, 0)
		FROM teams
		LEFT JOIN (SELECT team_id, count(*) AS n FROM domains WHERE deleted_at = 0 GROUP BY team_id) owned ON owned.team_id = teams.id
		LEFT JOIN (SELECT team_id, count(*) AS n FROM mailboxes GROUP BY team_id) polled ON polled.team_id = teams.id
		LEFT JOIN (SELECT team_id, CAST(SUM(stored) AS BIGINT) AS stored, CAST(SUM(unreadable) AS BIGINT) AS unreadable,
				CAST(SUM(CASE WHEN day = $1 THEN reports ELSE 0 END) AS BIGINT) AS reports
			FROM team_usage GROUP BY team_id) spent ON spent.team_id = teams.id`,
		[]any{dmarcd.DayOf(s.now())}, func(scan db.Scanner) error {
			if err := scan(dest...); err != nil {
				return err
			}
			quota, usage := make(dmarcd.Quota, len(names)), make(dmarcd.Usage, len(names))
			for i, name := range names {
				quota[name], usage[name] = limits[i], max(0, used[i])
				if limits[i] == dmarcd.QuotaDefault {
					quota[name] = s.options.Quota[name]
				}
			}
			visit(team, quota, usage)
			return nil
		})
}

// with adds the use of a team.
func (u QuotaUse) with(share float64) QuotaUse {
	if share >= 0.8 {
		u.Near++
	}
	if share >= 1 {
		u.Full++
	}
	u.Highest = max(u.Highest, share)
	return u
}
