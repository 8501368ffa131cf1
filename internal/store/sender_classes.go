package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/store/shape"
)

// maxSenderClasses limits the overridden senders of a domain, maxTeamSenderClasses those of all
// domains of a team.
const (
	maxSenderClasses     = 10_000
	maxTeamSenderClasses = 100_000
)

// SetSenderClass overrides the class of a sender, by its key, for a domain; "" removes
// the override. It is a *dmarcd.InvalidError if too many senders have one.
func (t *Team) SetSenderClass(ctx context.Context, domain, sender string, class dmarcd.Class, audit ...dmarcd.AuditEntry) error {
	return t.audited(ctx, audit, "", func(tx tx) error {
		var id dmarcd.DomainID
		var others, ofTeam int
		err := tx.queryRow(ctx, `SELECT id, (SELECT COUNT(*) FROM sender_classes WHERE sender_classes.team_id = $1
				AND sender_classes.domain_id = domains.id AND sender_classes.sender <> $3),
				(SELECT COUNT(*) FROM sender_classes WHERE sender_classes.team_id = $1)
			FROM domains WHERE team_id = $1 AND name = $2 AND deleted_at = 0`, []any{t.id, domain, sender}, &id, &others, &ofTeam)
		if err != nil {
			return err
		}
		switch {
		case class == "":
			_, err = tx.exec(ctx, `DELETE FROM sender_classes WHERE team_id = $1 AND domain_id = $2 AND sender = $3`, t.id, id, sender)
		case ofTeam >= maxTeamSenderClasses:
			err = &dmarcd.InvalidError{Field: "sender", Message: fmt.Sprintf("The team has set the class of %d senders, which is the limit. Remove some first.", ofTeam)}
		case others >= maxSenderClasses:
			err = &dmarcd.InvalidError{Field: "sender", Message: fmt.Sprintf("A domain has at most %d senders whose class was set.", maxSenderClasses)}
		default:
			_, err = tx.exec(ctx, `INSERT INTO sender_classes (team_id, domain_id, sender, class) VALUES ($1, $2, $3, $4)
				ON CONFLICT (team_id, domain_id, sender) DO UPDATE SET class = excluded.class`, t.id, id, sender, class)
		}
		return err
	})
}

// SenderClasses returns the overridden classes of a domain by sender key.
func (t *Team) SenderClasses(ctx context.Context, domain string) (map[string]dmarcd.Class, error) {
	return inRead(ctx, t.store, func(read tx) (map[string]dmarcd.Class, error) {
		return collectMap[string, dmarcd.Class](ctx, read, `SELECT sender_classes.sender, sender_classes.class
			FROM domains JOIN sender_classes ON sender_classes.team_id = domains.team_id AND sender_classes.domain_id = domains.id
			WHERE domains.team_id = $1 AND domains.name = $2 AND domains.deleted_at = 0 LIMIT $3`, t.id, domain, maxSenderClasses)
	})
}

// UrgentDomains returns domains in order of urgency: without a policy, then with p=none,
// then the others; among equals, those with the most failing messages in the given days
// first.
func (t *Team) UrgentDomains(ctx context.Context, days dmarcd.Days, offset, limit int) ([]dmarcd.Domain, error) {
	from, to := bounds(days)
	tagged, args := t.tagged([]any{t.id, from, to, limit, offset})
	return collectRead(ctx, t.store, `SELECT `+domainColumns+` FROM domains
		WHERE team_id = $1 AND deleted_at = 0`+tagged+`
		ORDER BY CASE policy WHEN '' THEN 0 WHEN 'none' THEN 1 WHEN 'quarantine' THEN 2 ELSE 3 END,
			(SELECT COALESCE(SUM(CAST(domain_days.non_compliant AS DOUBLE PRECISION)), 0) FROM domain_days
				WHERE domain_days.team_id = $1 AND domain_days.domain_id = domains.id AND domain_days.day BETWEEN $2 AND $3) DESC, name
		LIMIT $4 OFFSET $5`, args, scanDomain)
}

