package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/store/db"
	"github.com/dmarcd/dmarcd/internal/store/shape"
)

// ChangeFilter narrows a list of changes in DNS; the zero value matches all.
type ChangeFilter struct {
	Domain string
	// Part selects checks that found changes in it; "" selects all.
	Part facts.Part
	Times
}

// DomainChanges returns up to limit checks that found changes in DNS, of all domains, newest first, older
// than the cursor.
func (t *Team) DomainChanges(ctx context.Context, filter ChangeFilter, before Cursor, limit int) ([]facts.DomainChange, error) {
	at, id := before.bounds()
	from, until := filter.bounds()
	args := []any{t.id, at, id, from, until, limit}
	condition, tag := "", t.tag
	if filter.Domain != "" {
		args = append(args, db.Plain(filter.Domain))
		condition = fmt.Sprintf(` AND checks.domain_id = (SELECT id FROM domains WHERE team_id = $1 AND name = $%d AND deleted_at = 0)`, len(args))
		tag = ""
	}
	if filter.Part != "" {
		args = append(args, partBit(filter.Part))
		condition += fmt.Sprintf(` AND (checks.parts & $%d) <> 0`, len(args))
	}
	tagged, args := hasTag(tag, args)
	return db.Collect(ctx, t.store, `SELECT checks.id, domains.name, checks.first_at, checks.grade, checks.changes
		FROM checks JOIN domains ON domains.team_id = $1 AND domains.id = checks.domain_id
		WHERE checks.team_id = $1 AND checks.parts <> 0 AND domains.deleted_at = 0
			AND checks.first_at <= $2 AND (checks.first_at < $2 OR checks.id < $3) AND checks.first_at >= $4 AND checks.first_at < $5`+condition+tagged+`
		ORDER BY checks.first_at DESC, checks.id DESC LIMIT $6`, args, scanDomainChange)
}

func scanDomainChange(scan db.Scanner) (facts.DomainChange, error) {
	var c facts.DomainChange
	var at int64
	var changes string
	if err := scan(&c.ID, &c.Domain, &at, &c.Grade, &changes); err != nil {
		return c, err
	}
	c.At = fromUnix(at)
	var err error
	if c.Changes, err = shape.DecodeChanges(changes); err != nil {
		return c, fmt.Errorf("read check %s: %w", c.ID, err)
	}
	c.Parts = facts.PartsOf(c.Changes)
	return c, nil
}

// partBit returns the stored bit of a part, 0 if there is no such part.
func partBit(part facts.Part) int64 {
	if at := slices.Index(facts.Parts(), part); at >= 0 {
		return 1 << at
	}
	return 0
}

// partBits returns the bits of the parts that changed.
func partBits(changes []facts.Change) (bits int64) {
	for _, part := range facts.PartsOf(changes) {
		bits |= partBit(part)
	}
	return bits
}
