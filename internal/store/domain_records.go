package store

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// maxRecordVersions limits the versions of a record. The oldest are removed.
const maxRecordVersions = 1000

// labelRetention is how long a name of the zone answers after its record was stopped or its domain
// deleted: the CNAME record may still be there.
const labelRetention = 90 * 24 * time.Hour

// labelBytes is the length of the random number in a label.
const labelBytes = 15

// newLabel returns a label of 120 random bits.
func newLabel() string {
	random := make([]byte, labelBytes)
	_, _ = rand.Read(random) // never fails
	return strings.ToLower(base32.StdEncoding.EncodeToString(random))
}

const versionColumns = `kind, version, label, content, author, reason, approver, effect, created_at`

func scanVersion(scan db.Scanner) (v dmarcd.RecordVersion, err error) {
	var created int64
	err = scan(&v.Kind, &v.Version, &v.Label, &v.Content, &v.Author, &v.Reason, &v.Approver, &v.Effect, &created)
	v.CreatedAt = fromUnix(created)
	return v, err
}

// domainID returns the id of a domain, or dmarcd.ErrNotFound.
func (t *Team) domainID(ctx context.Context, read db.Querier, name, lock string) (id dmarcd.DomainID, err error) {
	err = read.QueryRow(ctx, `SELECT id FROM domains WHERE team_id = $1 AND name = $2 AND deleted_at = 0`+lock, []any{t.id, name}, &id)
	return id, err
}

// RecordVersions returns the versions of all managed records of a domain, the latest first.
func (t *Team) RecordVersions(ctx context.Context, domain string) ([]dmarcd.RecordVersion, error) {
	id, err := t.domainID(ctx, t.store, domain, "")
	if err != nil {
		return nil, err
	}
	return db.Collect(ctx, t.store, `SELECT `+versionColumns+` FROM record_versions WHERE team_id = $1 AND domain_id = $2
		ORDER BY kind, version DESC`, []any{t.id, id}, scanVersion)
}

