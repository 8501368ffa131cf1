package store

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// ReverseName is what was found out about an address that sends mail. The whole
// installation shares it: it comes from the DNS, not from a team.
type ReverseName struct {
	Addr netip.Addr
	// Name is the name of the address, "" if there is none.
	Name string
	// LookedAt is when the DNS was asked.
	LookedAt time.Time
}

// namesPerQuery is how many addresses one query looks for.
const namesPerQuery = 90

// ReverseNames returns what is kept about the addresses, in any order, without those
// that are not known.
func (s *Store) ReverseNames(ctx context.Context, addrs []netip.Addr) ([]ReverseName, error) {
	placeholders := make([]string, namesPerQuery)
	for i := range placeholders {
		placeholders[i] = fmt.Sprintf("$%d", i+1)
	}
	query := `SELECT address, name, looked_at FROM reverse_names WHERE address IN (` + strings.Join(placeholders, ", ") + `)`
	var all []ReverseName
	for some := range slices.Chunk(addrs, namesPerQuery) {
		// The last addresses are asked for in a query of the same text, which
		// is prepared: the first of them fills it up.
		args := slices.Repeat([]any{some[0].String()}, namesPerQuery)
		for i, addr := range some {
			args[i] = addr.String()
		}
		found, err := collectRead(ctx, s, query, args, scanReverseName)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func scanReverseName(scan scanner) (ReverseName, error) {
	var name ReverseName
	var address string
	var lookedAt int64
	if err := scan(&address, &name.Name, &lookedAt); err != nil {
		return name, err
	}
	var err error
	name.Addr, err = netip.ParseAddr(address)
	name.LookedAt = fromUnix(lookedAt)
	return name, err
}

// SaveReverseNames keeps names, in place of what was kept about their addresses.
func (s *Store) SaveReverseNames(ctx context.Context, names []ReverseName) error {
	latest := make(map[netip.Addr]ReverseName, len(names))
	for _, name := range names {
		latest[name.Addr] = name
	}
	// In one order, so that two transactions do not wait for each other.
	var rows [][]any
	for _, addr := range slices.SortedFunc(maps.Keys(latest), netip.Addr.Compare) {
		rows = append(rows, []any{addr.String(), plain(latest[addr].Name), unix(latest[addr].LookedAt)})
	}
	return s.tx(ctx, func(tx tx) error {
		_, err := tx.insertMany(ctx, `INSERT INTO reverse_names (address, name, looked_at) VALUES `, rows,
			` ON CONFLICT (address) DO UPDATE SET name = excluded.name, looked_at = excluded.looked_at`)
		return err
	})
}
