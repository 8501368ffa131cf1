package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/shape"
)

// SenderDomains returns all domains of the view, in the order of their ids. It calls facts with
// those of the latest checks that are not known, one after the other: a team may have many.
func (t *Team) SenderDomains(ctx context.Context, known func(dmarcd.CheckID) bool, facts func(dmarcd.CheckID, *dmarcd.Facts)) (all []dmarcd.SenderDomain, err error) {
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