// PublishRecord publishes a version of a managed record: its kind, content, author and reason. base is
// the version that it replaces, 0 for a record that is not managed yet, which gets a label. If another
// version is published it is dmarcd.ErrConflict, and without a zone dmarcd.ErrNotFound. served returns
// what the name with a label answers from then on; nil is a TXT record with the content. What the name of
// an MTA-STS record answers stays as it is; see ServePolicyHost and PublishPolicy. A version with
// an approver has to be proposed, otherwise it is dmarcd.ErrConflict, too. One with
// an attempt of BeginRecord was published elsewhere: it has no label.
func (t *Team) PublishRecord(ctx context.Context, domain string, base int64, v dmarcd.RecordVersion, served func(label string) []ZoneRecord, audit ...dmarcd.AuditEntry) (dmarcd.RecordVersion, error) {
	v.CreatedAt = t.store.now()
	if served == nil {
		served = func(string) []ZoneRecord { return []ZoneRecord{{Type: dns.TXT, Data: v.Content}} }
	}
	err := t.retryTx(ctx, func(tx tx) error {
		id, published, err := t.basedOn(ctx, tx, domain, v.Kind, base)
		if err != nil {
			return err
		}
		// What was proposed is either this version, or based on another one from now on.
		proposed, err := tx.Exec(ctx, `DELETE FROM record_proposals WHERE team_id = $1 AND domain_id = $2 AND kind = $3 AND ($4 = '' OR version = $5 AND content = $6)`,
			t.id, id, v.Kind, v.Approver, base+1, v.Content)
		if err != nil {
			return err
		}
		if v.Approver != "" && proposed == 0 {
			return dmarcd.ErrConflict
		}
		v.Version, v.Label = base+1, published.Label
		if base == 0 && v.Attempt == 0 {
			v.Label = newLabel()
		}
		_, err = tx.Exec(ctx, `INSERT INTO record_versions (team_id, domain_id, `+versionColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
			t.id, id, v.Kind, v.Version, v.Label, v.Content, v.Author, v.Reason, v.Approver, v.Effect, unix(v.CreatedAt))
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM record_versions WHERE team_id = $1 AND domain_id = $2 AND kind = $3 AND version <= $4`,
			t.id, id, v.Kind, v.Version-maxRecordVersions); err != nil {
			return err
		}
		if v.Attempt != 0 {
			tx.note(t.id, domain, audit...)
			return t.endAttempt(ctx, tx, id, v)
		}
		serial, err := tx.nextSerial(ctx)
		if err != nil {
			return err
		}
		content, set := "", `content = excluded.content, `
		if v.Kind == dmarcd.RecordMTASTS { // what its host needs, and the id once the policy is served, follow
			set, err = "", tx.savePolicy(ctx, t.id, domain, v)
		} else {
			content, err = encodeContent(served(v.Label))
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `INSERT INTO zone_names (label, kind, content, source, serial) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (label) DO UPDATE SET `+set+`source = excluded.source, serial = excluded.serial`,
			v.Label, v.Kind, content, v.Content, serial); err != nil {
			return err
		}
		if v.Kind == dmarcd.RecordSPF {
			if err := t.scheduleSPF(ctx, tx, id, unix(v.CreatedAt.Add(firstRefresh))); err != nil {
				return err
			}
		}
		tx.note(t.id, domain, audit...)
		return nil
	})
	return v, err
}

// basedOn locks a domain, and returns the published version of a record, the zero value if it is not managed. If that
// is not base, it is dmarcd.ErrConflict. The lock keeps the domain from being deleted, and others from publishing.
func (t *Team) basedOn(ctx context.Context, tx tx, domain string, kind dmarcd.RecordKind, base int64) (id dmarcd.DomainID, published dmarcd.RecordVersion, err error) {
	if id, err = t.domainID(ctx, tx, domain, t.store.db.LockRow); err != nil {
		return id, published, err
	}
	published, err = t.publishedVersion(ctx, tx, id, kind)
	if err == nil && published.Version != base {
		err = dmarcd.ErrConflict
	}
	return id, published, err
}

// publishedVersion returns the last version of a record, the zero value if it is not managed.
func (t *Team) publishedVersion(ctx context.Context, read db.Querier, id dmarcd.DomainID, kind dmarcd.RecordKind) (dmarcd.RecordVersion, error) {
	versions, err := db.Collect(ctx, read, `SELECT `+versionColumns+` FROM record_versions WHERE team_id = $1 AND domain_id = $2 AND kind = $3
		ORDER BY version DESC LIMIT 1`, []any{t.id, id, kind}, scanVersion)
	if err != nil || len(versions) == 0 {
		return dmarcd.RecordVersion{}, err
	}
	return versions[0], nil
}

// StopRecord removes a managed record with its versions. Its name answers for 90 more days. A record
// that is not managed is dmarcd.ErrNotFound.
func (t *Team) StopRecord(ctx context.Context, domain string, kind dmarcd.RecordKind, audit ...dmarcd.AuditEntry) error {
	return t.retryTx(ctx, func(tx tx) error {
		id, err := t.domainID(ctx, tx, domain, t.store.db.LockRow)
		if err != nil {
			return err
		}
		published, err := t.publishedVersion(ctx, tx, id, kind)
		if err != nil {
			return err
		}
		if published.Version == 0 {
			return dmarcd.ErrNotFound
		}
		if err := t.retireLabels(ctx, tx, `domain_id = $2 AND kind = $3`, id, kind); err != nil {
			return err
		}
		for _, table := range []string{"record_versions", "record_proposals", "record_attempts"} {
			if _, err := tx.Exec(ctx, `DELETE FROM `+table+` WHERE team_id = $1 AND domain_id = $2 AND kind = $3`, t.id, id, kind); err != nil {
				return err
			}
		}
		if kind == dmarcd.RecordSPF {
			if err := t.scheduleSPF(ctx, tx, id, 0); err != nil {
				return err
			}
		}
		if published.Label != "" { // others are at the server of the domain, and stay
			t.addRetired(tx, domain, kind)
		}
		tx.note(t.id, domain, audit...)
		return nil
	})
}

// retireLabels has the labels of some records expire. where names the records, with the parameters from
// $2 on. In a cluster the two tables are on different servers.
func (t *Team) retireLabels(ctx context.Context, tx tx, where string, args ...any) error {
	labels, err := db.Collect(ctx, tx, `SELECT DISTINCT label FROM record_versions WHERE team_id = $1 AND `+where, append([]any{t.id}, args...), db.Value[string])
	if err != nil || len(labels) == 0 {
		return err
	}
	if err := tx.lockZone(ctx); err != nil && !errors.Is(err, dmarcd.ErrNotFound) {
		return err
	}
	for some := range slices.Chunk(labels, rowsPerQuery) {
		expires := t.store.now().Add(labelRetention)
		list, args := db.In([]any{unix(expires)}, some)
		if _, err := tx.Exec(ctx, `UPDATE zone_names SET expires_at = $1 WHERE expires_at = 0 AND source <> '' AND label IN `+list, args...); err != nil {
			return err
		}
		if err := tx.withdrawPolicies(ctx, some, expires); err != nil {
			return err
		}
	}
	return nil
}

// addRetired adds the event that names of a domain are retired: what leads to them has to be replaced.
func (t *Team) addRetired(tx tx, domain string, kinds ...dmarcd.RecordKind) {
	words := make([]string, len(kinds))
	for i, kind := range kinds {
		words[i] = kind.Owner(domain)
	}
	t.addEvents(tx, 0, t.store.now(), dmarcd.Event{Kind: dmarcd.RecordsRetired, EventData: dmarcd.EventData{
		Subject: domain, Reason: strings.Join(words, ", "), Day: dmarcd.DayOf(t.store.now().Add(labelRetention)),
	}})
}

// retireErased retires the labels of records that the next step of an erasure removes.
func (t *Team) retireErased(ctx context.Context, tx tx) error {
	return t.retireLabels(ctx, tx, `(domain_id, kind, version) IN
		(SELECT domain_id, kind, version FROM record_versions WHERE team_id = $1 ORDER BY domain_id, kind, version LIMIT $2)`, purgeRows)
}

// RequireApproval has another user approve what is published for managed records, or not.
func (t *Team) RequireApproval(ctx context.Context, required bool, audit ...dmarcd.AuditEntry) error {
	return t.change(ctx, audit, `UPDATE teams SET approval = $1 WHERE id = $2`, required, t.id)
}

// ApprovalRequired reports whether another user has to approve what is published.
func (t *Team) ApprovalRequired(ctx context.Context) (required bool, err error) {
	err = t.store.QueryRow(ctx, `SELECT approval FROM teams WHERE id = $1`, []any{t.id}, &required)
	return required, err
}

// ProposeRecord proposes a version of a managed record, instead of what was proposed before. base and
// errors are those of PublishRecord. A proposal of a token is that of the user who created it.
func (t *Team) ProposeRecord(ctx context.Context, domain string, base int64, p dmarcd.RecordProposal, token dmarcd.TokenID, audit ...dmarcd.AuditEntry) (dmarcd.RecordProposal, error) {
	p.Version, p.CreatedAt = base+1, t.store.now()
	err := t.retryTx(ctx, func(tx tx) error {
		id, _, err := t.basedOn(ctx, tx, domain, p.Kind, base)
		if err != nil {
			return err
		}
		if token != 0 {
			if err := tx.QueryRow(ctx, `SELECT COALESCE(created_by, 0) FROM tokens WHERE team_id = $1 AND id = $2`, []any{t.id, token}, &p.User); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `INSERT INTO record_proposals (team_id, domain_id, kind, version, content, author, reason, effect, user_id, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
			ON CONFLICT (team_id, domain_id, kind) DO UPDATE SET version = excluded.version, content = excluded.content, author = excluded.author,
				reason = excluded.reason, effect = excluded.effect, user_id = excluded.user_id, created_at = excluded.created_at`,
			t.id, id, p.Kind, p.Version, p.Content, p.Author, p.Reason, p.Effect, p.User, unix(p.CreatedAt))
		tx.note(t.id, domain, audit...)
		return err
	})
	return p, err
}

// RecordProposals returns what is proposed for a domain.
func (t *Team) RecordProposals(ctx context.Context, domain string) ([]dmarcd.RecordProposal, error) {
	id, err := t.domainID(ctx, t.store, domain, "")
	if err != nil {
		return nil, err
	}
	return db.Collect(ctx, t.store, `SELECT kind, version, content, author, reason, effect, user_id, created_at FROM record_proposals
		WHERE team_id = $1 AND domain_id = $2 ORDER BY kind`, []any{t.id, id}, func(scan db.Scanner) (p dmarcd.RecordProposal, err error) {
		var created int64
		err = scan(&p.Kind, &p.Version, &p.Content, &p.Author, &p.Reason, &p.Effect, &p.User, &created)
		p.CreatedAt = fromUnix(created)
		return p, err
	})
}

// WithdrawProposal removes what is proposed for a record. Without it, it is dmarcd.ErrNotFound.
func (t *Team) WithdrawProposal(ctx context.Context, domain string, kind dmarcd.RecordKind, audit ...dmarcd.AuditEntry) error {
	return t.retryTx(ctx, func(tx tx) error {
		id, err := t.domainID(ctx, tx, domain, "")
		if err != nil {
			return err
		}
		tx.note(t.id, domain, audit...)
		return tx.ExecOr(ctx, dmarcd.ErrNotFound, `DELETE FROM record_proposals WHERE team_id = $1 AND domain_id = $2 AND kind = $3`, t.id, id, kind)
	})
}
