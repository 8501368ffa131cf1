package store

import (
	"context"
	"maps"
	"net/netip"
	"slices"

	"github.com/dmarcd/dmarcd"
)

// namesPerQuery is the number of addresses per query.
const namesPerQuery = 90

// ReverseNames returns the known names of addresses, in any order.
func (s *Store) ReverseNames(ctx context.Context, addrs []netip.Addr) ([]dmarcd.ReverseName, error) {
	list, _ := inList(nil, make([]string, namesPerQuery))
	query := `SELECT address, name, looked_at FROM reverse_names WHERE address IN ` + list
	var all []dmarcd.ReverseName
	for some := range slices.Chunk(addrs, namesPerQuery) {
		// Pad the last query to the same text, so that it is prepared once.
		args := slices.Repeat([]any{some[0].String()}, namesPerQuery)
		for i, addr := range some {
			args[i] = addr.String()
		}
		found, err := collectRead(ctx, s.own(), query, args, scanReverseName)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func scanReverseName(scan scanner) (dmarcd.ReverseName, error) {
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
		rows = append(rows, []any{addr.String(), plain(latest[addr].Name), unix(latest[addr].CheckedAt)})
	}
	return s.tx(ctx, func(tx tx) error {
		_, err := tx.insertMany(ctx, `INSERT INTO reverse_names (address, name, looked_at) VALUES `, rows,
			` ON CONFLICT (address) DO UPDATE SET name = excluded.name, looked_at = excluded.looked_at`)
		return err
	})
}
