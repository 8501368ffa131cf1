package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// Tagged returns the view of the team that is narrowed to the domains with a tag, "" for
// all: the lists of domains, events and reports, the counts by day, and the mail that Scan,
// SentSize and Senders read. What names a domain is not narrowed.
func (t *Team) Tagged(tag string) *Team { return &Team{store: t.store, id: t.id, tag: tag} }

// tagged returns the condition that a domain has the tag of the view, and the arguments of
// its query with the tag.
func (t *Team) tagged(args []any) (condition string, with []any) { return hasTag(t.tag, args) }

// hasTag is tagged for any tag. What is not asked for is left out: the engines plan a query
// by its text.
func hasTag(tag string, args []any) (condition string, with []any) {
	if tag == "" {
		return "", args
	}
	args = append(slices.Clip(args), formatTags([]string{plain(tag)}))
	return fmt.Sprintf(` AND replace(domains.tags, $%d, '') <> domains.tags`, len(args)), args
}

// formatTags writes tags with a space before and after each, so that one can be found in
// the text.
func formatTags(tags []string) string {
	if len(tags) == 0 {
		return ""
	}
	return " " + strings.Join(tags, " ") + " "
}

// SetTags gives a domain tags, as dmarcd.ParseTags returns them, in place of those that it
// has.
func (t *Team) SetTags(ctx context.Context, name string, tags []string, audit ...dmarcd.AuditEntry) error {
	return t.change(ctx, audit, `UPDATE domains SET tags = $1 WHERE team_id = $2 AND name = $3 AND deleted_at = 0`,
		formatTags(tags), t.id, name)
}

// DomainTags returns the tags of a domain, or ErrNotFound.
func (t *Team) DomainTags(ctx context.Context, name string) ([]string, error) {
	var text string
	err := t.store.queryRow(ctx, `SELECT tags FROM domains WHERE team_id = $1 AND name = $2 AND deleted_at = 0`, []any{t.id, plain(name)}, &text)
	return strings.Fields(text), err
}

// Tags returns the tags of the team's domains, in order.
func (t *Team) Tags(ctx context.Context) ([]dmarcd.TagCount, error) {
	type row struct {
		tags    string
		domains int
	}
	rows, err := collectRead(ctx, t.store, `SELECT tags, COUNT(*) FROM domains
		WHERE team_id = $1 AND deleted_at = 0 AND tags <> '' GROUP BY tags`, []any{t.id}, func(scan scanner) (r row, err error) {
		return r, scan(&r.tags, &r.domains)
	})
	counts := map[string]int{}
	for _, r := range rows {
		for _, tag := range strings.Fields(r.tags) {
			counts[tag] += r.domains
		}
	}
	var all []dmarcd.TagCount
	for _, tag := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, dmarcd.TagCount{Tag: tag, Domains: counts[tag]})
	}
	return all, err
}
