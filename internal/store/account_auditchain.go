package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/secret"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// auditPurpose is that of the subkeys of the audit log.
const auditPurpose = "dmarcd audit log 1"

// newEntries are the audit entries of a transaction by team. Teams that it creates have no entries, but
// begin a chain.
type newEntries map[dmarcd.TeamID]*teamEntries

type teamEntries struct {
	entries []dmarcd.AuditEntry
	begins  bool
}

func (n newEntries) of(team dmarcd.TeamID) *teamEntries {
	if n[team] == nil {
		n[team] = new(teamEntries)
	}
	return n[team]
}

// note adds audit entries of a team to the transaction. Entries without a target get target.
func (t tx) note(team dmarcd.TeamID, target string, entries ...dmarcd.AuditEntry) {
	for _, e := range entries {
		e.Target = cmp.Or(e.Target, target)
		of := t.audit.of(team)
		of.entries = append(of.entries, e)
	}
}

// chain is the state of a team's audit log. The code of an entry depends on that of the previous one,
// and the seal on the state, so that without the key no entry can be changed or removed.
type chain struct {
	team dmarcd.TeamID
	// last is the newest entry, removed the newest one that the retention has removed.
	last, removed link
	seal          []byte
}

// link is the number and the code of an entry.
type link struct {
	seq int64
	mac []byte
}

const chainColumns = `seq, mac, removed_seq, removed_mac, seal`

// text is what the seal depends on.
func (c chain) text() []byte {
	return netstrings("chain", int64(c.team), c.last.seq, c.last.mac, c.removed.seq, c.removed.mac)
}

// entryText is what the code of an entry depends on.
func entryText(team dmarcd.TeamID, seq int64, previous []byte, e dmarcd.AuditEntry) []byte {
	return netstrings("entry", int64(team), seq, previous, int64(e.ID), int64(e.User), e.Actor, unix(e.At), e.Action, e.Target, e.Detail, e.Address)
}

// netstrings writes values one after the other, each with its length.
func netstrings(values ...any) (text []byte) {
	for _, v := range values {
		if raw, ok := v.([]byte); ok {
			v = string(raw)
		}
		one := fmt.Sprint(v)
		text = fmt.Appendf(text, "%d:%s,", len(one), one)
	}
	return text
}

// writeAudit writes the audit entries of the transaction. The rows of audit_chains are its last locks,
// in the order of the teams, after those of the users.
func (t tx) writeAudit(ctx context.Context) error {
	for _, team := range slices.Sorted(maps.Keys(t.audit)) {
		if err := t.extendChain(ctx, team, t.audit[team]); err != nil {
			return fmt.Errorf("write the audit log: %w", err)
		}
	}
	return nil
}

func (t tx) extendChain(ctx context.Context, team dmarcd.TeamID, added *teamEntries) error {
	c, key, err := t.lockChain(ctx, team, added.begins)
	if err != nil {
		return err
	}
	rows := make([][]any, len(added.entries))
	for i, e := range added.entries {
		e.ID, e.At = dmarcd.AuditID(t.store.nextID()), t.store.now()
		e.Actor, e.Target, e.Detail = logText(e.Actor), logText(e.Target), logText(e.Detail)
		c.last.seq++
		c.last.mac = key.Code(entryText(team, c.last.seq, c.last.mac, e))
		rows[i] = []any{
			e.ID, nullable(team), nullable(e.User), e.Actor, unix(e.At), e.Action, e.Target, e.Detail, e.Address, c.last.seq, c.last.mac,
		}
	}
	_, err = t.InsertMany(ctx, `INSERT INTO audit (id, team_id, user_id, actor, at, action, target, detail, address, seq, mac) VALUES `, rows, "")
	if err != nil {
		return err
	}
	return t.sealChain(ctx, key, c)
}

// beginning is before the first entry of a chain.
var beginning = link{0, []byte("beginning")}

// unknown is the code of no entry. A chain that is missing, or whose seal is wrong, is continued from it:
// the new seal would otherwise hide from CheckAudit that entries were removed.
var unknown = []byte("unknown")

