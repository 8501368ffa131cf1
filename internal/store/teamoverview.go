package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// OverviewFilter says which domains are listed, and how; what is empty is any.
type OverviewFilter struct {
	// Days is when the messages were sent, by the reports.
	Days dmarcd.Days
	// Search is a part of the name, in any case.
	Search string
	// Policy is none, quarantine, reject, missing for no policy, or unknown where the
	// DNS has not given an answer yet.
	Policy string
	// Trouble asks for domains for which something is to be done: those without an
	// active record, without a policy that is enforced, or with a bad grade.
	Trouble bool
	// Sort is name, grade, policy, messages or passing, with "-" before it for
	// descending. Anything else is name.
	Sort string
	// Offset and Limit are the part of the list.
	Offset, Limit int
}

// DomainRow is a domain in an overview.
type DomainRow struct {
	Name, Grade, Policy string
	Active              bool
	// Record is the DMARC record that applies, and RecordDomain publishes it.
	Record, RecordDomain string
	// Known tells that the DNS has given an answer, Parked that the domain takes and sends
	// no mail.
	Known  bool
	Parked bool
	Tags   []string
	Counts dmarcd.Counts
	// Days has the messages of those days that have any, in order.
	Days []dmarcd.DayCount

	id dmarcd.DomainID
}

// Overview is a part of the domains.
type Overview struct {
	Rows []DomainRow
	// Matching is how many domains the filter leaves, All how many the team has.
	Matching, All int
}

// locked is the condition that a domain is parked and receivers reject all mail that uses
// its name: that is all there is to do.
const locked = `(domains.parked = TRUE AND domains.policy = 'reject')`

// troubled is the condition that something is to be done for a domain. A domain without
// a full check has no grade.
const troubled = `(NOT ` + locked + ` AND (domains.active = FALSE OR domains.policy NOT IN ('quarantine', 'reject') OR domains.grade IN ('C', 'D', 'E', 'F')))`

// DomainRows returns the domains that the filter asks for, with what was counted for
// each. Messages are added up for all domains only where the order depends on them.
func (t *Team) DomainRows(ctx context.Context, filter OverviewFilter) (Overview, error) {
	var found Overview
	conditions, args := t.overviewConditions(filter)
	err := t.store.longQueryRow(ctx, `SELECT count(*), CAST(COALESCE(SUM(CASE WHEN TRUE`+conditions+` THEN 1 ELSE 0 END), 0) AS BIGINT)
		FROM domains WHERE team_id = $1 AND deleted_at = 0`, args, &found.All, &found.Matching)
	if err != nil || found.Matching <= filter.Offset {
		return found, err
	}
	if found.Rows, err = t.pageOfDomains(ctx, filter); err != nil {
		return found, err
	}
	return found, t.addDays(ctx, filter.Days, found.Rows)
}

// overviewConditions returns what the filter asks for as SQL, and its arguments, of which
// $1 is the team.
func (t *Team) overviewConditions(f OverviewFilter) (string, []any) {
	var b strings.Builder
	tagged, args := t.tagged([]any{t.id})
	b.WriteString(tagged)
	if f.Search != "" {
		args = append(args, plain(strings.ToLower(f.Search)))
		fmt.Fprintf(&b, ` AND replace(domains.name, $%d, '') <> domains.name`, len(args)) // there is no LIKE that both engines take alike
	}
	switch f.Policy {
	case "":
	case "missing":
		b.WriteString(` AND domains.policy = '' AND domains.known_at > 0`)
	case "unknown":
		b.WriteString(` AND domains.known_at = 0`)
	default:
		args = append(args, plain(f.Policy))
		b.WriteString(` AND domains.policy = $` + strconv.Itoa(len(args)))
	}
	if f.Trouble {
		b.WriteString(` AND ` + troubled)
	}
	return b.String(), args
}

