package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/store/db"
	"github.com/dmarcd/dmarcd/internal/store/shape"
)

// maxSenderClasses limits the overridden senders of a domain, maxSharedClasses those for all domains
// of a team, maxTeamSenderClasses all of a team.
const (
	maxSenderClasses     = 10_000
	maxSharedClasses     = 1000
	maxTeamSenderClasses = 100_000
)

// allDomains is the domain of overrides that apply to all domains of a team, present and future ones.
// Those of a domain win.
const allDomains dmarcd.DomainID = 0

// SetSenderClasses overrides the classes of senders, by their keys, for a domain, or for all domains
// if domain is ""; the class "" removes the override. It changes all of them or none. It is a
// *dmarcd.InvalidError if too many senders have one.
func (t *Team) SetSenderClasses(ctx context.Context, domain string, classes map[string]dmarcd.Class, audit ...dmarcd.AuditEntry) error {
	return t.audited(ctx, audit, "", func(tx tx) error {
		id, most := allDomains, maxSharedClasses
		if domain != "" {
			most = maxSenderClasses
			if err := tx.QueryRow(ctx, `SELECT id FROM domains WHERE team_id = $1 AND name = $2 AND deleted_at = 0`, []any{t.id, domain}, &id); err != nil {
				return err
			}
		}
		set := false
		for _, sender := range slices.Sorted(maps.Keys(classes)) {
			query, args := `DELETE FROM sender_classes WHERE team_id = $1 AND domain_id = $2 AND sender = $3`, []any{t.id, id, sender}
			if class := classes[sender]; class != "" {
				set = true
				query, args = `INSERT INTO sender_classes (team_id, domain_id, sender, class) VALUES ($1, $2, $3, $4)
					ON CONFLICT (team_id, domain_id, sender) DO UPDATE SET class = excluded.class`, append(args, class)
			}
			if _, err := tx.Exec(ctx, query, args...); err != nil {
				return err
			}
		}
		if !set {
			return nil
		}
		var ofDomain, ofTeam int
		err := tx.QueryRow(ctx, `SELECT (SELECT COUNT(*) FROM sender_classes WHERE team_id = $1 AND domain_id = $2),
			(SELECT COUNT(*) FROM sender_classes WHERE team_id = $1)`, []any{t.id, id}, &ofDomain, &ofTeam)
		switch {
		case err != nil:
			return err
		case ofTeam > maxTeamSenderClasses:
			return &dmarcd.InvalidError{Field: "sender", Message: fmt.Sprintf("A team can set the class of at most %d senders. Set some to automatic first.", maxTeamSenderClasses)}
		case ofDomain > most && id == allDomains:
			return &dmarcd.InvalidError{Field: "sender", Message: fmt.Sprintf("A team can set the class of at most %d senders for all domains. Set some to automatic first.", most)}
		case ofDomain > most:
			return &dmarcd.InvalidError{Field: "sender", Message: fmt.Sprintf("A domain can have at most %d senders whose class was set. Set some to automatic first.", most)}
		}
		return nil
	})
}

// SenderClasses returns the overridden classes of a domain by sender key, with those for all domains.
func (t *Team) SenderClasses(ctx context.Context, domain string) (map[string]dmarcd.Class, error) {
	return db.CollectMap[string, dmarcd.Class](ctx, t.store, `SELECT sender_classes.sender, sender_classes.class
		FROM domains JOIN sender_classes ON sender_classes.team_id = domains.team_id AND sender_classes.domain_id IN ($4, domains.id)
		WHERE domains.team_id = $1 AND domains.name = $2 AND domains.deleted_at = 0 ORDER BY sender_classes.domain_id LIMIT $3`,
		t.id, domain, maxSenderClasses+maxSharedClasses, allDomains)
}

// SenderDomains returns all domains of the view, in order of id. It calls facts with the facts of
// each latest check that is not known, one by one: a team may have many.
func (t *Team) SenderDomains(ctx context.Context, known func(dmarcd.CheckID) bool, facts func(dmarcd.CheckID, *facts.Facts)) (all []dmarcd.SenderDomain, err error) {
	err = t.store.longRead(ctx, func(read tx) error {
		tagged, args := t.tagged([]any{t.id})
		all, err = db.Collect(ctx, read, `SELECT domains.id, domains.name,
				COALESCE((SELECT checks.id FROM checks WHERE checks.team_id = $1 AND checks.domain_id = domains.id
					ORDER BY checks.first_at DESC, checks.id DESC LIMIT 1), 0)
			FROM domains WHERE domains.team_id = $1 AND domains.deleted_at = 0`+tagged+` ORDER BY domains.id`, args,
			func(scan db.Scanner) (d dmarcd.SenderDomain, err error) { return d, scan(&d.ID, &d.Name, &d.Check) })
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
			list, args := db.In([]any{t.id}, some)
			err := read.Query(ctx, `SELECT id, document FROM checks WHERE team_id = $1 AND id IN `+list, args, func(scan db.Scanner) error {
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

// addClasses adds the overridden classes to domains, which are in order of id. Domains without any of
// their own share a map.
func (t *Team) addClasses(ctx context.Context, read tx, domains []dmarcd.SenderDomain) error {
	var shared map[string]dmarcd.Class
	own := make(map[int]map[string]dmarcd.Class)
	err := read.Query(ctx, `SELECT domain_id, sender, class FROM sender_classes WHERE team_id = $1`, []any{t.id}, func(scan db.Scanner) error {
		var id dmarcd.DomainID
		var sender string
		var class dmarcd.Class
		if err := scan(&id, &sender, &class); err != nil {
			return err
		}
		if id == allDomains {
			if shared == nil {
				shared = make(map[string]dmarcd.Class)
			}
			shared[sender] = class
			return nil
		}
		at, ok := slices.BinarySearchFunc(domains, id, func(d dmarcd.SenderDomain, id dmarcd.DomainID) int { return cmp.Compare(d.ID, id) })
		if !ok {
			return nil
		}
		if own[at] == nil {
			own[at] = make(map[string]dmarcd.Class)
		}
		own[at][sender] = class
		return nil
	})
	for i := range domains {
		domains[i].Classes = shared
		if classes := own[i]; classes != nil {
			for sender, class := range shared {
				if classes[sender] == "" {
					classes[sender] = class
				}
			}
			domains[i].Classes = classes
		}
	}
	return err
}