// lockChain locks and returns the chain of a team, and the key of its next entries. It begins one for a new team
// and, before there is any other, for the installation. The keys are read after the lock: otherwise a transaction
// that waits for a rotation would continue the chain with the earlier key.
func (t tx) lockChain(ctx context.Context, team dmarcd.TeamID, begins bool) (chain, secret.Subkey, error) {
	c, err := t.chainOf(ctx, team, t.store.db.LockRow)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return t.beginChain(ctx, team, begins)
	}
	if err != nil {
		return c, secret.Subkey{}, err
	}
	keys, err := t.store.options.Secrets.Subkeys(auditPurpose)
	if err != nil {
		return c, secret.Subkey{}, err
	}
	if !c.intact(keys) {
		c.last.mac = unknown
	}
	return c, keys[0], nil
}

// beginChain begins a chain. Only that of the installation, before there is any other, may create the key file:
// where it is missing later, a new key would hide that it is lost.
func (t tx) beginChain(ctx context.Context, team dmarcd.TeamID, begins bool) (c chain, key secret.Subkey, err error) {
	first := false
	if team == system {
		var chains int
		if err := t.QueryRow(ctx, `SELECT COUNT(*) FROM audit_chains`, nil, &chains); err != nil {
			return c, key, err
		}
		first = chains == 0
	}
	c = chain{team: team, last: beginning, removed: beginning}
	added, err := t.Exec(ctx, `INSERT INTO audit_chains (team_id, `+chainColumns+`) VALUES ($1, 0, $2, 0, $2, $2) ON CONFLICT (team_id) DO NOTHING`, team, beginning.mac)
	switch {
	case err != nil:
		return c, key, err
	case added == 0: // another transaction has begun it
		return t.lockChain(ctx, team, false)
	case first:
		key, err = t.store.options.Secrets.Subkey(auditPurpose)
		return c, key, err
	case !begins:
		c.last.mac = unknown
	}
	keys, err := t.store.options.Secrets.Subkeys(auditPurpose)
	if err != nil {
		return c, key, err
	}
	return c, keys[0], nil
}

func (t tx) chainOf(ctx context.Context, team dmarcd.TeamID, lock string) (chain, error) {
	c := chain{team: team}
	err := t.QueryRow(ctx, `SELECT `+chainColumns+` FROM audit_chains WHERE team_id = $1`+lock, []any{team},
		&c.last.seq, &c.last.mac, &c.removed.seq, &c.removed.mac, &c.seal)
	return c, err
}

// intact reports whether the seal is by one of the keys.
func (c chain) intact(keys []secret.Subkey) bool {
	return slices.ContainsFunc(keys, func(k secret.Subkey) bool { return k.Valid(c.seal, c.text()) })
}

// sealChain saves a chain, with a seal.
func (t tx) sealChain(ctx context.Context, key secret.Subkey, c chain) error {
	return t.ExecOr(ctx, dmarcd.ErrNotFound, `UPDATE audit_chains SET seq = $2, mac = $3, removed_seq = $4, removed_mac = $5, seal = $6 WHERE team_id = $1`,
		c.team, c.last.seq, c.last.mac, c.removed.seq, c.removed.mac, key.Code(c.text()))
}

// ofChain is the condition on the entries of a team, which is the parameter $1.
func ofChain(team dmarcd.TeamID) string {
	if team == system {
		return `team_id IS NULL AND $1 = 0`
	}
	return `team_id = $1`
}

