package store

import (
	"context"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// AuditFilter narrows the audit log; the zero value matches everything.
type AuditFilter struct {
	Actor  string
	Action string
	Target string
	Times
}

const auditColumns = `id, COALESCE(team_id, 0), COALESCE(user_id, 0), actor, at, action, target, detail, address`

const auditQuery = `SELECT ` + auditColumns + ` FROM audit
	WHERE (at < $1 OR at = $1 AND id < $2)
		AND ($3 = '' OR actor = $3) AND ($4 = '' OR action = $4) AND ($5 = '' OR target = $5) AND at >= $6 AND at < $7 `

const auditOrder = ` ORDER BY at DESC, id DESC LIMIT $8`

func auditArguments(filter AuditFilter, before Cursor, limit int) []any {
	at, id := before.bounds()
	from, until := filter.bounds()
	return []any{at, id, filter.Actor, filter.Action, filter.Target, from, until, limit}
}

func scanAuditEntry(scan db.Scanner) (dmarcd.AuditEntry, error) {
	var e dmarcd.AuditEntry
	var at int64
	err := scan(&e.ID, &e.Team, &e.User, &e.Actor, &at, &e.Action, &e.Target, &e.Detail, &e.Address)
	e.At = fromUnix(at)
	return e, err
}

// Note writes an audit entry of the installation. Its ID, At and Team are ignored.
func (s *Store) Note(ctx context.Context, entry dmarcd.AuditEntry) error {
	return s.audited(ctx, []dmarcd.AuditEntry{entry}, "", func(tx) error { return nil })
}

// Note writes an audit entry of the team. Its ID, At and Team are ignored.
func (t *Team) Note(ctx context.Context, entry dmarcd.AuditEntry) error {
	return t.audited(ctx, []dmarcd.AuditEntry{entry}, "", func(tx) error { return nil })
}

// Audit returns up to limit entries of the installation and all teams, newest first, older
// than the cursor.
func (s *Store) Audit(ctx context.Context, filter AuditFilter, before Cursor, limit int) ([]dmarcd.AuditEntry, error) {
	return db.Collect(ctx, s.own(), auditQuery+auditOrder, auditArguments(filter, before, limit), scanAuditEntry)
}

// Audit returns up to limit entries of the team, newest first, older than the
// cursor.
func (t *Team) Audit(ctx context.Context, filter AuditFilter, before Cursor, limit int) ([]dmarcd.AuditEntry, error) {
	return db.Collect(ctx, t.store, auditQuery+`AND team_id = $9`+auditOrder,
		append(auditArguments(filter, before, limit), t.id), scanAuditEntry)
}
