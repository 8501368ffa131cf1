package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// SetTeamSender adds a sender, or replaces the one with the same key. Its values are as
// dmarcd.ParseTeamSender returns them. It is a *dmarcd.InvalidError if the team has too many.
func (t *Team) SetTeamSender(ctx context.Context, s dmarcd.TeamSender, audit ...dmarcd.AuditEntry) error {
	networks := make([]string, len(s.Networks))
	for i, network := range s.Networks {
		networks[i] = network.String()
	}
	return t.changeTeamSenders(ctx, audit, func(tx tx) error {
		var others int
		err := tx.QueryRow(ctx, `SELECT COUNT(*) FROM team_senders WHERE team_id = $1 AND key <> $2`, []any{t.id, s.Key}, &others)
		if err != nil {
			return err
		}
		if others >= dmarcd.MaxTeamSenders {
			return &dmarcd.InvalidError{Field: "key", Message: fmt.Sprintf("The team has %d senders of its own, which is the limit. Remove one first.", others)}
		}
		_, err = tx.Exec(ctx, `INSERT INTO team_senders (team_id, key, name, class, networks, hosts, domains) VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT (team_id, key) DO UPDATE SET name = excluded.name, class = excluded.class,
				networks = excluded.networks, hosts = excluded.hosts, domains = excluded.domains`,
			t.id, s.Key, s.Name, s.Class, joinLines(networks), joinLines(s.Hosts), joinLines(s.Domains))
		return err
	})
}

// RemoveTeamSender removes a sender of the team, or returns ErrNotFound.
func (t *Team) RemoveTeamSender(ctx context.Context, key string, audit ...dmarcd.AuditEntry) error {
	return t.changeTeamSenders(ctx, audit, func(tx tx) error {
		return tx.ExecOr(ctx, dmarcd.ErrNotFound, `DELETE FROM team_senders WHERE team_id = $1 AND key = $2`, t.id, db.Plain(key))
	})
}

// changeTeamSenders runs f in a transaction that also makes the senders of all days due: earlier
// mail may belong to other senders now. Days that are due anyway stay as they are.
func (t *Team) changeTeamSenders(ctx context.Context, audit []dmarcd.AuditEntry, f func(tx) error) error {
	return t.audited(ctx, audit, "", func(tx tx) error {
		if err := t.lock(ctx, tx); err != nil {
			return err
		}
		if err := f(tx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE team_days SET senders_due = TRUE WHERE team_id = $1 AND in_senders = changes AND NOT expired`, t.id)
		return err
	})
}

// TeamSenders returns the senders of the team, by key.
func (t *Team) TeamSenders(ctx context.Context) ([]dmarcd.TeamSender, error) {
	return t.teamSenders(ctx, t.store)
}

func (t *Team) teamSenders(ctx context.Context, from db.Querier) ([]dmarcd.TeamSender, error) {
	return db.Collect(ctx, from, `SELECT key, name, class, networks, hosts, domains FROM team_senders WHERE team_id = $1 ORDER BY key`,
		[]any{t.id}, func(scan db.Scanner) (s dmarcd.TeamSender, err error) {
			var networks, hosts, domains string
			if err := scan(&s.Key, &s.Name, &s.Class, &networks, &hosts, &domains); err != nil {
				return s, err
			}
			for _, text := range lines(networks) {
				network, unreadable := netip.ParsePrefix(text)
				s.Networks, err = append(s.Networks, network), errors.Join(err, unreadable)
			}
			s.Hosts, s.Domains = lines(hosts), lines(domains)
			return s, err
		})
}

// namesPerQuery is the number of addresses per query.
const namesPerQuery = 90

// ReverseNames returns the known names of addresses, in any order.
func (s *Store) ReverseNames(ctx context.Context, addrs []netip.Addr) ([]dmarcd.ReverseName, error) {
	list, _ := db.In(nil, make([]string, namesPerQuery))
	query := `SELECT address, name, looked_at FROM reverse_names WHERE address IN ` + list
	var all []dmarcd.ReverseName
	for some := range slices.Chunk(addrs, namesPerQuery) {
		// Pad the last query to the same text, so that it is prepared once.
		args := slices.Repeat([]any{some[0].String()}, namesPerQuery)
		for i, addr := range some {
			args[i] = addr.String()
		}
		found, err := db.Collect(ctx, s.own(), query, args, scanReverseName)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func scanReverseName(scan db.Scanner) (dmarcd.ReverseName, error) {
	var name dmarcd.ReverseName
	var address string
	var checkedAt int64
	if err := scan(&address, &name.Name, &checkedAt); err != nil {
		return name, err
	}
	var err error
	name.Addr, err = netip.ParseAddr(address)
	name.CheckedAt = fromUnix(checkedAt)
	return name, err
}

// SaveReverseNames inserts or replaces names.
func (s *Store) SaveReverseNames(ctx context.Context, names []dmarcd.ReverseName) error {
	latest := make(map[netip.Addr]dmarcd.ReverseName, len(names))
	for _, name := range names {
		latest[name.Addr] = name
	}
	// Sorted, so that transactions do not deadlock.
	var rows [][]any
	for _, addr := range slices.SortedFunc(maps.Keys(latest), netip.Addr.Compare) {
		rows = append(rows, []any{addr.String(), db.Plain(latest[addr].Name), unix(latest[addr].CheckedAt)})
	}
	return s.tx(ctx, func(tx tx) error {
		_, err := tx.InsertMany(ctx, `INSERT INTO reverse_names (address, name, looked_at) VALUES `, rows,
			` ON CONFLICT (address) DO UPDATE SET name = excluded.name, looked_at = excluded.looked_at`)
		return err
	})
}
