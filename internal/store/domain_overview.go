package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// OverviewFilter selects and sorts domains; empty fields match all.
type OverviewFilter struct {
	// Days are the days of the counted messages.
	Days dmarcd.Days
	// Search is a substring of the name, ignoring case.
	Search string
	// Policy is none, quarantine, reject, missing for no policy, or unknown if DNS has
	// not answered yet.
	Policy string
	// Trouble selects domains that need attention: without an active record, without
	// enforcement, or with a bad grade.
	Trouble bool
	// Sort is name, grade, policy, messages or passing, with the prefix "-" for
	// descending order. The default is name.
	Sort string
	// Limit is the number of rows; with 0 the domains are only counted.
	Offset, Limit int
}

// DomainRow is a domain in an overview.
type DomainRow struct {
	Name, Grade, Policy string
	Active              bool
	// Record is the DMARC record that applies; RecordDomain publishes it.
	Record, RecordDomain string
	// Known is set once the DNS has answered, Parked if the domain neither accepts nor sends mail.
	Known  bool
	Parked bool
	Tags   []string
	Counts dmarcd.Counts
	// Days are the days with messages, in order.
	Days []dmarcd.DayCount

	id dmarcd.DomainID
}

// Overview is a page of domains.
type Overview struct {
	Rows []DomainRow
	// Matching is the number of domains that match the filter; All, of the team.
	Matching, All int
}

// locked selects parked domains with p=reject, which need no further action.
const locked = `(domains.parked = TRUE AND domains.policy = 'reject')`

// troubled selects domains that need attention. A domain without a full check has no
// grade.
const troubled = `(NOT ` + locked + ` AND (domains.active = FALSE OR domains.policy NOT IN ('quarantine', 'reject') OR domains.grade IN ('C', 'D', 'E', 'F')))`

// DomainRows returns a page of the domains that match the filter, with their counts. It
// sums the messages of all domains only if the order depends on them.
func (t *Team) DomainRows(ctx context.Context, filter OverviewFilter) (Overview, error) {
	var found Overview
	conditions, args := t.overviewConditions(filter)
	err := t.store.longQueryRow(ctx, `SELECT count(*), CAST(COALESCE(SUM(CASE WHEN TRUE`+conditions+` THEN 1 ELSE 0 END), 0) AS BIGINT)
		FROM domains WHERE team_id = $1 AND deleted_at = 0`, args, &found.All, &found.Matching)
	if err != nil || filter.Limit == 0 || found.Matching <= filter.Offset {
		return found, err
	}
	if found.Rows, err = t.pageOfDomains(ctx, filter); err != nil {
		return found, err
	}
	return found, t.addDays(ctx, filter.Days, found.Rows)
}

// overviewConditions returns the SQL conditions of the filter and their arguments; $1 is
// the team.
func (t *Team) overviewConditions(f OverviewFilter) (string, []any) {
	var b strings.Builder
	tagged, args := t.tagged([]any{t.id})
	b.WriteString(tagged)
	if f.Search != "" {
		args = append(args, db.Plain(strings.ToLower(f.Search)))
		fmt.Fprintf(&b, ` AND replace(domains.name, $%d, '') <> domains.name`, len(args)) // LIKE differs between the engines
	}
	switch f.Policy {
	case "":
	case "missing":
		b.WriteString(` AND domains.policy = '' AND domains.known_at > 0`)
	case "unknown":
		b.WriteString(` AND domains.known_at = 0`)
	default:
		args = append(args, db.Plain(f.Policy))
		b.WriteString(` AND domains.policy = $` + strconv.Itoa(len(args)))
	}
	if f.Trouble {
		b.WriteString(` AND ` + troubled)
	}
	return b.String(), args
}

