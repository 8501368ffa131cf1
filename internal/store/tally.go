package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
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

// changed returns SQL for a counter plus a change, which may be negative. A saturated counter
// stays saturated; recount computes its value after a subtraction.
func changed(counter, change string) string {
	return fmt.Sprintf(`CASE WHEN %[1]s >= %[3]d OR %[1]s + %[2]s >= %[3]d THEN %[3]d WHEN %[1]s + %[2]s < 0 THEN 0 ELSE %[1]s + %[2]s END`,
		counter, change, int64(dmarcd.MaxCount))
}

// mayBeFull is true if a counter of a domain or its days may be saturated: none exceeds the
// sum of these two.
var mayBeFull = fmt.Sprintf(`compliant + non_compliant >= %d`, int64(dmarcd.MaxCount))

// isFull is true if a counter of a day is saturated.
var isFull = `(` + strings.ReplaceAll(countColumns, `, `, ` >= `+maxCount+` OR `) + ` >= ` + maxCount + `)`

// addCounts is the conflict clause that adds inserted counts to existing ones.
func addCounts(table string) string {
	var set []string
	for column := range strings.SplitSeq(countColumns, ", ") {
		set = append(set, column+` = `+changed(table+`.`+column, `excluded.`+column))
	}
	return ` DO UPDATE SET ` + strings.Join(set, ", ")
}

// subtractCounts is the SET clause that subtracts the counts of another table.
func subtractCounts(table, other string) string {
	var set []string
	for column := range strings.SplitSeq(countColumns, ", ") {
		set = append(set, column+` = `+changed(table+`.`+column, `(-`+other+`.`+column+`)`))
	}
	return strings.Join(set, ", ")
}

// tally holds counter changes of domains, by day.
type tally map[tallyKey]change

type tallyKey struct {
	domain dmarcd.DomainID
	day    dmarcd.Day
}

// change is the change of one row of counters.
type change struct {
	dmarcd.Counts
	// taken means that something was subtracted, added that something was added; oldest is the
	// oldest added report, 0 if unknown.
	taken, added bool
	oldest       dmarcd.ReportID
	// inexact means that the change itself was saturated.
	inexact bool
}

// plus adds sign·c. Fields saturate at dmarcd.MaxCount in both directions.
func (d change) plus(c dmarcd.Counts, sign int64) change {
	add := countPointers(&c)
	for i, field := range countPointers(&d.Counts) {
		sum := *field + sign*(*add[i])
		*field = max(-dmarcd.MaxCount, min(sum, dmarcd.MaxCount))
		d.inexact = d.inexact || *field != sum
	}
	return d
}

func (d change) merge(other change) change {
	d = d.plus(other.Counts, 1)
	d.taken, d.inexact = d.taken || other.taken, d.inexact || other.inexact
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
	t[key] = t[key].plus(c, 1).of(report)
}

func (t tally) subtract(key tallyKey, c dmarcd.Counts) {
	d := t[key].plus(c, -1)
	d.taken = true
	t[key] = d
}

// count changes the counters of domains and of the team, bumps each day's change counter, and
// marks rollups stale from which something was subtracted or to which reports were added that
// are not newer than its newest. Rows are changed in a fixed order (domains, their days, the
// team's days), so that transactions do not deadlock, and once each: PostgreSQL rejects two
// changes of a row in one statement.
func (t *Team) count(ctx context.Context, tx tx, changes tally, locks *domainLocks) error {
	domains, days := make(map[dmarcd.DomainID]change), make(map[dmarcd.Day]change)
	for key, d := range changes {
		domains[key.domain] = domains[key.domain].merge(d)
		days[key.day] = days[key.day].merge(d)
	}
	for _, id := range slices.Sorted(maps.Keys(domains)) {
		d := domains[id]
		if d.Summary == (dmarcd.Summary{}) {
			continue
		}
		_, err := tx.exec(ctx, `UPDATE domains SET compliant = `+changed(`compliant`, `$1`)+`, non_compliant = `+changed(`non_compliant`, `$2`)+`
			WHERE team_id = $3 AND id = $4`, d.Compliant, d.NonCompliant, t.id, id)
		if err != nil {
			return err
		}
	}
	if _, err := tx.insertMany(ctx, `INSERT INTO domain_days (team_id, domain_id, day, `+countColumns+`) VALUES `, t.domainDays(changes),
		` ON CONFLICT (team_id, domain_id, day)`+addCounts("domain_days")); err != nil {
		return err
	}
	if err := t.recountDomains(ctx, tx, changes, domains, locks); err != nil {
		return err
	}
	var byTeam [][]any
	for _, day := range slices.Sorted(maps.Keys(days)) {
		broken := 0
		if days[day].taken {
			broken = 1
		}
		byTeam = append(byTeam, append([]any{t.id, day, 1, broken, days[day].oldest}, countValues(days[day].Counts)...))
	}
	if _, err := tx.insertMany(ctx, `INSERT INTO team_days (team_id, day, changes, broken, newest_report, `+countColumns+`) VALUES `, byTeam,
		` ON CONFLICT (team_id, day)`+addCounts("team_days")+`, changes = team_days.changes + 1,
			broken = CASE WHEN excluded.broken > 0 OR excluded.newest_report <= team_days.newest_report THEN team_days.changes + 1 ELSE team_days.broken END,
			removed = CASE WHEN excluded.broken > 0 THEN team_days.changes + 1 ELSE team_days.removed END`); err != nil {
		return err
	}
	return t.recountDays(ctx, tx, days)
}

// domainDays returns the rows of domain changes in lock order.
func (t *Team) domainDays(changes tally) [][]any {
	var rows [][]any
	for _, key := range changes.keys() {
		if c := changes[key].Counts; c != (dmarcd.Counts{}) {
			rows = append(rows, append([]any{t.id, key.domain, key.day}, countValues(c)...))
		}
	}
	return rows
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
