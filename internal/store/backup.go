package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// backupTables are all tables, each after those that it references.
var backupTables = []struct{ name, columns string }{
	{"teams", "id, name, api, created_at, keep_originals, keep_records, keep_counters, quota_domains, quota_stored, quota_unreadable, quota_reports, quota_mailboxes"},
	{"installation", "name, value"},
	{"job_leases", "name, holder, lease_until, due_at"},
	{"spool_holders", "holder, lease_until"},
	{"spool", "name, holder, crashes, charged, size, envelope"},
	{"spool_chunks", "name, n, content"},
	{"team_locks", "team_id"},
	{"tokens", "id, team_id, name, hash, scope, created_at, expires_at, used_at, revoked_at"},
	{"domains", "id, team_id, name, active, record, record_domain, policy, purpose, report_mailbox, compliant, non_compliant, created_at, updated_at, grade, checked_at, known_at, known_until, failures, reason, doubted, full_at, next_full_at, next_check_at, deleted_at, unfinished, tags, parked, sample, claiming, forwarding_accepted"},
	{"checks", "id, team_id, domain_id, first_at, last_at, grade, document, changes, errors"},
	{"event_counters", "team_id, seq"},
	{"events", "team_id, seq, id, domain_id, at, kind, document"},
	{"alerts", "team_id, seq, kind, domain_id, subject, first_day, last_day, level, state, reason, send_at, acknowledged_at, acknowledged_by"},
	{"alert_rules", "team_id, document"},
	{"alert_scans", "team_id, due_at, lease_until, began_at, after_id, changed_at, is_full, full_at"},
	{"mail_days", "team_id, domain_id, day, changed_at, document"},
	{"webhooks", "team_id, id, url, format, kinds, domains, secret, old_secret, old_until, created_at, disabled_at, disabled_reason, failing_since, claimed_at, notify_at"},
	{"deliveries", "team_id, id, webhook_id, seq, state, created_at, next_at, give_up_at, lease_until, attempts, test, attempted_at, status, took_ms, problem"},
	{"domain_days", "team_id, domain_id, day, compliant, non_compliant, quarantined, rejected, dkim, spf, unverified"},
	{"team_days", "team_id, day, compliant, non_compliant, quarantined, rejected, dkim, spf, changes, broken, in_rollup, rollup_at, unverified, build, newest_report, in_senders, removed, expired"},
	{"senders", "team_id, domain_id, key, first_day, last_day"},
	{"team_usage", "team_id, day, stored, unreadable, reports"},
	{"addresses", "mailbox, team_id, name, domain_id, retired_at"},
	{"day_rollups", "team_id, day, build, n, records, block"},
	{"originals", "team_id, hash, size, packed, stored_at, chunks, bytes"},
	{"original_chunks", "team_id, hash, n, packed"},
	{"unused_chunks", "team_id, chunks, lease_until"},
	{"reports", "id, team_id, kind, identity, content, organization, external_id, domain, begin_at, end_at, records, messages, compliant, quirks, damage, intake, genuine, verdict, received_at, original, member, document, emptied_at, state, held_reason, pending_until, standing, cold, text_bytes"},
	{"shares", "team_id, report_id, n, domain_id, kind, day, header_from, from_path, policy_path, records, compliant, non_compliant, quarantined, rejected, dkim, spf, unverified"},
	{"records", "team_id, report_id, share, n, count, source, disposition, dkim, spf, details"},
	{"cold_blocks", coldColumns},
	{"unused_blobs", "team_id, blob, lease_until"},
	{"selectors", "team_id, domain_id, signer, selector, day"},
	{"sender_classes", "team_id, domain_id, sender, class"},
	{"team_senders", "team_id, key, name, class, networks, hosts, domains"},
	{"rejected", "id, team_id, kind, intake, name, member, reason, genuine, verdict, received_at, original, bytes, domain_id"},
	{"mailboxes", "id, team_id, host, port, security, username, method, secret, folder, after, move_to, uid_validity, last_uid, created_at, seen_at, error, error_at, crashes, paused_at, lease_until"},
	{"reverse_names", "address, name, looked_at"},
	{"users", "id, email, name, password_hash, operator, created_at, signed_in_at"},
	{"members", "team_id, user_id, role, created_at"},
	{"sessions", "hash, user_id, team_id, created_at, seen_at, expires_at, user_agent, address"},
	{"invites", "hash, email, team_id, role, operator, created_by, expires_at, used_at"},
	{"identities", "issuer, subject, user_id"},
	{"audit", "id, team_id, user_id, actor, at, action, target, detail, address"},
}

