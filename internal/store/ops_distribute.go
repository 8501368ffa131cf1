package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// directories are the tables with a team_id that are read without a known team, or for all teams. A
// cluster has them on its coordinator, like the tables without a team_id; it shards all others by
// team.
var directories = []string{"addresses", "audit", "audit_chains", "idempotency_keys", "invites", "mailboxes", "members", "sessions", "test_addresses", "tokens"}

// colocation is the tenant table with whose shards those of all others are colocated.
const colocation = "team_locks"

// Distribute shards the tenant tables, with their rows, by team over the workers of a Citus
// cluster, and copies the table of teams to each of them. It returns the number of tables that it
// distributed. progress, which may be nil, is called before each table. It changes all tables or
// none; statements of other clients wait meanwhile. It is dmarcd.ErrInvalid, with instructions,
// unless the database is the coordinator of a cluster.
func (s *Store) Distribute(ctx context.Context, progress func(done, all int, table string)) (distributed int, err error) {
	if err := s.checkCluster(ctx); err != nil {
		return 0, err
	}
	unlock, err := s.db.LockMigrations(ctx)
	if err != nil {
		return 0, fmt.Errorf("wait for another migration: %w", err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return s.distribute(ctx, progress)
}

// checkCluster returns dmarcd.ErrInvalid unless the database is a coordinator with workers.
func (s *Store) checkCluster(ctx context.Context) error {
	if s.db.Engine != db.Postgres {
		return notDistributable("SQLite cannot be distributed. Set DMARCD_DATABASE to the database of a Citus coordinator")
	}
	if !s.db.Citus {
		return notDistributable("the database has no Citus. Install Citus on every server, add citus to shared_preload_libraries, " +
			"and run CREATE EXTENSION citus in this database of every server")
	}
	var coordinators, workers int
	err := s.own().longQueryRow(ctx, `SELECT (SELECT COUNT(*) FROM pg_dist_node WHERE groupid = 0),
		(SELECT COUNT(*) FROM pg_dist_node WHERE shouldhaveshards AND isactive)`, nil, &coordinators, &workers)
	switch {
	case err != nil:
		return fmt.Errorf("read the cluster's metadata: %w", err)
	case coordinators == 0:
		return notDistributable("the cluster does not know its coordinator. Run SELECT citus_set_coordinator_host('host', port) with its address as workers reach it")
	case workers == 0:
		return notDistributable("the cluster has no workers. Run SELECT citus_add_node('host', port) for each")
	}
	return nil
}

// rejectWorker returns dmarcd.ErrInvalid for the database of a worker, which only has shards of the
// coordinator's tables.
func (s *Store) rejectWorker(ctx context.Context) error {
	if !s.db.Citus {
		return nil
	}
	var group int
	if err := s.own().longQueryRow(ctx, `SELECT groupid FROM pg_dist_local_group`, nil, &group); err != nil {
		return fmt.Errorf("read the cluster's metadata: %w", err)
	}
	if group != 0 {
		return notDistributable("this server is a worker of a cluster. Set DMARCD_DATABASE to the coordinator")
	}
	return nil
}

func notDistributable(what string) error {
	return &dmarcd.InvalidError{Field: "database", Message: what + "; docs/scaling.md has the steps."}
}

// isDistributed reports whether the tables of a cluster are distributed.
func (s *Store) isDistributed(ctx context.Context) (yes bool, err error) {
	if !s.db.Citus {
		return false, nil
	}
	err = s.own().longQueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_dist_partition WHERE logicalrelid = to_regclass('`+colocation+`') AND partmethod = 'h')`, nil, &yes)
	return yes, err
}

// distribute distributes the tables that are not distributed yet. The caller holds the lock of
// migrations.
func (s *Store) distribute(ctx context.Context, progress func(done, all int, table string)) (distributed int, err error) {
	var tables []string // to distribute
	rows := false
	err = s.tx(ctx, func(tx tx) error {
		distributed = 0
		// Copying the rows may take longer than the usual timeouts.
		for _, statement := range []string{`SET LOCAL statement_timeout = 0`, `SET LOCAL lock_timeout = 0`} {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		local, err := db.Collect(ctx, tx, `SELECT CAST(relname AS TEXT) FROM pg_class WHERE relnamespace = CAST(current_schema() AS regnamespace)
			AND relkind IN ('r', 'p') AND NOT relispartition
			AND (relname = 'teams' OR EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = pg_class.oid AND attname = 'team_id'))
			AND NOT EXISTS (SELECT 1 FROM pg_dist_partition WHERE logicalrelid = pg_class.oid AND (partmethod = 'h' OR repmodel = 't'))
			ORDER BY relname <> 'teams', relname <> '`+colocation+`', relname`, nil, db.Value[string])
		if err != nil {
			return err
		}
		tables = slices.DeleteFunc(local, func(table string) bool { return slices.Contains(directories, table) })
		if len(tables) == 0 {
			return nil
		}
		// All in one statement: locking them one by one could deadlock.
		if _, err := tx.Exec(ctx, `LOCK TABLE `+strings.Join(tables, ", ")+` IN ACCESS EXCLUSIVE MODE`); err != nil {
			return err
		}
		err = tx.withoutReferences(ctx, tables, func() error {
			for _, table := range tables {
				if progress != nil {
					progress(distributed, len(tables), table)
				}
				call := `create_distributed_table('` + table + `', 'team_id', colocate_with => '` + colocation + `')`
				switch table {
				case "teams":
					call = `create_reference_table('teams')`
				case colocation:
					call = `create_distributed_table('` + table + `', 'team_id', colocate_with => 'none')`
				}
				// The coordinator still has the rows, which no query sees.
				for _, call := range []string{call, `truncate_local_data_after_distributing_table('` + table + `')`} {
					if _, err := tx.Exec(ctx, `SELECT `+call); err != nil {
						return fmt.Errorf("distribute the table %s: %w", table, err)
					}
				}
				distributed++
			}
			return nil
		})
		if err != nil {
			return err
		}
		if slices.Contains(tables, "teams") {
			var empty bool
			if err := tx.QueryRow(ctx, `SELECT analyze_made_up()`, nil, &empty); err != nil {
				return fmt.Errorf("analyze the shards: %w", err)
			}
			rows = !empty
		}
		return nil
	})
	if err == nil && rows {
		err = s.analyze(ctx, tables[1:]) // all but teams
	}
	if err != nil {
		return 0, err
	}
	return distributed, nil
}

// analyze updates the statistics of shards.
func (s *Store) analyze(ctx context.Context, tables []string) error {
	err := s.tx(ctx, func(tx tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = 0`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `ANALYZE `+strings.Join(tables, ", "))
		return err
	})
	if err != nil {
		return fmt.Errorf("analyze the shards: %w", err)
	}
	return nil
}

