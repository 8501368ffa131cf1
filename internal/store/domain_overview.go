package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// DomainRow is a domain with its mail in some days.
type DomainRow struct {
	Name   string
	Counts dmarcd.Counts
}

// locked selects parked domains with p=reject, which need no further action.
const locked = `(domains.parked = TRUE AND domains.policy = 'reject')`

// BusiestDomains returns the domains with the most messages in some days, the busiest first.
func (t *Team) BusiestDomains(ctx context.Context, days dmarcd.Days, limit int) ([]DomainRow, error) {
	from, to := bounds(days)
	tagged, args := t.tagged([]any{t.id, from, to, limit})
	return db.Collect(ctx, t.store, `SELECT domains.name, CAST(SUM(domain_days.compliant) AS BIGINT), CAST(SUM(domain_days.non_compliant) AS BIGINT)
		FROM domain_days JOIN domains ON domains.team_id = domain_days.team_id AND domains.id = domain_days.domain_id
		WHERE domain_days.team_id = $1 AND domains.team_id = $1 AND domain_days.day BETWEEN $2 AND $3 AND domains.deleted_at = 0`+tagged+`
		GROUP BY domains.id, domains.name
		ORDER BY SUM(CAST(domain_days.compliant + domain_days.non_compliant AS DOUBLE PRECISION)) DESC, domains.name LIMIT $4`, args,
		func(scan db.Scanner) (r DomainRow, err error) {
			err = scan(&r.Name, &r.Counts.Compliant, &r.Counts.NonCompliant)
			return r, err
		})
}

// rowsPerQuery is the number of domains per query.
const rowsPerQuery = 90

// DomainTrends returns the days with messages of domains, in order.
func (t *Team) DomainTrends(ctx context.Context, domains []dmarcd.DomainID, days dmarcd.Days) (map[dmarcd.DomainID][]dmarcd.DayCount, error) {
	from, to := bounds(days)
	trends := make(map[dmarcd.DomainID][]dmarcd.DayCount, len(domains))
	for some := range slices.Chunk(domains, rowsPerQuery) {
		list, args := db.In([]any{t.id, from, to}, some)
		all, err := db.Collect(ctx, t.store, `SELECT domain_id, day, `+countColumns+` FROM domain_days
			WHERE team_id = $1 AND day BETWEEN $2 AND $3 AND domain_id IN `+list+`
			ORDER BY domain_id, day`, args, scanCounted)
		if err != nil {
			return nil, err
		}
		for _, c := range all {
			if c.counts.Total() > 0 {
				trends[c.domain] = append(trends[c.domain], dmarcd.DayCount{Day: c.day, Summary: c.counts.Summary})
			}
		}
	}
	return trends, nil
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
