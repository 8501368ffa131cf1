package store

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// owner is the domain that a share counts for; the zero value is none.
type owner struct {
	id   dmarcd.DomainID
	name string
}

func scanOwner(scan scanner) (o owner, err error) {
	err = scan(&o.id, &o.name)
	return o, err
}

// manyNames is the number of names above which all domains of the team are read at once.
const manyNames = 500

// attribution finds the domains of a team for From domains, and caches them for one
// transaction.
type attribution struct {
	team  *Team
	tx    tx
	known map[string]owner // by name; the zero owner means that the team does not have it
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
	err := a.tx.queryRow(ctx, `SELECT id FROM domains WHERE team_id = $1 AND name = $2 AND deleted_at = 0`,
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
	domains, err := collect(ctx, a.tx, `SELECT id, name FROM domains WHERE team_id = $1 AND deleted_at = 0`,
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
