package store

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// owner is the domain that a share counts for; the zero value means unclaimed.
type owner struct {
	id   dmarcd.DomainID
	name string
}

func scanOwner(scan db.Scanner) (o owner, err error) {
	err = scan(&o.id, &o.name)
	return o, err
}

// manyNames is the number of names above which all domains of the team are read at once.
const manyNames = 500

// attribution finds the domains of a team for From domains, without those whose proof is missing, and
// caches them for one transaction.
type attribution struct {
	team  *Team
	tx    tx
	known map[string]owner // by name; the zero owner if the team does not have the name
	all   bool             // known holds every domain of the team
}

func newAttribution(t *Team, tx tx) *attribution {
	return &attribution{team: t, tx: tx, known: make(map[string]owner)}
}

// ofShares returns the owner of each share of a report.
func (a *attribution) ofShares(ctx context.Context, report *dmarcd.NewReport) ([]owner, error) {
	owners := make([]owner, len(report.Shares))
	for i, share := range report.Shares {
		var err error
		if owners[i], err = a.of(ctx, share.From, report.Domain); err != nil {
			return nil, err
		}
	}
	return owners, nil
}

// of returns the team's domain that equals, or is the nearest parent of, the From domain, else
// of the policy domain.
func (a *attribution) of(ctx context.Context, from, policy string) (owner, error) {
	for _, name := range [...]string{nameText(from), nameText(policy)} {
		for ; name != ""; _, name, _ = strings.Cut(name, ".") {
			found, err := a.lookUp(ctx, name)
			if err != nil || found.id != 0 {
				return found, err
			}
		}
	}
	return owner{}, nil
}

func (a *attribution) lookUp(ctx context.Context, name string) (owner, error) {
	found, ok := a.known[name]
	if ok || a.all {
		return found, nil
	}
	if len(a.known) == manyNames {
		if err := a.readAll(ctx); err != nil {
			return owner{}, err
		}
		return a.known[name], nil
	}
	err := a.tx.QueryRow(ctx, `SELECT id FROM domains WHERE team_id = $1 AND name = $2 AND deleted_at = 0 AND proof <> 'missing'`,
		[]any{a.team.id, name}, &found.id)
	switch {
	case err == nil:
		found.name = name
	case !errors.Is(err, dmarcd.ErrNotFound):
		return owner{}, err
	}
	a.known[name] = found
	return found, nil
}

func (a *attribution) readAll(ctx context.Context) error {
	domains, err := db.Collect(ctx, a.tx, `SELECT id, name FROM domains WHERE team_id = $1 AND deleted_at = 0 AND proof <> 'missing'`,
		[]any{a.team.id}, scanOwner)
	for _, domain := range domains {
		a.known[domain.name] = domain
	}
	a.all = err == nil
	return err
}

// pathOf returns the labels of a name in reverse order, each followed by a dot: all names
// below example.com start with com.example.
func pathOf(name string) string {
	if name == "" {
		return ""
	}
	labels := strings.Split(name, ".")
	slices.Reverse(labels)
	return strings.Join(labels, ".") + "."
}

// afterPath returns the upper bound of all paths that start with path, in byte order.
func afterPath(path string) string { return path[:len(path)-1] + "/" }

// maxSelectors limits the selectors learned from one report.
const maxSelectors = 100

// selectors are the DKIM selectors that reports mention for a domain, with the last day.
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
	_, err := r.tx.InsertMany(ctx, `INSERT INTO selectors (team_id, domain_id, signer, selector, day) VALUES `, rows,
		` ON CONFLICT (team_id, domain_id, signer, selector) DO UPDATE
			SET day = CASE WHEN excluded.day > selectors.day THEN excluded.day ELSE selectors.day END`)
	return err
}

// Selectors returns up to limit DKIM selectors of a domain from reports with aligned
// signatures, newest first.
func (t *Team) Selectors(ctx context.Context, name string, limit int) ([]string, error) {
	return db.Collect(ctx, t.store, `SELECT selectors.selector
		FROM selectors JOIN domains ON domains.id = selectors.domain_id AND domains.team_id = selectors.team_id
		WHERE domains.team_id = $1 AND domains.name = $2 AND domains.deleted_at = 0 AND selectors.signer = domains.name
		ORDER BY selectors.day DESC, selectors.selector LIMIT $3`, []any{t.id, name, limit}, db.Value[string])
}
