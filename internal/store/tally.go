package store

import (
	"cmp"
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

// saturatingAdd returns SQL for a counter plus a change, which may be negative. A saturated counter
// stays saturated.
func saturatingAdd(counter, change string) string {
	return fmt.Sprintf(`CASE WHEN %[1]s >= %[3]s OR %[1]s + %[2]s >= %[3]s THEN %[3]s WHEN %[1]s + %[2]s < 0 THEN 0 ELSE %[1]s + %[2]s END`,
		counter, change, maxCount)
}

// addCounts is the conflict clause that adds inserted counts to those of a day. A day that is or
// becomes full is only marked: see countFull.
func addCounts(table string) string {
	return ` DO UPDATE SET ` + changeCounts(table, "+", "excluded",
		`excluded.exact IS NOT NULL OR `+table+`.compliant + `+table+`.non_compliant + excluded.compliant + excluded.non_compliant >= `+maxCount)
}

// subtractCounts is the SET clause that subtracts the counts of another table from those of a day.
func subtractCounts(table, other string) string {
	return changeCounts(table, "-", other, `FALSE`)
}

// changeCounts is a SET clause for the counts of a day. A day that is full, or for which full
// holds, keeps its counts, and gets a mark in exact. No count exceeds the sum of the first two.
func changeCounts(table, sign, other, full string) string {
	full = `(` + table + `.exact IS NOT NULL OR ` + table + `.compliant + ` + table + `.non_compliant >= ` + maxCount + ` OR ` + full + `)`
	set := []string{`exact = CASE WHEN ` + full + ` THEN COALESCE(` + table + `.exact, '') END`}
	for column := range strings.SplitSeq(countColumns, ", ") {
		set = append(set, fmt.Sprintf(`%[1]s = CASE WHEN %[5]s THEN %[2]s.%[1]s WHEN %[2]s.%[1]s %[3]s %[4]s.%[1]s < 0 THEN 0 ELSE %[2]s.%[1]s %[3]s %[4]s.%[1]s END`,
			column, table, sign, other, full))
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
	counts wideCounts
	// taken means that something was subtracted, added that something was added; oldest is the
	// oldest added report, 0 if unknown.
	taken, added bool
	oldest       dmarcd.ReportID
}

func (d change) merge(other change) change {
	d.counts = d.counts.plus(other.counts)
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
func (t tally) add(key tallyKey, c wideCounts, report dmarcd.ReportID) {
	d := t[key].of(report)
	d.counts = d.counts.plus(c)
	t[key] = d
}

func (t tally) subtract(key tallyKey, c wideCounts) {
	d := t[key]
	d.counts, d.taken = d.counts.plus(c.negative()), true
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
