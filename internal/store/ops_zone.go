package store

import (
	"context"
	"errors"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// nextSerial returns the next serial of the zone: the time, or more if that was used. The row stays
// locked until the commit, so that serials are in the order of commits. Without a zone it is
// dmarcd.ErrNotFound.
func (tx tx) nextSerial(ctx context.Context) (serial int64, err error) {
	err = tx.QueryRow(ctx, `UPDATE zone SET serial = CASE WHEN serial >= $1 THEN serial + 1 ELSE $1 END RETURNING serial`, []any{unix(tx.store.now())}, &serial)
	return serial, err
}

// Zone returns the name of the zone that a daemon serves or served, "" for none.
func (s *Store) Zone(ctx context.Context) (name string, err error) {
	err = s.own().QueryRow(ctx, `SELECT name FROM zone`, nil, &name)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return "", nil
	}
	return name, err
}

// OpenZone records the zone that this daemon serves, and returns its serial. configuration is
// everything else that decides about its records: if it differs from that of the last start, the serial
// is a new one. Another zone while names have content is a *dmarcd.InvalidError.
func (s *Store) OpenZone(ctx context.Context, name, configuration string) (serial int64, err error) {
	err = s.Team(system).retryTx(ctx, func(tx tx) error {
		var last, known string
		err := tx.QueryRow(ctx, `SELECT name, configuration, serial FROM zone`+s.db.LockRow, nil, &last, &known, &serial)
		switch {
		case errors.Is(err, dmarcd.ErrNotFound):
			serial = unix(s.now())
			_, err := tx.Exec(ctx, `INSERT INTO zone (name, configuration, serial) VALUES ($1, $2, $3)`, name, configuration, serial)
			return err
		case err != nil:
			return err
		case last == name && known == configuration:
			return nil
		case last != name:
			var used bool
			if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM zone_names WHERE source <> '')`, nil, &used); err != nil {
				return err
			}
			if used {
				return &dmarcd.InvalidError{Field: "zone", Message: "CNAME records of domains lead to names in " + last + ". Set DMARCD_ZONE=" + last + ", or stop all managed records and wait 90 days."}
			}
		}
		if serial, err = tx.nextSerial(ctx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE policy_hosts SET due_at = 0`); err != nil { // their addresses may be others
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE zone SET name = $1, configuration = $2`, name, configuration)
		return err
	})
	return serial, err
}

// ZoneName is a name below the zone with its records. A tombstone has none.
type ZoneName struct {
	Label   string
	Records []ZoneRecord
}

func scanZoneName(scan db.Scanner) (n ZoneName, err error) {
	var content string
	if err := scan(&n.Label, &content); err != nil {
		return n, err
	}
	n.Records, err = decodeContent(content)
	return n, err
}

// ZoneNames returns up to limit names with records after a label, in order of their labels.
func (s *Store) ZoneNames(ctx context.Context, after string, limit int) ([]ZoneName, error) {
	return db.Collect(ctx, s.own(), `SELECT label, content FROM zone_names WHERE label > $1 AND content <> '' ORDER BY label LIMIT $2`,
		[]any{after, limit}, scanZoneName)
}

// ZoneChanges returns the serial of the zone, and the names that changed after another serial.
func (s *Store) ZoneChanges(ctx context.Context, since int64) (serial int64, changed []ZoneName, err error) {
	err = s.own().QueryRow(ctx, `SELECT serial FROM zone`, nil, &serial)
	if err != nil || serial == since {
		return serial, nil, err
	}
	changed, err = db.Collect(ctx, s.own(), `SELECT label, content FROM zone_names WHERE serial > $1 AND serial <= $2 ORDER BY serial, label`,
		[]any{since, serial}, scanZoneName)
	return serial, changed, err
}

// RetiredName is a name that is no longer in use, and answers until it expires. Source is what its
// records are made of: the content of the last version.
type RetiredName struct {
	ZoneName

	Source    string
	ExpiresAt time.Time
}

// RetiredNames returns up to limit retired names of a kind after a label, in order of their labels.
func (s *Store) RetiredNames(ctx context.Context, kind dmarcd.RecordKind, after string, limit int) ([]RetiredName, error) {
	return db.Collect(ctx, s.own(), `SELECT label, content, source, expires_at FROM zone_names
		WHERE expires_at > 0 AND kind = $1 AND label > $2 ORDER BY label LIMIT $3`,
		[]any{kind, after, limit}, func(scan db.Scanner) (n RetiredName, err error) {
			var content string
			var expires int64
			if err := scan(&n.Label, &content, &n.Source, &expires); err != nil {
				return n, err
			}
			n.ExpiresAt = fromUnix(expires)
			n.Records, err = decodeContent(content)
			return n, err
		})
}

// ServeRetired replaces the records of a retired name. A name that is in use, or expired meanwhile, is
// dmarcd.ErrNotFound.
func (s *Store) ServeRetired(ctx context.Context, label string, records []ZoneRecord) error {
	return s.Team(system).retryTx(ctx, func(tx tx) error {
		if err := tx.lockZone(ctx); err != nil {
			return err
		}
		var retired bool
		err := tx.QueryRow(ctx, `SELECT expires_at > 0 FROM zone_names WHERE label = $1`+s.db.LockRow, []any{label}, &retired)
		if err == nil && !retired {
			err = dmarcd.ErrNotFound
		}
		if err != nil {
			return err
		}
		return tx.serve(ctx, label, records)
	})
}

// serve replaces the records of a name, under a new serial if they differ.
func (tx tx) serve(ctx context.Context, label string, records []ZoneRecord) error {
	content, err := encodeContent(records)
	if err != nil {
		return err
	}
	var served string
	err = tx.QueryRow(ctx, `SELECT content FROM zone_names WHERE label = $1`, []any{label}, &served)
	if err != nil || served == content {
		return err
	}
	serial, err := tx.nextSerial(ctx)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE zone_names SET content = $1, serial = $2 WHERE label = $3`, content, serial, label)
	return err
}

// neutral is what the name of an SPF record answers once its time is over. Without a record, an include:
// or redirect= that still leads there would be a permanent error (RFC 7208 §5.2, §6.1).
const neutral = contentVersion + "\n@ 16 v=spf1 ?all"

// ExpireZoneNames removes the records of names whose time is over. The names stay, so that they are
// never used again.
func (s *Store) ExpireZoneNames(ctx context.Context) (more bool, err error) {
	err = s.Team(system).retryTx(ctx, func(tx tx) error {
		labels, err := db.Collect(ctx, tx, `SELECT label FROM zone_names WHERE expires_at > 0 AND expires_at <= $1 ORDER BY expires_at LIMIT $2`,
			[]any{unix(s.now()), rowsPerQuery}, db.Value[string])
		if more = len(labels) == rowsPerQuery; err != nil || len(labels) == 0 {
			return err
		}
		serial, err := tx.nextSerial(ctx)
		if err != nil {
			return err
		}
		list, args := db.In([]any{serial, dmarcd.RecordSPF, neutral}, labels)
		_, err = tx.Exec(ctx, `UPDATE zone_names SET content = CASE WHEN kind = $2 THEN $3 ELSE '' END, source = '', serial = $1, expires_at = 0 WHERE label IN `+list, args...)
		return err
	})
	return more, err
}
