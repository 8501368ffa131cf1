package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// countColumns are the columns that hold dmarcd.Counts, in the order of
// countPointers.
const countColumns = `compliant, non_compliant, quarantined, rejected, dkim, spf, unverified`

func countPointers(c *dmarcd.Counts) []*int64 {
	return []*int64{&c.Compliant, &c.NonCompliant, &c.Quarantined, &c.Rejected, &c.DKIM, &c.SPF, &c.Unverified}
}

func countFields(c *dmarcd.Counts) []any {
	var fields []any
	for _, field := range countPointers(c) {
		fields = append(fields, field)
	}
	return fields
}

func countValues(c dmarcd.Counts) []any {
	var values []any
	for _, field := range countPointers(&c) {
		values = append(values, *field)
	}
	return values
}

// changeCounts is a SET clause that adds the counts of another table to those of a table, or
// subtracts them.
func changeCounts(table, sign, other string) string {
	var set []string
	for column := range strings.SplitSeq(countColumns, ", ") {
		set = append(set, fmt.Sprintf(`%[1]s = %[2]s.%[1]s %[3]s %[4]s.%[1]s`, column, table, sign, other))
	}
	return strings.Join(set, ", ")
}

// sumOf returns SQL for the sum of a column.
func sumOf(column string) string { return `CAST(COALESCE(SUM(` + column + `), 0) AS BIGINT)` }

// sumsOf returns SQL for the sums of the counts of a table.
func sumsOf(table string) string {
	var sums []string
	for column := range strings.SplitSeq(countColumns, ", ") {
		sums = append(sums, sumOf(table+`.`+column))
	}
	return strings.Join(sums, ", ")
}

// tally holds counter changes of domains, by day.
type tally map[tallyKey]change

type tallyKey struct {
	domain dmarcd.DomainID
	day    dmarcd.Day
}

// change is the change of one row of counters.
type change struct {
	counts dmarcd.Counts // negative if subtracted
	// taken is set if something was subtracted, added if something was added; oldest is the oldest
	// added report, 0 if unknown.
	taken, added bool
	oldest       dmarcd.ReportID
}

func (d *change) addCounts(c dmarcd.Counts, sign int64) {
	added := countPointers(&c)
	for i, field := range countPointers(&d.counts) {
		*field += sign * *added[i]
	}
}

func (d change) merge(other change) change {
	d.addCounts(other.counts, 1)
	d.taken = d.taken || other.taken
	if other.added {
		d = d.of(other.oldest)
	}
	return d
}

// of records that part of a report was added.
func (d change) of(report dmarcd.ReportID) change {
	if !d.added || report < d.oldest {
		d.oldest = report
	}
	d.added = true
	return d
}

// add adds the counts of a report; 0 is a report of unknown age.
func (t tally) add(key tallyKey, c dmarcd.Counts, report dmarcd.ReportID) {
	d := t[key].of(report)
	d.addCounts(c, 1)
	t[key] = d
}

func (t tally) subtract(key tallyKey, c dmarcd.Counts) {
	d := t[key]
	d.addCounts(c, -1)
	d.taken = true
	t[key] = d
}

// keys returns the keys in lock order.
func (t tally) keys() []tallyKey {
	return slices.SortedFunc(maps.Keys(t), func(a, b tallyKey) int {
		return cmp.Or(cmp.Compare(a.domain, b.domain), cmp.Compare(a.day, b.day))
	})
}

// qualifiedCounts is countColumns of a table.
func qualifiedCounts(table string) string {
	return table + `.` + strings.ReplaceAll(countColumns, `, `, `, `+table+`.`)
}

