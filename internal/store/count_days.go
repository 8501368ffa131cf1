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
	counts dmarcd.Counts // what is subtracted is negative
	// taken means that something was subtracted, added that something was added; oldest is the
	// oldest added report, 0 if unknown.
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