// expireAudit removes the oldest audit entries, in the order in which they were written: those past the
// retention, and those beyond the limit of entries. The first that was changed stays until that limit, and
// all that follow, since CheckAudit is to find it.
func (t tx) expireAudit(ctx context.Context, team dmarcd.TeamID, retention Retention) (more bool, err error) {
	c, err := t.chainOf(ctx, team, "")
	if errors.Is(err, dmarcd.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	before, most := int64(math.MinInt64), int64(math.MinInt64)
	if retention.Audit > 0 {
		before = unix(t.store.now().Add(-retention.Audit))
	}
	if retention.Entries > 0 {
		most = c.last.seq - retention.Entries
	}
	expired := func(seq, at int64) bool { return at < before || seq <= most }
	var seq, at int64
	err = t.QueryRow(ctx, `SELECT seq, at FROM audit WHERE `+ofChain(team)+` ORDER BY seq LIMIT 1`, []any{team}, &seq, &at)
	if errors.Is(err, dmarcd.ErrNotFound) || err == nil && !expired(seq, at) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	keys, earlier, err := t.store.auditKeys(ctx, t)
	if err != nil {
		return false, err
	}
	if c, err = t.chainOf(ctx, team, t.store.db.LockRow); err != nil {
		return false, err
	}
	removed, last := 0, c.removed
	_, _, err = t.readChain(ctx, c, slices.Concat(keys, earlier), func(of link, at int64) bool {
		if removed == logRows || !expired(of.seq, at) {
			return false
		}
		removed, last = removed+1, of
		return true
	})
	if err != nil {
		return false, err
	}
	if removed == 0 || !c.intact(keys) {
		gone, err := t.Exec(ctx, `DELETE FROM audit WHERE `+ofChain(team)+` AND seq <= $2 AND seq < $3`, team, most, seq+logRows)
		return gone == logRows, err
	}
	if _, err = t.Exec(ctx, `DELETE FROM audit WHERE `+ofChain(team)+` AND seq <= $2`, team, last.seq); err != nil {
		return false, err
	}
	c.removed = last
	return removed == logRows, t.sealChain(ctx, keys[0], c)
}

// resealAudit seals the audit logs of all teams with the first key, and keeps the keys of their entries,
// encrypted with it. Logs whose seal is wrong are left alone.
func (s *Store) resealAudit(ctx context.Context) error {
	keys, err := s.options.Secrets.Subkeys(auditPurpose)
	if err != nil {
		return err
	}
	for _, old := range keys[1:] {
		content, err := s.options.Secrets.Seal(old.Bytes(), contextOfAudit(system, old.Name()))
		if err != nil {
			return err
		}
		if _, err := s.exec(ctx, `INSERT INTO audit_keys (name, content) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`, old.Name(), content); err != nil {
			return err
		}
	}
	teams, err := db.Collect(ctx, s.own(), `SELECT team_id FROM audit_chains ORDER BY team_id`, nil, db.Value[dmarcd.TeamID])
	if err != nil {
		return err
	}
	for _, team := range teams {
		err := s.Team(team).tx(ctx, func(t tx) error {
			c, err := t.chainOf(ctx, team, s.db.LockRow)
			if err != nil || keys[0].Made(c.seal) || !c.intact(keys) {
				return err
			}
			return t.sealChain(ctx, keys[0], c)
		})
		if err != nil && !errors.Is(err, dmarcd.ErrNotFound) { // the team was deleted
			return err
		}
	}
	return nil
}

// auditKeys returns the keys of audit entries: those of today, and earlier ones.
func (s *Store) auditKeys(ctx context.Context, from db.Querier) (keys, earlier []secret.Subkey, err error) {
	if keys, err = s.options.Secrets.Subkeys(auditPurpose); err != nil {
		return nil, nil, err
	}
	err = from.Query(ctx, `SELECT name, content FROM audit_keys`, nil, func(scan db.Scanner) error {
		var name string
		var content []byte
		if err := scan(&name, &content); err != nil {
			return err
		}
		raw, err := s.options.Secrets.Open(content, contextOfAudit(system, name))
		if errors.Is(err, secret.ErrOtherKey) || errors.Is(err, secret.ErrDamaged) {
			return nil // its entries name it
		}
		if err != nil {
			return err
		}
		key, err := secret.ParseSubkey(raw)
		earlier = append(earlier, key)
		return err
	})
	return keys, earlier, err
}

// CheckAuditKey returns the error of reading the key of audit logs that have begun: nothing that they would contain can
// be saved without it.
func (s *Store) CheckAuditKey(ctx context.Context) error {
	_, missing := s.options.Secrets.Subkeys(auditPurpose)
	if missing == nil {
		return nil
	}
	var begun bool
	if err := s.own().QueryRow(ctx, `SELECT COUNT(*) > 0 FROM audit_chains`, nil, &begun); err != nil || !begun {
		return err
	}
	return missing
}

// CheckAudit checks that no entry of the audit logs was changed or removed without the key. It returns
// the problem as text, or "".
func (s *Store) CheckAudit(ctx context.Context) (problem string, err error) {
	keys, earlier, err := s.auditKeys(ctx, s.own())
	if err != nil {
		return "", err
	}
	var team dmarcd.TeamID
	err = s.own().longQueryRow(ctx, `SELECT id FROM (SELECT CAST(0 AS BIGINT) AS id UNION SELECT id FROM teams WHERE deleted_at = 0) AS present
		WHERE id NOT IN (SELECT team_id FROM audit_chains) AND EXISTS (SELECT 1 FROM teams) ORDER BY id LIMIT 1`, nil, &team)
	switch {
	case err == nil && team == system:
		return "that of the installation is missing", nil
	case err == nil:
		return "that of " + team.String() + " is missing", nil
	case !errors.Is(err, dmarcd.ErrNotFound):
		return "", err
	}
	err = s.own().longQueryRow(ctx, `SELECT team_id FROM audit
		WHERE team_id IS NOT NULL AND team_id NOT IN (SELECT team_id FROM audit_chains WHERE team_id <> 0) LIMIT 1`, nil, &team)
	switch {
	case err == nil:
		return "entries are of " + team.String() + ", which has no log", nil
	case !errors.Is(err, dmarcd.ErrNotFound):
		return "", err
	}
	teams, err := db.Collect(ctx, s.own(), `SELECT team_id FROM audit_chains ORDER BY team_id`, nil, db.Value[dmarcd.TeamID])
	if err != nil {
		return "", err
	}
	for _, team := range teams {
		err = s.own().snapshot(ctx, func(read tx) error {
			c, err := read.chainOf(ctx, team, "")
			if err == nil {
				problem, err = read.checkChain(ctx, c, keys, earlier)
			}
			return err
		})
		if errors.Is(err, dmarcd.ErrNotFound) { // the team was deleted
			continue
		}
		if problem != "" && team != system {
			problem += " in the log of " + team.String()
		}
		if problem != "" || err != nil {
			return problem, err
		}
	}
	return "", nil
}

func (t tx) checkChain(ctx context.Context, c chain, keys, earlier []secret.Subkey) (problem string, err error) {
	if !slices.ContainsFunc(keys, func(k secret.Subkey) bool { return k.Made(c.seal) }) {
		return "the key of its seal is missing", nil
	}
	if !c.intact(keys) {
		return "its newest entry or its retention was changed", nil
	}
	last, problem, err := t.readChain(ctx, c, slices.Concat(keys, earlier), func(link, int64) bool { return true })
	if problem == "" && (last.seq != c.last.seq || !bytes.Equal(last.mac, c.last.mac)) {
		problem = fmt.Sprintf("entry %d is missing", last.seq+1)
	}
	return problem, err
}

// errStop ends a query.
var errStop = errors.New("no more rows are wanted")

// readChain calls visit with the entries of a chain and their times, from the oldest on, until it returns
// false or one was changed or removed. It returns the last intact entry and what is wrong with the next one.
func (t tx) readChain(ctx context.Context, c chain, keys []secret.Subkey, visit func(of link, at int64) bool) (last link, problem string, err error) {
	last = c.removed
	err = t.Query(ctx, `SELECT `+auditColumns+`, seq, mac FROM audit WHERE `+ofChain(c.team)+` ORDER BY seq`, []any{c.team}, func(scan db.Scanner) error {
		var of link
		e, err := scanAuditEntry(scan.Before(&of.seq, &of.mac))
		if err != nil {
			return err
		}
		by := slices.IndexFunc(keys, func(k secret.Subkey) bool { return k.Made(of.mac) })
		switch {
		case of.seq != last.seq+1:
			problem = fmt.Sprintf("entry %d is missing", last.seq+1)
		case by < 0:
			problem = fmt.Sprintf("the key of entry %d is missing", of.seq)
		case !keys[by].Valid(of.mac, entryText(c.team, of.seq, last.mac, e)):
			problem = fmt.Sprintf("entry %d was changed, or the one before it was removed", of.seq)
		}
		if problem != "" || !visit(of, unix(e.At)) {
			return errStop
		}
		last = of
		return nil
	})
	if errors.Is(err, errStop) {
		err = nil
	}
	return last, problem, err
}