// count applies changes to the counters of domains and of the team, bumps each day's change
// counter, and marks a rollup stale if something was subtracted from it or a report was added that
// is not newer than its newest one. The caller has locked the domains, and has changed the shares
// and reports. Rows are changed in a fixed order (domains, their days, the team's days), so that
// transactions do not deadlock, and once each: PostgreSQL rejects two changes of a row in one
// statement.
func (t *Team) count(ctx context.Context, tx tx, changes tally) error {
	domains, days := make(map[dmarcd.DomainID]change), make(map[dmarcd.Day]change)
	for key, d := range changes {
		domains[key.domain] = domains[key.domain].merge(d)
		days[key.day] = days[key.day].merge(d)
	}
	for _, id := range slices.Sorted(maps.Keys(domains)) {
		sum := domains[id].counts.Summary
		if sum == (dmarcd.Summary{}) {
			continue
		}
		_, err := tx.Exec(ctx, `UPDATE domains SET compliant = compliant + $1, non_compliant = non_compliant + $2
			WHERE team_id = $3 AND id = $4`, sum.Compliant, sum.NonCompliant, t.id, id)
		if err != nil {
			return err
		}
	}
	if err := t.countDomainDays(ctx, tx, changes); err != nil {
		return err
	}
	return t.countTeamDays(ctx, tx, days)
}

func (t *Team) countDomainDays(ctx context.Context, tx tx, changes tally) error {
	var rows [][]any
	for _, key := range changes.keys() {
		if d := changes[key]; d.counts != (dmarcd.Counts{}) {
			rows = append(rows, append([]any{t.id, key.domain, key.day}, countValues(d.counts)...))
		}
	}
	_, err := tx.InsertMany(ctx, `INSERT INTO domain_days (team_id, domain_id, day, `+countColumns+`) VALUES `, rows,
		` ON CONFLICT (team_id, domain_id, day) DO UPDATE SET `+changeCounts("domain_days", "+", "excluded"))
	return err
}

func (t *Team) countTeamDays(ctx context.Context, tx tx, days map[dmarcd.Day]change) error {
	var rows [][]any
	for _, day := range slices.Sorted(maps.Keys(days)) {
		broken := 0
		if days[day].taken {
			broken = 1
		}
		rows = append(rows, append([]any{t.id, day, 1, broken, days[day].oldest}, countValues(days[day].counts)...))
	}
	_, err := tx.InsertMany(ctx, `INSERT INTO team_days (team_id, day, changes, broken, newest_report, `+countColumns+`) VALUES `, rows,
		` ON CONFLICT (team_id, day) DO UPDATE SET `+changeCounts("team_days", "+", "excluded")+`, changes = team_days.changes + 1,
			broken = CASE WHEN excluded.broken > 0 OR excluded.newest_report <= team_days.newest_report THEN team_days.changes + 1 ELSE team_days.broken END,
			removed = CASE WHEN excluded.broken > 0 THEN team_days.changes + 1 ELSE team_days.removed END`)
	return err
}

// DomainSummary sums the messages of a domain in the given days; an unknown domain is
// ErrNotFound. It always takes one query, so that timing reveals nothing.
func (t *Team) DomainSummary(ctx context.Context, name string, days dmarcd.Days) (dmarcd.Summary, error) {
	var sum dmarcd.Summary
	if days == (dmarcd.Days{}) {
		err := t.store.QueryRow(ctx, `SELECT compliant, non_compliant FROM domains
			WHERE team_id = $1 AND name = $2 AND deleted_at = 0`, []any{t.id, name}, &sum.Compliant, &sum.NonCompliant)
		return sum, err
	}
	from, to := bounds(days)
	// GROUP BY returns no row for an unknown domain.
	err := t.store.QueryRow(ctx, `SELECT `+sumOf(`domain_days.compliant`)+`, `+sumOf(`domain_days.non_compliant`)+`
		FROM domains LEFT JOIN domain_days ON domain_days.team_id = domains.team_id
			AND domain_days.domain_id = domains.id AND domain_days.day BETWEEN $3 AND $4
		WHERE domains.team_id = $1 AND domains.name = $2 AND domains.deleted_at = 0
		GROUP BY domains.id`,
		[]any{t.id, name, from, to}, &sum.Compliant, &sum.NonCompliant)
	return sum, err
}