// backupBatch is the number of rows per batch.
const backupBatch = 1000

// Backup writes a snapshot of the database to a new SQLite file that dmarcd can serve from,
// for both engines. It does not block reads and writes. progress receives the number of rows
// written; it may be nil. The file gets its name only when it is complete and synced.
func (s *Store) Backup(ctx context.Context, file string, progress func(rows int)) (err error) {
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write the backup: %s is there already; name a new file", file)
	}
	folder, err := os.MkdirTemp(filepath.Dir(file), ".dmarcd-backup-")
	if err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	partial := filepath.Join(folder, "dmarcd.db")

	if s.dialect.name == sqliteDialect.name {
		_, err = s.exec(ctx, `VACUUM INTO $1`, partial)
	} else {
		err = s.copyTo(ctx, partial, progress)
	}
	if err == nil {
		err = s.inlineBlobs(ctx, partial)
	}
	if err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	// VACUUM INTO uses the umask; make the copy as private as the database.
	if err := os.Chmod(partial, databaseMode); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	if err := syncFile(partial); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	if err := os.Rename(partial, file); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	return syncFile(filepath.Dir(file))
}

// copyTo copies every table to a new SQLite database from one snapshot.
func (s *Store) copyTo(ctx context.Context, file string, progress func(rows int)) (err error) {
	// Without a logger: this migration concerns only the copy.
	target, err := Open(ctx, file, Options{Now: s.options.Now})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	if _, err := target.Migrate(ctx); err != nil {
		return err
	}
	snapshot, err := s.reader.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return s.kind(err)
	}
	defer func() { _ = snapshot.Rollback() }() // read-only
	// Reading a table takes as long as writing its copy, which may exceed the usual timeout.
	settings := `SET LOCAL statement_timeout = 0`
	if s.citus { // one connection to each worker has one snapshot of it
		settings += `; SET LOCAL citus.max_adaptive_executor_pool_size = 1`
	}
	if _, err := snapshot.ExecContext(ctx, settings); err != nil {
		return s.kind(err)
	}
	// A partition that is dropped is missing in snapshots from before, too. The first query
	// takes the snapshot, so this must come before it.
	if _, err := snapshot.ExecContext(ctx, `LOCK TABLE records IN ACCESS SHARE MODE`); err != nil {
		return s.kind(err)
	}

	rows := 0
	return target.tx(ctx, func(to tx) error {
		for _, table := range backupTables {
			err := copyTable(ctx, tx{store: s, run: snapshot}, to, table.name, table.columns, func(n int) {
				if rows += n; progress != nil {
					progress(rows)
				}
			})
			if err != nil {
				return fmt.Errorf("copy %s: %w", table.name, err)
			}
		}
		return nil
	})
}

func copyTable(ctx context.Context, from, to tx, table, columns string, copied func(rows int)) error {
	rows, err := from.run.QueryContext(ctx, `SELECT `+columns+` FROM `+table)
	if err != nil {
		return from.store.kind(err)
	}
	defer func() { _ = rows.Close() }() // rows.Err tells
	names, err := rows.Columns()
	if err != nil {
		return from.store.kind(err)
	}
	insert := `INSERT INTO ` + table + ` (` + columns + `) VALUES `
	var batch [][]any
	flush := func() error {
		n, err := to.insertMany(ctx, insert, batch, "")
		copied(n)
		batch = batch[:0]
		return err
	}
	for rows.Next() {
		values := make([]any, len(names))
		dest := make([]any, len(names))
		for i := range values {
			dest[i] = &values[i]
		}
		if err := rows.Scan(dest...); err != nil {
			return from.store.kind(err)
		}
		if batch = append(batch, values); len(batch) == backupBatch {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return errors.Join(from.store.kind(rows.Err()), flush())
}

// syncFile calls fsync on a file or folder.
func syncFile(path string) error {
	f, err := os.Open(path) //nolint:gosec // a path of ours
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
