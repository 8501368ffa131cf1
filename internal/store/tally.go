package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// countColumns are the columns that hold dmarcd.Counts, in the order of
// countFields.
const countColumns = `compliant, non_compliant, quarantined, rejected, dkim, spf`

func countFields(c *dmarcd.Counts) []any {
	return []any{&c.Compliant, &c.NonCompliant, &c.Quarantined, &c.Rejected, &c.DKIM, &c.SPF}
}

func countValues(c dmarcd.Counts) []any {
	return []any{c.Compliant, c.NonCompliant, c.Quarantined, c.Rejected, c.DKIM, c.SPF}
}

// addCounts is the end of a statement that adds what it inserts to the counts that
// are there.
func addCounts(table string) string {
	var set []string
	for column := range strings.SplitSeq(countColumns, ", ") {
		set = append(set, column+` = `+table+`.`+column+` + excluded.`+column)
	}
	return ` DO UPDATE SET ` + strings.Join(set, ", ")
}

// tally is by how much counters are to change: those of domains by day. A change may
// be negative.
type tally struct {
	counts map[tallyKey]dmarcd.Counts
	// taken are the days from which something is taken back.
	taken map[dmarcd.Day]bool
}

type tallyKey struct {
	domain dmarcd.DomainID
	day    dmarcd.Day
}

func newTally() tally {
	return tally{counts: make(map[tallyKey]dmarcd.Counts), taken: make(map[dmarcd.Day]bool)}
}

func (t tally) add(domain dmarcd.DomainID, day dmarcd.Day, c dmarcd.Counts) {
	key := tallyKey{domain, day}
	t.counts[key] = plus(t.counts[key], c, 1)
}

func (t tally) subtract(domain dmarcd.DomainID, day dmarcd.Day, c dmarcd.Counts) {
	key := tallyKey{domain, day}
	t.counts[key] = plus(t.counts[key], c, -1)
	t.taken[day] = true
}

// plus returns a + sign·b without a bound: these are differences, not sums.
func plus(a, b dmarcd.Counts, sign int64) dmarcd.Counts {
	return dmarcd.Counts{
		Summary:     dmarcd.Summary{Compliant: a.Compliant + sign*b.Compliant, NonCompliant: a.NonCompliant + sign*b.NonCompliant},
		Quarantined: a.Quarantined + sign*b.Quarantined,
		Rejected:    a.Rejected + sign*b.Rejected,
		DKIM:        a.DKIM + sign*b.DKIM,
		SPF:         a.SPF + sign*b.SPF,
	}
}

// count changes the counters of domains and of the team, and notes that the records
// which count in these days are not the same any more, and where some went. All rows are changed in one
// order (domains, then their days, then the team's days), so that two transactions do
// not wait for each other in a circle, and each once: PostgreSQL refuses to change a
// row twice in one statement.
func (t *Team) count(ctx context.Context, tx tx, changes tally) error {
	domains := make(map[dmarcd.DomainID]dmarcd.Counts)
	days := make(map[dmarcd.Day]dmarcd.Counts)
	for key, c := range changes.counts {
		domains[key.domain] = plus(domains[key.domain], c, 1)
		days[key.day] = plus(days[key.day], c, 1)
	}
	for _, id := range slices.Sorted(maps.Keys(domains)) {
		if domains[id] == (dmarcd.Counts{}) {
			continue
		}
		_, err := tx.exec(ctx, `UPDATE domains SET compliant = compliant + $1, non_compliant = non_compliant + $2
			WHERE team_id = $3 AND id = $4`, domains[id].Compliant, domains[id].NonCompliant, t.id, id)
		if err != nil {
			return err
		}
	}
	if _, err := tx.insertMany(ctx, `INSERT INTO domain_days (team_id, domain_id, day, `+countColumns+`) VALUES `, t.domainDays(changes),
		` ON CONFLICT (team_id, domain_id, day)`+addCounts("domain_days")); err != nil {
		return err
	}
	var byTeam [][]any
	for _, day := range slices.Sorted(maps.Keys(days)) {
		broken := 0
		if changes.taken[day] {
			broken = 1
		}
		byTeam = append(byTeam, append([]any{t.id, day, 1, broken}, countValues(days[day])...))
	}
	_, err := tx.insertMany(ctx, `INSERT INTO team_days (team_id, day, changes, broken, `+countColumns+`) VALUES `, byTeam,
		` ON CONFLICT (team_id, day)`+addCounts("team_days")+`, changes = team_days.changes + 1,
			broken = CASE WHEN excluded.broken > 0 THEN team_days.changes + 1 ELSE team_days.broken END`)
	return err
}

// domainDays returns the rows of the changes of domains, in their order.
func (t *Team) domainDays(changes tally) [][]any {
	keys := slices.SortedFunc(maps.Keys(changes.counts), func(a, b tallyKey) int {
		return cmp.Or(cmp.Compare(a.domain, b.domain), cmp.Compare(a.day, b.day))
	})
	var rows [][]any
	for _, key := range keys {
		if c := changes.counts[key]; c != (dmarcd.Counts{}) {
			rows = append(rows, append([]any{t.id, key.domain, key.day}, countValues(c)...))
		}
	}
	return rows
}

// qualifiedCounts is countColumns of a table.
func qualifiedCounts(table string) string {
	return table + `.` + strings.ReplaceAll(countColumns, `, `, `, `+table+`.`)
}