// Summary sums the messages of all present domains in the given days.
func (t *Team) Summary(ctx context.Context, days dmarcd.Days) (dmarcd.Summary, error) {
	from, to := bounds(days)
	var sum dmarcd.Summary
	err := t.store.QueryRow(ctx, `SELECT `+sumOf(`compliant`)+`, `+sumOf(`non_compliant`)+`
		FROM team_days WHERE team_id = $1 AND day BETWEEN $2 AND $3`,
		[]any{t.id, from, to}, &sum.Compliant, &sum.NonCompliant)
	return sum, err
}

// bounds returns the first and last day, with limits for open ends.
func bounds(days dmarcd.Days) (from, to dmarcd.Day) {
	from, to = math.MinInt32, math.MaxInt32
	if days.From != nil {
		from = *days.From
	}
	if days.To != nil {
		to = *days.To
	}
	return from, to
}

// DailyCounts are the messages of one day.
type DailyCounts struct {
	Day dmarcd.Day
	// Domain is "" for the whole team.
	Domain string
	dmarcd.Counts
}

// Daily returns up to limit days with messages of all present domains, in order.
func (t *Team) Daily(ctx context.Context, days dmarcd.Days, limit int) ([]DailyCounts, error) {
	if t.tag != "" {
		return t.sumDaily(ctx, days, limit, "")
	}
	from, to := bounds(days)
	return db.Collect(ctx, t.store, `SELECT day, '', `+countColumns+` FROM team_days
		WHERE team_id = $1 AND day BETWEEN $2 AND $3 AND (compliant > 0 OR non_compliant > 0)
		ORDER BY day LIMIT $4`, []any{t.id, from, to, limit}, scanDaily)
}

// ParkedDaily is Daily for parked domains with p=reject, which send no legitimate mail. A domain
// with a message that passes DMARC in these days is excluded: its subdomains may send mail.
func (t *Team) ParkedDaily(ctx context.Context, days dmarcd.Days, limit int) ([]DailyCounts, error) {
	return t.sumDaily(ctx, days, limit, ` AND `+locked+` AND NOT EXISTS (SELECT 1 FROM domain_days AS passed
		WHERE passed.team_id = $1 AND passed.domain_id = domains.id AND passed.day BETWEEN $2 AND $3 AND passed.compliant > 0)`)
}

// TLSDaily returns the sessions in TLS reports about a domain by day, in order. Sessions
// that were encrypted as required are compliant. It is empty for an unknown domain.
func (t *Team) TLSDaily(ctx context.Context, name string, days dmarcd.Days) ([]DailyCounts, error) {
	from, to := bounds(days)
	return db.Collect(ctx, t.store, `SELECT shares.day, `+sumOf(`reports.compliant`)+`, `+sumOf(`reports.messages - reports.compliant`)+`
		FROM domains JOIN shares ON shares.team_id = $1 AND shares.domain_id = domains.id AND shares.kind = 'tls'
			JOIN reports ON reports.team_id = $1 AND reports.id = shares.report_id AND reports.state = 'counted'
		WHERE domains.team_id = $1 AND domains.name = $2 AND domains.deleted_at = 0 AND shares.day BETWEEN $3 AND $4
		GROUP BY shares.day ORDER BY shares.day`, []any{t.id, db.Plain(name), from, to}, func(scan db.Scanner) (d DailyCounts, err error) {
		return d, scan(&d.Day, &d.Compliant, &d.NonCompliant)
	})
}

// TLSEvidence is what TLS reports say about a domain.
type TLSEvidence struct {
	Days, Reporters  int // with sessions
	Sessions, Failed int64
}