// AdviceState is what the advice for a domain follows from, apart from the domain itself: two
// equal states are the same.
type AdviceState struct {
	Check   dmarcd.CheckID    // the latest, 0 if there is none
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
			list, args := inList([]any{t.id, from, to}, some)
			return each(ctx, read, `SELECT domains.id,
					COALESCE((SELECT checks.id FROM checks WHERE checks.team_id = $1 AND checks.domain_id = domains.id
						ORDER BY checks.first_at DESC, checks.id DESC LIMIT 1), 0),
					COUNT(domain_days.day), CAST(COALESCE(SUM(domain_days.compliant), 0) AS BIGINT), CAST(COALESCE(SUM(domain_days.non_compliant), 0) AS BIGINT),
					CAST(COALESCE(SUM(domain_days.quarantined), 0) AS BIGINT), CAST(COALESCE(SUM(domain_days.rejected), 0) AS BIGINT),
					CAST(COALESCE(SUM(domain_days.dkim), 0) AS BIGINT), CAST(COALESCE(SUM(domain_days.spf), 0) AS BIGINT), CAST(COALESCE(SUM(domain_days.unverified), 0) AS BIGINT)
				FROM domains LEFT JOIN domain_days ON domain_days.team_id = domains.team_id AND domain_days.domain_id = domains.id
					AND domain_days.day BETWEEN $2 AND $3
				WHERE domains.team_id = $1 AND domains.id IN `+list+`
				GROUP BY domains.id`, args, func(scan scanner) error {
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
	list, args := inList([]any{t.id}, domains)
	err := each(ctx, read, `SELECT domain_id, sender, class FROM sender_classes
		WHERE team_id = $1 AND domain_id IN `+list+` ORDER BY domain_id, sender`, args, func(scan scanner) error {
		var id dmarcd.DomainID
		var sender, class string
		err := scan(&id, &sender, &class)
		hashes[id] = sha256.Sum256(fmt.Appendf(nil, "%x %q %q", hashes[id], sender, class))
		return err
	})
	return hashes, err
}

// SenderDomains returns all domains of the view, in the order of their ids. It calls facts with
// those of the latest checks that are not known, one after the other: a team may have many.
func (t *Team) SenderDomains(ctx context.Context, known func(dmarcd.CheckID) bool, facts func(dmarcd.CheckID, *facts.Facts)) (all []dmarcd.SenderDomain, err error) {
	err = t.store.longRead(ctx, func(read tx) error {
		tagged, args := t.tagged([]any{t.id})
		all, err = collect(ctx, read, `SELECT domains.id, domains.name,
				COALESCE((SELECT checks.id FROM checks WHERE checks.team_id = $1 AND checks.domain_id = domains.id
					ORDER BY checks.first_at DESC, checks.id DESC LIMIT 1), 0)
			FROM domains WHERE domains.team_id = $1 AND domains.deleted_at = 0`+tagged+` ORDER BY domains.id`, args,
			func(scan scanner) (d dmarcd.SenderDomain, err error) { return d, scan(&d.ID, &d.Name, &d.Check) })
		if err != nil {
			return err
		}
		if err := t.addClasses(ctx, read, all); err != nil {
			return err
		}
		var open []dmarcd.CheckID
		for _, d := range all {
			if d.Check != 0 && !known(d.Check) {
				open = append(open, d.Check)
			}
		}
		for some := range slices.Chunk(open, rowsPerQuery) {
			list, args := inList([]any{t.id}, some)
			err := each(ctx, read, `SELECT id, document FROM checks WHERE team_id = $1 AND id IN `+list, args, func(scan scanner) error {
				var id dmarcd.CheckID
				var document string
				if err := scan(&id, &document); err != nil {
					return err
				}
				check, err := shape.DecodeCheck(document)
				if err != nil {
					return fmt.Errorf("read check %s: %w", id, err)
				}
				facts(id, check.Facts)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}

// addClasses adds the overridden classes to domains, which are in the order of their ids.
func (t *Team) addClasses(ctx context.Context, read tx, domains []dmarcd.SenderDomain) error {
	return each(ctx, read, `SELECT domain_id, sender, class FROM sender_classes WHERE team_id = $1`, []any{t.id}, func(scan scanner) error {
		var id dmarcd.DomainID
		var sender string
		var class dmarcd.Class
		if err := scan(&id, &sender, &class); err != nil {
			return err
		}
		at, ok := slices.BinarySearchFunc(domains, id, func(d dmarcd.SenderDomain, id dmarcd.DomainID) int { return cmp.Compare(d.ID, id) })
		if !ok {
			return nil
		}
		if domains[at].Classes == nil {
			domains[at].Classes = make(map[string]dmarcd.Class)
		}
		domains[at].Classes[sender] = class
		return nil
	})
}