// overviewOrders are what the domains can be ordered by; NULL is a domain without a
// value, and comes last in both directions. DAYS stands for the condition of the days.
var overviewOrders = map[string]string{
	"name":   `domains.name`,
	"grade":  `CASE domains.grade WHEN 'A+' THEN 0 WHEN 'A' THEN 1 WHEN 'B' THEN 2 WHEN 'C' THEN 3 WHEN 'D' THEN 4 WHEN 'E' THEN 5 WHEN 'F' THEN 6 END`,
	"policy": `CASE domains.policy WHEN 'reject' THEN 3 WHEN 'quarantine' THEN 2 WHEN 'none' THEN 1 ELSE 0 END`,
	"messages": `COALESCE((SELECT SUM(CAST(compliant + non_compliant AS DOUBLE PRECISION)) FROM domain_days
		WHERE domain_days.team_id = $1 AND domain_days.domain_id = domains.id AND DAYS), 0)`,
	"passing": `(SELECT SUM(CAST(compliant AS DOUBLE PRECISION)) / NULLIF(SUM(CAST(compliant + non_compliant AS DOUBLE PRECISION)), 0) FROM domain_days
		WHERE domain_days.team_id = $1 AND domain_days.domain_id = domains.id AND DAYS)`,
}

// order returns the filter's order as SQL, and its arguments from $first on.
func (f OverviewFilter) order(first int) (string, []any) {
	word, descending := strings.CutPrefix(f.Sort, "-")
	order, known := overviewOrders[word]
	if !known {
		return overviewOrders["name"], nil
	}
	var args []any
	if strings.Contains(order, `DAYS`) {
		from, to := bounds(f.Days)
		args = []any{from, to}
		order = strings.Replace(order, `DAYS`, fmt.Sprintf(`domain_days.day BETWEEN $%d AND $%d`, first, first+1), 1)
	}
	if descending {
		order += ` DESC`
	}
	return order + ` NULLS LAST, domains.name`, args
}

// pageOfDomains returns the rows without what was counted.
func (t *Team) pageOfDomains(ctx context.Context, filter OverviewFilter) ([]DomainRow, error) {
	conditions, args := t.overviewConditions(filter)
	order, days := filter.order(len(args) + 1)
	args = append(args, days...)
	return collectRead(ctx, t.store, `SELECT domains.id, domains.name, domains.grade, domains.policy, domains.active, domains.known_at > 0, domains.tags,
			domains.record, domains.record_domain, domains.parked
		FROM domains WHERE domains.team_id = $1 AND domains.deleted_at = 0`+conditions+`
		ORDER BY `+order+fmt.Sprintf(` LIMIT $%d OFFSET $%d`, len(args)+1, len(args)+2),
		append(args, filter.Limit, filter.Offset), func(scan scanner) (DomainRow, error) {
			var r DomainRow
			var tags string
			err := scan(&r.id, &r.Name, &r.Grade, &r.Policy, &r.Active, &r.Known, &tags, &r.Record, &r.RecordDomain, &r.Parked)
			r.Tags = strings.Fields(tags)
			return r, err
		})
}

// rowsPerQuery is for how many domains one query adds up.
const rowsPerQuery = 90

// domainDay is what was counted for a domain in a day.
type domainDay struct {
	domain dmarcd.DomainID
	day    dmarcd.Day
	dmarcd.Counts
}

// addDays adds what was counted to the rows.
func (t *Team) addDays(ctx context.Context, days dmarcd.Days, rows []DomainRow) error {
	from, to := bounds(days)
	for some := range slices.Chunk(rows, rowsPerQuery) {
		args := []any{t.id, from, to}
		byID := make(map[dmarcd.DomainID]*DomainRow, len(some))
		var ids []string
		for i := range some {
			byID[some[i].id] = &some[i]
			args = append(args, some[i].id)
			ids = append(ids, "$"+strconv.Itoa(len(args)))
		}
		counted, err := collectRead(ctx, t.store, `SELECT domain_id, day, `+countColumns+` FROM domain_days
			WHERE team_id = $1 AND day BETWEEN $2 AND $3 AND domain_id IN (`+strings.Join(ids, ", ")+`)
			ORDER BY domain_id, day`, args, func(scan scanner) (domainDay, error) {
			var d domainDay
			return d, scan(append([]any{&d.domain, &d.day}, countFields(&d.Counts)...)...)
		})
		if err != nil {
			return err
		}
		for _, d := range counted {
			row := byID[d.domain]
			row.Counts.Add(d.Counts)
			if d.Total() > 0 {
				row.Days = append(row.Days, dmarcd.DayCount{Day: d.day, Summary: d.Summary})
			}
		}
	}
	return nil
}
