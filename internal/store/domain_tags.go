package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// Tagged returns a view of the team with only the domains that have a tag, or all for "".
// It applies to lists of domains, events and reports, daily counts, and the mail in Scan,
// SentState and Senders. Methods that take a domain ignore it.
func (t *Team) Tagged(tag string) *Team { return &Team{store: t.store, id: t.id, tag: tag} }

// tagged returns the condition that a domain has the tag of the view, and args with its argument
// appended.
func (t *Team) tagged(args []any) (condition string, with []any) { return hasTag(t.tag, args) }

// hasTag is tagged for any tag. Without a tag it returns no condition: the engines plan a
// query by its text.
func hasTag(tag string, args []any) (condition string, with []any) {
	if tag == "" {
		return "", args
	}
	args = append(slices.Clip(args), formatTags([]string{db.Plain(tag)}))
	return fmt.Sprintf(` AND replace(domains.tags, $%d, '') <> domains.tags`, len(args)), args
}

// formatTags writes tags with a space before and after each, so that one can be found by
// substring.
func formatTags(tags []string) string {
	if len(tags) == 0 {
		return ""
	}
	return " " + strings.Join(tags, " ") + " "
}

// SetTags replaces the tags of a domain; tags are as dmarcd.ParseTags returns them. It is a
// *dmarcd.InvalidError if the team would have too many.
func (t *Team) SetTags(ctx context.Context, name string, tags []string, audit ...dmarcd.AuditEntry) error {
	return t.tx(ctx, func(tx tx) error {
		if err := t.limitTags(ctx, tx, name, tags); err != nil {
			return err
		}
		changed, err := tx.Exec(ctx, `UPDATE domains SET tags = $1 WHERE team_id = $2 AND name = $3 AND deleted_at = 0`, formatTags(tags), t.id, name)
		if err == nil && changed == 0 {
			err = dmarcd.ErrNotFound
		}
		if err != nil {
			return err
		}
		tx.note(t.id, "", audit...)
		return nil
	})
}

// limitTags returns a *dmarcd.InvalidError if the tags of a domain would be too many for the team.
func (t *Team) limitTags(ctx context.Context, tx tx, name string, tags []string) error {
	if err := t.lock(ctx, tx); err != nil {
		return err
	}
	added := false
	for _, tag := range tags {
		having, args := hasTag(tag, []any{t.id})
		var one int
		err := tx.QueryRow(ctx, `SELECT 1 FROM domains WHERE team_id = $1 AND deleted_at = 0`+having+` LIMIT 1`, args, &one)
		if added = errors.Is(err, dmarcd.ErrNotFound); added {
			break
		}
		if err != nil {
			return err
		}
	}
	if !added { // the usual case, which reads few domains
		return nil
	}
	others, err := db.Collect(ctx, tx, `SELECT DISTINCT tags FROM domains WHERE team_id = $1 AND deleted_at = 0 AND tags <> '' AND name <> $2`,
		[]any{t.id, name}, db.Value[string])
	if err != nil {
		return err
	}
	all := make(map[string]bool)
	for _, tag := range append(strings.Fields(strings.Join(others, " ")), tags...) {
		all[tag] = true
	}
	if len(all) > dmarcd.MaxTeamTags {
		return &dmarcd.InvalidError{Field: "tags", Message: fmt.Sprintf("A team has at most %d different tags. Remove some from other domains first.", dmarcd.MaxTeamTags)}
	}
	return nil
}

// DomainTags returns the tags of a domain, or ErrNotFound.
func (t *Team) DomainTags(ctx context.Context, name string) ([]string, error) {
	var text string
	err := t.store.QueryRow(ctx, `SELECT tags FROM domains WHERE team_id = $1 AND name = $2 AND deleted_at = 0`, []any{t.id, db.Plain(name)}, &text)
	return strings.Fields(text), err
}

// Tags returns the tags of the team's domains, sorted.
func (t *Team) Tags(ctx context.Context) ([]dmarcd.TagCount, error) {
	domains, err := db.CollectMap[string, int](ctx, t.store, `SELECT tags, COUNT(*) FROM domains
		WHERE team_id = $1 AND deleted_at = 0 AND tags <> '' GROUP BY tags`, t.id)
	counts := map[string]int{}
	for tags, n := range domains {
		for tag := range strings.FieldsSeq(tags) {
			counts[tag] += n
		}
	}
	var all []dmarcd.TagCount
	for _, tag := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, dmarcd.TagCount{Tag: tag, Domains: counts[tag]})
	}
	return all, err
}