// overviewOrders are the SQL sort keys. Domains with NULL come last in both directions.
// DAYS is replaced by the condition on days.
var overviewOrders = map[string]string{
	"name":   `domains.name`,
	"grade":  `CASE domains.grade WHEN 'A+' THEN 0 WHEN 'A' THEN 1 WHEN 'B' THEN 2 WHEN 'C' THEN 3 WHEN 'D' THEN 4 WHEN 'E' THEN 5 WHEN 'F' THEN 6 END`,
	"policy": `CASE domains.policy WHEN 'reject' THEN 3 WHEN 'quarantine' THEN 2 WHEN 'none' THEN 1 ELSE 0 END`,
	"messages": `COALESCE((SELECT SUM(CAST(compliant + non_compliant AS DOUBLE PRECISION)) FROM domain_days
		WHERE domain_days.team_id = $1 AND domain_days.domain_id = domains.id AND DAYS), 0)`,
	"passing": `(SELECT SUM(CAST(compliant AS DOUBLE PRECISION)) / NULLIF(SUM(CAST(compliant + non_compliant AS DOUBLE PRECISION)), 0) FROM domain_days
		WHERE domain_days.team_id = $1 AND domain_days.domain_id = domains.id AND DAYS)`,
}

// order returns the sort order as SQL, and its arguments from $first on.
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

// pageOfDomains returns the rows without counts.
func (t *Team) pageOfDomains(ctx context.Context, filter OverviewFilter) ([]DomainRow, error) {
	conditions, args := t.overviewConditions(filter)
	order, days := filter.order(len(args) + 1)
	args = append(args, days...)
	return db.Collect(ctx, t.store, `SELECT domains.id, domains.name, domains.grade, domains.policy, domains.active, domains.known_at > 0, domains.tags,
			domains.record, domains.record_domain, domains.parked
		FROM domains WHERE domains.team_id = $1 AND domains.deleted_at = 0`+conditions+`
		ORDER BY `+order+fmt.Sprintf(` LIMIT $%d OFFSET $%d`, len(args)+1, len(args)+2),
		append(args, filter.Limit, filter.Offset), func(scan db.Scanner) (DomainRow, error) {
			var r DomainRow
			var tags string
			err := scan(&r.id, &r.Name, &r.Grade, &r.Policy, &r.Active, &r.Known, &tags, &r.Record, &r.RecordDomain, &r.Parked)
			r.Tags = strings.Fields(tags)
			return r, err
		})
}

// rowsPerQuery is the number of domains per query.
const rowsPerQuery = 90

// addDays adds the counts by day to the rows.
func (t *Team) addDays(ctx context.Context, days dmarcd.Days, rows []DomainRow) error {
	from, to := bounds(days)
	for some := range slices.Chunk(rows, rowsPerQuery) {
		byID := make(map[dmarcd.DomainID]*DomainRow, len(some))
		ids := make([]dmarcd.DomainID, len(some))
		for i := range some {
			ids[i] = some[i].id
			byID[ids[i]] = &some[i]
		}
		list, args := db.In([]any{t.id, from, to}, ids)
		all, err := db.Collect(ctx, t.store, `SELECT domain_id, day, `+countColumns+` FROM domain_days
			WHERE team_id = $1 AND day BETWEEN $2 AND $3 AND domain_id IN `+list+`
			ORDER BY domain_id, day`, args, scanCounted)
		if err != nil {
			return err
		}
		for _, c := range all {
			row := byID[c.domain]
			row.Counts.Add(c.counts)
			if c.counts.Total() > 0 {
				row.Days = append(row.Days, dmarcd.DayCount{Day: c.day, Summary: c.counts.Summary})
			}
		}
	}
	return nil
}

// UrgentDomains returns domains in order of urgency: without a policy, then with p=none,
// then the others; among equals, those with the most failing messages in the given days
// first.
func (t *Team) UrgentDomains(ctx context.Context, days dmarcd.Days, offset, limit int) ([]dmarcd.Domain, error) {
	from, to := bounds(days)
	tagged, args := t.tagged([]any{t.id, from, to, limit, offset})
	return db.Collect(ctx, t.store, `SELECT `+domainColumns+` FROM domains
		WHERE team_id = $1 AND deleted_at = 0`+tagged+`
		ORDER BY CASE policy WHEN '' THEN 0 WHEN 'none' THEN 1 WHEN 'quarantine' THEN 2 ELSE 3 END,
			(SELECT COALESCE(SUM(CAST(domain_days.non_compliant AS DOUBLE PRECISION)), 0) FROM domain_days
				WHERE domain_days.team_id = $1 AND domain_days.domain_id = domains.id AND domain_days.day BETWEEN $2 AND $3) DESC, name
		LIMIT $4 OFFSET $5`, args, scanDomain)
}

