package store

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
)

// maxSelectors limits the selectors learned from one report.
const maxSelectors = 100

// selectors are the DKIM keys that reports mention for a domain, with the last day.
type selectors map[selectorKey]dmarcd.Day

type selectorKey struct {
	domain           dmarcd.DomainID
	signer, selector string
}

// note adds the selectors of passing signatures of the domain itself.
func (s selectors) note(domain owner, day dmarcd.Day, results []aggregate.DKIMResult) {
	if domain.id == 0 {
		return
	}
	for _, result := range results {
		own := dmarcd.Covers(domain.name, result.Domain)
		if own && result.Result == aggregate.ResultPass && result.Selector != "" && len(s) < maxSelectors {
			// Cleaning and cutting may make two keys equal.
			s[selectorKey{domain.id, nameText(result.Domain), keyText(result.Selector)}] = day
		}
	}
}

func (s selectors) merge(other selectors) {
	for key, day := range other {
		if last, known := s[key]; !known || day > last {
			s[key] = day
		}
	}
}

func (r *reception) insertSelectors(ctx context.Context) error {
	keys := slices.SortedFunc(maps.Keys(r.signers), func(a, b selectorKey) int {
		return cmp.Or(cmp.Compare(a.domain, b.domain), cmp.Compare(a.signer, b.signer), cmp.Compare(a.selector, b.selector))
	})
	rows := make([][]any, len(keys))
	for i, key := range keys {
		rows[i] = []any{r.team.id, key.domain, key.signer, key.selector, r.signers[key]}
	}
	_, err := r.tx.insertMany(ctx, `INSERT INTO selectors (team_id, domain_id, signer, selector, day) VALUES `, rows,
		` ON CONFLICT (team_id, domain_id, signer, selector) DO UPDATE
			SET day = CASE WHEN excluded.day > selectors.day THEN excluded.day ELSE selectors.day END`)
	return err
}

// Selectors returns up to limit DKIM selectors of a domain from reports with aligned
// signatures, newest first.
func (t *Team) Selectors(ctx context.Context, name string, limit int) ([]string, error) {
	return collectRead(ctx, t.store, `SELECT selectors.selector
		FROM selectors JOIN domains ON domains.id = selectors.domain_id AND domains.team_id = selectors.team_id
		WHERE domains.team_id = $1 AND domains.name = $2 AND domains.deleted_at = 0 AND selectors.signer = domains.name
		ORDER BY selectors.day DESC, selectors.selector LIMIT $3`, []any{t.id, name, limit}, scanValue[string])
}