// TLSEvidence summarizes the TLS reports about a domain. Reports in mail that is not authenticated do not
// count.
func (t *Team) TLSEvidence(ctx context.Context, name string, days dmarcd.Days) (e TLSEvidence, err error) {
	from, to := bounds(days)
	err = t.store.own().QueryRow(ctx, `SELECT COUNT(DISTINCT shares.day), COUNT(DISTINCT reports.organization), `+sumOf(`reports.messages`)+`, `+sumOf(`reports.messages - reports.compliant`)+`
		FROM domains JOIN shares ON shares.team_id = $1 AND shares.domain_id = domains.id AND shares.kind = 'tls'
			JOIN reports ON reports.team_id = $1 AND reports.id = shares.report_id AND reports.state = 'counted' AND reports.genuine <> $5 AND reports.messages > 0
		WHERE domains.team_id = $1 AND domains.name = $2 AND domains.deleted_at = 0 AND shares.day BETWEEN $3 AND $4`,
		[]any{t.id, db.Plain(name), from, to, dmarcd.GenuineNo}, &e.Days, &e.Reporters, &e.Sessions, &e.Failed)
	return e, err
}

// sumDaily is Daily with an additional condition on domains.
func (t *Team) sumDaily(ctx context.Context, days dmarcd.Days, limit int, condition string) ([]DailyCounts, error) {
	from, to := bounds(days)
	tagged, args := t.tagged([]any{t.id, from, to, limit})
	return db.Collect(ctx, t.store, `SELECT domain_days.day, '', `+sumsOf("domain_days")+`
		FROM domains JOIN domain_days ON domain_days.team_id = $1 AND domain_days.domain_id = domains.id
		WHERE domains.team_id = $1 AND domains.deleted_at = 0 AND domain_days.day BETWEEN $2 AND $3`+tagged+condition+`
			AND (domain_days.compliant > 0 OR domain_days.non_compliant > 0)
		GROUP BY domain_days.day ORDER BY domain_days.day LIMIT $4`, args, scanDaily)
}

// DomainDaily is Daily for one domain; it is empty for an unknown one.
func (t *Team) DomainDaily(ctx context.Context, name string, days dmarcd.Days, limit int) ([]DailyCounts, error) {
	from, to := bounds(days)
	return db.Collect(ctx, t.store, `SELECT domain_days.day, domains.name, `+qualifiedCounts("domain_days")+`
		FROM domains JOIN domain_days ON domain_days.team_id = domains.team_id AND domain_days.domain_id = domains.id
		WHERE domains.team_id = $1 AND domains.name = $2 AND domains.deleted_at = 0 AND domain_days.day BETWEEN $3 AND $4
			AND (domain_days.compliant > 0 OR domain_days.non_compliant > 0)
		ORDER BY domain_days.day LIMIT $5`, []any{t.id, name, from, to, limit}, scanDaily)
}

// DailyByDomain returns up to limit days with messages of each present domain,
// ordered by name and day, after the given name and day.
func (t *Team) DailyByDomain(ctx context.Context, days dmarcd.Days, after DailyCursor, limit int) ([]DailyCounts, error) {
	from, to := bounds(days)
	tagged, args := t.tagged([]any{t.id, from, to, after.Domain, after.Day, limit})
	return db.Collect(ctx, t.store, `SELECT domain_days.day, domains.name, `+qualifiedCounts("domain_days")+`
		FROM domains JOIN domain_days ON domain_days.team_id = domains.team_id AND domain_days.domain_id = domains.id
		WHERE domains.team_id = $1 AND domains.deleted_at = 0`+tagged+` AND domain_days.day BETWEEN $2 AND $3
			AND domains.name >= $4 AND (domains.name > $4 OR domain_days.day > $5)
			AND (domain_days.compliant > 0 OR domain_days.non_compliant > 0)
		ORDER BY domains.name, domain_days.day LIMIT $6`, args, scanDaily)
}

// DailyCursor is a position in DailyByDomain: after that day of that domain. The zero value is
// the start.
type DailyCursor struct {
	Domain string
	Day    dmarcd.Day
}

func scanDaily(scan db.Scanner) (DailyCounts, error) {
	var d DailyCounts
	err := scan(append([]any{&d.Day, &d.Domain}, countFields(&d.Counts)...)...)
	return d, err
}