// AdviceState identifies what the advice for a domain is computed from, apart from the domain
// itself: with equal states the advice is the same.
type AdviceState struct {
	Check   dmarcd.CheckID    // the latest check, 0 if there is none
	Classes [sha256.Size]byte // identifies the overridden classes of senders
	Days    int               // with mail
	dmarcd.Counts
}

// AdviceStates returns the states of domains, with their mail in some days.
func (t *Team) AdviceStates(ctx context.Context, domains []dmarcd.DomainID, days dmarcd.Days) (map[dmarcd.DomainID]AdviceState, error) {
	from, to := bounds(days)
	states := make(map[dmarcd.DomainID]AdviceState, len(domains))
	for some := range slices.Chunk(domains, rowsPerQuery) {
		err := t.store.longRead(ctx, func(read tx) error {
			classes, err := t.classHashes(ctx, read, some)
			if err != nil {
				return err
			}
			list, args := db.In([]any{t.id, from, to}, some)
			return read.Query(ctx, `SELECT domains.id,
					COALESCE((SELECT checks.id FROM checks WHERE checks.team_id = $1 AND checks.domain_id = domains.id
						ORDER BY checks.first_at DESC, checks.id DESC LIMIT 1), 0),
					COUNT(domain_days.day), CAST(COALESCE(SUM(domain_days.compliant), 0) AS BIGINT), CAST(COALESCE(SUM(domain_days.non_compliant), 0) AS BIGINT),
					CAST(COALESCE(SUM(domain_days.quarantined), 0) AS BIGINT), CAST(COALESCE(SUM(domain_days.rejected), 0) AS BIGINT),
					CAST(COALESCE(SUM(domain_days.dkim), 0) AS BIGINT), CAST(COALESCE(SUM(domain_days.spf), 0) AS BIGINT), CAST(COALESCE(SUM(domain_days.unverified), 0) AS BIGINT)
				FROM domains LEFT JOIN domain_days ON domain_days.team_id = domains.team_id AND domain_days.domain_id = domains.id
					AND domain_days.day BETWEEN $2 AND $3
				WHERE domains.team_id = $1 AND domains.id IN `+list+`
				GROUP BY domains.id`, args, func(scan db.Scanner) error {
				var id dmarcd.DomainID
				var s AdviceState
				err := scan(&id, &s.Check, &s.Days, &s.Compliant, &s.NonCompliant, &s.Quarantined, &s.Rejected, &s.DKIM, &s.SPF, &s.Unverified)
				s.Classes = classes[id]
				states[id] = s
				return err
			})
		})
		if err != nil {
			return nil, err
		}
	}
	return states, nil
}

// classHashes returns hashes of the overridden classes of domains that have some: the classes
// themselves may be megabytes.
func (t *Team) classHashes(ctx context.Context, read tx, domains []dmarcd.DomainID) (map[dmarcd.DomainID][sha256.Size]byte, error) {
	hashes := map[dmarcd.DomainID][sha256.Size]byte{}
	list, args := db.In([]any{t.id}, append([]dmarcd.DomainID{allDomains}, domains...))
	err := read.Query(ctx, `SELECT domain_id, sender, class FROM sender_classes
		WHERE team_id = $1 AND domain_id IN `+list+` ORDER BY domain_id, sender`, args, func(scan db.Scanner) error {
		var id dmarcd.DomainID
		var sender, class string
		err := scan(&id, &sender, &class)
		hashes[id] = sha256.Sum256(fmt.Appendf(nil, "%x %q %q", hashes[id], sender, class))
		return err
	})
	if shared, ok := hashes[allDomains]; ok {
		for _, id := range domains {
			hashes[id] = sha256.Sum256(fmt.Appendf(nil, "%x %x", shared, hashes[id]))
		}
	}
	return hashes, err
}
