package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// Delete deletes the team for good, with audit entries of the installation. It and its name are gone
// at once, with its members, tokens, invitations and mailboxes; its other rows are purged later. Mail
// to its addresses is refused from then on. A team that is gone is ErrNotFound.
func (t *Team) Delete(ctx context.Context, audit ...dmarcd.AuditEntry) error {
	return t.retryTx(ctx, func(tx tx) error {
		if err := tx.checkGrant(ctx); err != nil { // the member is removed
			return err
		}
		// What receives reports or adds domains holds this row, and fails without it.
		if err := tx.ExecOr(ctx, dmarcd.ErrNotFound, `DELETE FROM team_locks WHERE team_id = $1`, t.id); err != nil {
			return err
		}
		for _, statement := range []string{
			`UPDATE sessions SET team_id = NULL WHERE team_id = $1`,
			`DELETE FROM members WHERE team_id = $1`,
			`DELETE FROM tokens WHERE team_id = $1`,
			`DELETE FROM invites WHERE team_id = $1`,
			`DELETE FROM mailboxes WHERE team_id = $1`,
			`DELETE FROM test_addresses WHERE team_id = $1`,
		} {
			if _, err := tx.Exec(ctx, statement, t.id); err != nil {
				return err
			}
		}
		err := tx.ExecOr(ctx, dmarcd.ErrNotFound, `UPDATE teams SET deleted_at = $2, name = $3, api = FALSE WHERE id = $1 AND deleted_at = 0`,
			t.id, unix(t.store.now()), "deleted "+t.id.String())
		if err != nil {
			return err
		}
		tx.note(system, "", audit...)
		return nil
	})
}

// erasure is how the rows of a deleted team are removed from a table: in the order of an index that
// begins with team_id and continues with by, rows at a time.
type erasure struct {
	table, by string
	rows      int
}

// erasures are all tables with a team_id. Rows that others refer to follow them.
var erasures = []erasure{
	{"addresses", "name", purgeRows},
	{"deliveries", "id", purgeRows},
	{"alerts", "seq", purgeRows},
	{"events", "seq", purgeRows},
	{"event_counters", "team_id", 1},
	{"webhooks", "id", purgeRows},
	{"checks", "domain_id, first_at, id", 50},
	{"domain_days", "domain_id, day", purgeRows},
	{"team_days", "day", purgeRows},
	{"day_rollups", "day, build, n", purgeChunks},
	{"mail_days", "domain_id, day", 50},
	{"senders", "domain_id, key", purgeRows},
	{"selectors", "domain_id, signer, selector", purgeRows},
	{"sender_classes", "domain_id, sender", purgeRows},
	{"postures", "domain_id", purgeRows},
	{"record_versions", "domain_id, kind, version", purgeRows},
	{"record_proposals", "domain_id, kind", purgeRows},
	{"record_targets", "domain_id", purgeRows},
	{"record_attempts", "domain_id, kind", purgeRows},
	{"team_senders", "key", 50},
	{"records", "report_id, share, n", purgeRows},
	{"cold_blocks", "id, n", purgeChunks},
	{"shares", "report_id, n", purgeRows},
	{"reports", "id", 100},
	{"rejected", "id", purgeRows},
	{"unused_chunks", "chunks", purgeRows},
	{"original_chunks", "hash, n", purgeChunks},
	{"originals", "hash", purgeChunks},
	{"domains", "id", purgeRows},
	{"team_usage", "day", purgeRows},
	{"alert_scans", "team_id", 1},
	{"alert_rules", "team_id", 1},
	{"idempotency_keys", "hash", purgeRows},
	{"audit", "at, id", purgeRows},
	{"audit_chains", "team_id", 1},
	{"tokens", "created_at, id", purgeRows},
	{"invites", "hash", purgeRows},
	{"members", "user_id", purgeRows},
	{"mailboxes", "created_at, id", purgeRows},
	{"test_addresses", "user_id", purgeRows},
	{"team_locks", "team_id", 1},
}

// erase removes some rows of the deleted team, and at the end the team. It reports whether there may
// be more. After a crash the next call continues.
func (t *Team) erase(ctx context.Context) (more bool, err error) {
	hidden, err := t.exec(ctx, `UPDATE domains SET deleted_at = $2 WHERE team_id = $1 AND id IN
		(SELECT id FROM domains WHERE team_id = $1 AND deleted_at = 0 LIMIT $3)`, t.id, unix(t.store.now()), purgeRows)
	if err != nil || hidden > 0 { // they are checked no longer
		return err == nil, err
	}
	removed, err := inTx(ctx, t.retryTx, func(tx tx) (removed int64, err error) {
		if err := t.retireErased(ctx, tx); err != nil {
			return 0, err
		}
		for _, e := range erasures {
			if removed, err = t.eraseRows(ctx, tx, e); removed > 0 || err != nil {
				return removed, err
			}
		}
		return 0, nil
	})
	if err != nil || removed > 0 {
		return err == nil, err
	}
	emptied, err := t.store.emptyLog(ctx)
	if err == nil && !emptied {
		err = fmt.Errorf("%w: a reader keeps the write-ahead log", dmarcd.ErrTemporary)
	}
	if err != nil {
		return false, err
	}
	// What a job has written meanwhile refers to this row: the statement fails, and the next call
	// removes that, too.
	return false, t.tx(ctx, func(tx tx) error {
		if _, err := tx.Exec(ctx, `UPDATE sessions SET team_id = NULL WHERE team_id = $1`, t.id); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `DELETE FROM teams WHERE id = $1 AND deleted_at > 0`, t.id)
		return err
	})
}

// eraseRows removes a range of an index: for a list of keys PostgreSQL might read the whole table in
// each step.
func (t *Team) eraseRows(ctx context.Context, tx tx, e erasure) (removed int64, err error) {
	last := make([]any, strings.Count(e.by, ",")+1)
	dest, args, key := make([]any, len(last)), []any{t.id}, make([]string, len(last))
	for i := range last {
		dest[i], key[i] = &last[i], fmt.Sprint("$", i+2)
	}
	some, err := db.Collect(ctx, tx, `SELECT `+e.by+` FROM `+e.table+` WHERE team_id = $1 ORDER BY `+e.by+` LIMIT 1 OFFSET $2`,
		[]any{t.id, e.rows - 1}, func(scan db.Scanner) (struct{}, error) { return struct{}{}, scan(dest...) })
	if err != nil {
		return 0, err
	}
	upTo := ""
	if len(some) > 0 {
		upTo = ` AND (` + e.by + `) <= (` + strings.Join(key, ", ") + `)`
		args = append(args, last...)
	}
	removed, err = tx.Exec(ctx, `DELETE FROM `+e.table+` WHERE team_id = $1`+upTo, args...)
	if err != nil {
		return 0, fmt.Errorf("purge %s: %w", e.table, err)
	}
	return removed, nil
}

// emptyLog empties the write-ahead log of SQLite, which has copies of removed rows; the pages of the
// database itself are overwritten (secure_delete). It reports whether it did: a reader may prevent it.
func (s *Store) emptyLog(ctx context.Context) (bool, error) {
	if s.db.Engine != db.SQLite {
		return true, nil
	}
	var busy, frames, moved int64
	err := s.own().longQueryRow(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`, nil, &busy, &frames, &moved)
	return busy == 0, err
}
