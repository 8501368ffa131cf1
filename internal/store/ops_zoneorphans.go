package store

import (
	"context"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// kindOrphaned is the kind of names that were served, and that the database did not have: it was
// restored from an older backup.
const kindOrphaned = "orphaned"

// ContinueZone continues what was served before: the serial becomes at least atLeast, and names that
// the database does not have are added as orphaned, which answer until DropOrphans. It returns
// the serial, and the names that were added; others are tombstones, or in use.
func (s *Store) ContinueZone(ctx context.Context, atLeast int64, served []ZoneName) (serial int64, orphaned []ZoneName, err error) {
	err = s.Team(system).retryTx(ctx, func(tx tx) error {
		// The lock is that of nextSerial.
		if err := tx.QueryRow(ctx, `SELECT serial FROM zone`+s.db.LockRow, nil, &serial); err != nil {
			return err
		}
		if orphaned, err = tx.unknownNames(ctx, served); err != nil {
			return err
		}
		if serial >= atLeast && len(orphaned) == 0 {
			return nil
		}
		if serial < atLeast-1 {
			if _, err := tx.Exec(ctx, `UPDATE zone SET serial = $1`, atLeast-1); err != nil {
				return err
			}
		}
		if serial, err = tx.nextSerial(ctx); err != nil || len(orphaned) == 0 {
			return err
		}
		rows := make([][]any, len(orphaned))
		for i, n := range orphaned {
			content, err := encodeContent(n.Records)
			if err != nil {
				return err
			}
			rows[i] = []any{n.Label, kindOrphaned, content, content, serial}
		}
		_, err := tx.InsertMany(ctx, `INSERT INTO zone_names (label, kind, content, source, serial) VALUES `, rows, "")
		return err
	})
	return serial, orphaned, err
}

// unknownNames returns the names whose labels are not in the database.
func (tx tx) unknownNames(ctx context.Context, names []ZoneName) (unknown []ZoneName, err error) {
	for some := range slices.Chunk(names, rowsPerQuery) {
		labels := make([]string, len(some))
		for i, n := range some {
			labels[i] = n.Label
		}
		list, args := db.In(nil, labels)
		known, err := db.Collect(ctx, tx, `SELECT label FROM zone_names WHERE label IN `+list, args, db.Value[string])
		if err != nil {
			return nil, err
		}
		for _, n := range some {
			if !slices.Contains(known, n.Label) {
				unknown = append(unknown, n)
			}
		}
	}
	return unknown, nil
}

// DropOrphans removes the records of orphaned names, and returns how many there were. The names stay, so
// that they are never used again.
func (s *Store) DropOrphans(ctx context.Context, audit ...dmarcd.AuditEntry) (dropped int64, err error) {
	err = s.audited(ctx, audit, "", func(tx tx) error {
		serial, err := tx.nextSerial(ctx)
		if err != nil {
			return err
		}
		dropped, err = tx.Exec(ctx, `UPDATE zone_names SET kind = '', content = '', source = '', serial = $1 WHERE kind = $2`, serial, kindOrphaned)
		return err
	})
	return dropped, err
}

// ZoneState is the zone as the database has it. Names answer; orphaned and retired ones among them
// are not in use by a domain.
type ZoneState struct {
	Name                     string
	Serial                   int64
	Names, Orphaned, Retired int
}

// ZoneState returns the state of the zone. Without one it is dmarcd.ErrNotFound.
func (s *Store) ZoneState(ctx context.Context) (z ZoneState, err error) {
	err = s.own().QueryRow(ctx, `SELECT name, serial, (SELECT count(*) FROM zone_names WHERE content <> ''),
		(SELECT count(*) FROM zone_names WHERE kind = $1), (SELECT count(*) FROM zone_names WHERE expires_at > 0)
		FROM zone`, []any{kindOrphaned}, &z.Name, &z.Serial, &z.Names, &z.Orphaned, &z.Retired)
	return z, err
}