// withoutReferences runs f without the foreign keys of and to these tables: Citus cannot distribute
// both tables of a foreign key at once.
func (t tx) withoutReferences(ctx context.Context, tables []string, f func() error) error {
	type reference struct{ table, name, definition string }
	list := `ARRAY['` + strings.Join(tables, `', '`) + `']::regclass[]`
	references, err := db.Collect(ctx, t, `SELECT CAST(conrelid::regclass AS TEXT), quote_ident(conname), pg_get_constraintdef(oid) FROM pg_constraint
		WHERE contype = 'f' AND (conrelid = ANY (`+list+`) OR confrelid = ANY (`+list+`)) ORDER BY 1, 2`, nil, func(scan db.Scanner) (reference, error) {
		var r reference
		return r, scan(&r.table, &r.name, &r.definition)
	})
	if err != nil {
		return err
	}
	for _, r := range references {
		if _, err := t.Exec(ctx, `ALTER TABLE `+r.table+` DROP CONSTRAINT `+r.name); err != nil {
			return err
		}
	}
	if err := f(); err != nil {
		return err
	}
	for _, r := range references {
		if _, err := t.Exec(ctx, `ALTER TABLE `+r.table+` ADD CONSTRAINT `+r.name+` `+r.definition); err != nil {
			return fmt.Errorf("restore a reference of %s: %w", r.table, err)
		}
	}
	return nil
}
