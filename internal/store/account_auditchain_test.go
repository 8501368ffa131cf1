package store_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/secret"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// audited is a database whose audit logs have entries.
type audited struct {
	*testing.T

	db     storetest.DB
	sql    *sql.DB
	keys   string // of the stores that are opened from now on
	now    time.Time
	team   dmarcd.TeamID
	filler int
}

func newAudited(t *testing.T, db storetest.DB) *audited {
	t.Helper()
	a := &audited{T: t, db: db, sql: db.SQL(t), keys: secret.NewKey(), now: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)}
	s := a.open()
	a.team = musttest.Get(s.CreateTeam(t.Context(), "acme", true, dmarcd.AuditEntry{Actor: "op", Action: "team.create"}))(t).ID
	musttest.Get(s.CreateTeam(t.Context(), "other", true, dmarcd.AuditEntry{Actor: "op", Action: "team.create"}))(t)
	for range 4 {
		a.note()
	}
	return a
}

// open returns a store with the keys of today.
func (a *audited) open() *store.Store {
	a.Helper()
	return a.db.Open(a.T, store.Options{Secrets: secret.Text("keys", a.keys), Now: func() time.Time { return a.now }})
}

// note writes an entry of the team.
func (a *audited) note() {
	a.Helper()
	a.filler++
	a.now = a.now.Add(time.Hour)
	entry := dmarcd.AuditEntry{Actor: "user@example.com", Action: "domain.create", Target: "example.com", Detail: strings.Repeat("x", a.filler)}
	musttest.Do(a.T, a.open().Team(a.team).Note(a.Context(), entry))
}

// exec does what someone does who can write to the database, but has no key.
func (a *audited) exec(statement string) {
	a.Helper()
	_, err := a.sql.ExecContext(a.Context(), strings.ReplaceAll(statement, "$team", strconv.FormatInt(int64(a.team), 10)))
	musttest.Do(a.T, err)
}

// rotate encrypts the secrets with the first key.
func (a *audited) rotate() {
	a.Helper()
	keys := secret.Text("keys", a.keys)
	musttest.Get(a.open().ReplaceSecrets(a.Context(), func(sealed []byte, context string) []byte {
		return musttest.Get(keys.Seal(musttest.Get(keys.Open(sealed, context))(a.T), context))(a.T)
	}, dmarcd.AuditEntry{Actor: "op", Action: "secret.rotate"}))(a.T)
}

func (a *audited) want(problem string) {
	a.Helper()
	got := musttest.Get(a.open().CheckAudit(a.Context()))(a.T)
	if (got == "") != (problem == "") || !strings.Contains(got, problem) {
		a.Errorf("got %q, want %q", got, problem)
	}
}

// TestAuditChain changes audit logs without their key: CheckAudit finds it at once, and after the next
// entry.
func TestAuditChain(t *testing.T) {
	t.Parallel()
	const ofTeam = ` WHERE team_id = $team AND seq = `
	for name, test := range map[string]struct {
		statements     []string
		problem, after string // the same, if empty
	}{
		"a changed text":       {[]string{`UPDATE audit SET detail = 'harmless'` + ofTeam + `2`}, "entry 2 was changed", ""},
		"a changed actor":      {[]string{`UPDATE audit SET actor = 'you@example.com'` + ofTeam + `4`}, "entry 4 was changed", ""},
		"a changed time":       {[]string{`UPDATE audit SET at = at - 1` + ofTeam + `1`}, "entry 1 was changed", ""},
		"a removed entry":      {[]string{`DELETE FROM audit` + ofTeam + `2`}, "entry 2 is missing", ""},
		"the oldest entry":     {[]string{`DELETE FROM audit` + ofTeam + `1`}, "entry 1 is missing", ""},
		"the newest entry":     {[]string{`DELETE FROM audit` + ofTeam + `4`}, "entry 4 is missing", ""},
		"one of the operators": {[]string{`UPDATE audit SET target = 'x' WHERE team_id IS NULL AND seq = 2`}, "entry 2 was changed", ""},
		"another number": {
			[]string{`DELETE FROM audit` + ofTeam + `2`, `UPDATE audit SET seq = 2` + ofTeam + `3`, `UPDATE audit SET seq = 3` + ofTeam + `4`},
			"entry 2 was changed", "",
		},
		"two exchanged": {
			[]string{`UPDATE audit SET seq = 9` + ofTeam + `2`, `UPDATE audit SET seq = 2` + ofTeam + `3`, `UPDATE audit SET seq = 3` + ofTeam + `9`},
			"entry 2 was changed", "",
		},
		"given to another team": {[]string{`UPDATE audit SET team_id = (SELECT id FROM teams WHERE name = 'other')` + ofTeam + `1`}, "entry 1 ", ""},
		"the newest, with the state": {
			[]string{`DELETE FROM audit` + ofTeam + `4`, `UPDATE audit_chains SET seq = 3, mac = (SELECT mac FROM audit` + ofTeam + `3) WHERE team_id = $team`},
			"its newest entry or its retention was changed", "entry 4 was changed, or the one before it was removed",
		},
		"the oldest, as by the retention": {
			[]string{`UPDATE audit_chains SET removed_seq = 2, removed_mac = (SELECT mac FROM audit` + ofTeam + `2) WHERE team_id = $team`, `DELETE FROM audit WHERE team_id = $team AND seq < 3`},
			"its newest entry or its retention was changed", "entry 5 was changed, or the one before it was removed",
		},
		"all": {[]string{`DELETE FROM audit WHERE team_id = $team`}, "entry 1 is missing", ""},
		"all, with the state": {
			[]string{`DELETE FROM audit WHERE team_id = $team`, `DELETE FROM audit_chains WHERE team_id = $team`},
			"is missing", "entry 1 was changed, or the one before it was removed",
		},
		"all of the operators": {
			[]string{`DELETE FROM audit WHERE team_id IS NULL`, `DELETE FROM audit_chains WHERE team_id = 0`},
			"that of the installation is missing", "entry 1 was changed, or the one before it was removed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db storetest.DB) {
				a := newAudited(t, db)
				a.want("")
				for _, statement := range test.statements {
					a.exec(statement)
				}
				a.want(test.problem)
				a.note()
				musttest.Do(t, a.open().Note(t.Context(), dmarcd.AuditEntry{Actor: "op", Action: "user.login"}))
				a.want(cmp.Or(test.after, test.problem))
			})
		})
	}
}

// TestAuditRetention removes old entries: the rest stays a chain, also with a clock that goes back.
func TestAuditRetention(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		a := newAudited(t, db)
		a.now = a.now.Add(-2 * time.Hour) // the entries 5 and 6 have the times of 3 and 4
		a.note()
		a.note()
		for _, step := range []struct {
			retention store.Retention
			removed   int
		}{
			{store.Retention{}, 0},
			{store.Retention{Audit: 2 * time.Hour}, 1},
			{store.Retention{Entries: 2}, 4},
			{store.Retention{Audit: time.Nanosecond}, 6},
		} {
			if step.removed == 6 {
				a.now = a.now.Add(time.Hour)
			}
			if _, err := a.open().Expire(t.Context(), step.retention); err != nil {
				t.Fatal(err)
			}
			a.want("")
			entries := musttest.Get(a.open().Team(a.team).Audit(t.Context(), store.AuditFilter{}, store.Cursor{}, 10))(t)
			if len(entries) != 6-step.removed {
				t.Errorf("%+v: got %d entries, want %d", step.retention, len(entries), 6-step.removed)
			}
		}
		for range 4 {
			a.note()
		}
		a.want("")
		a.exec(`UPDATE audit SET at = 0 WHERE team_id = $team AND seq IN (8, 9)`) // so that the retention removes them
		for _, step := range []struct {
			retention store.Retention
			left      int
			problem   string
		}{
			{store.Retention{Audit: 365 * 24 * time.Hour}, 4, "entry 8 was changed"},
			{store.Retention{Audit: time.Nanosecond}, 3, "entry 8 was changed"},
			{store.Retention{Entries: 1}, 1, "entry 8 is missing"},
		} {
			if step.left == 3 {
				a.now = a.now.Add(time.Hour)
			}
			if _, err := a.open().Expire(t.Context(), step.retention); err != nil {
				t.Fatal(err)
			}
			a.want(step.problem)
			entries := musttest.Get(a.open().Team(a.team).Audit(t.Context(), store.AuditFilter{}, store.Cursor{}, 10))(t)
			if len(entries) != step.left {
				t.Errorf("%+v: got %d entries, want %d", step.retention, len(entries), step.left)
			}
		}
	})
}

// TestAuditForgedRetention makes the retention remove entries: CheckAudit finds the ones that were changed for that,
// also those with an earlier key.
func TestAuditForgedRetention(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"all entries made old":      `UPDATE audit SET at = 0 WHERE team_id = $team`,
		"the oldest ones made old":  `UPDATE audit SET at = 0 WHERE team_id = $team AND seq <= 3`,
		"a removed one, before old": `DELETE FROM audit WHERE team_id = $team AND seq = 2`,
		"an added one, before all": `INSERT INTO audit (id, team_id, actor, at, action, target, detail, address, seq, mac)
			SELECT 1, team_id, actor, 0, action, target, detail, address, -1, mac FROM audit WHERE team_id = $team AND seq = 1`,
	} {
		for _, rotated := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, rotated %t", name, rotated), func(t *testing.T) {
				t.Parallel()
				storetest.Each(t, func(t *testing.T, db storetest.DB) {
					a := newAudited(t, db)
					if rotated {
						a.keys = secret.NewKey() + " " + a.keys
						a.rotate()
						a.keys, _, _ = strings.Cut(a.keys, " ")
					}
					a.exec(statement)
					retention := store.Retention{Audit: 3*time.Hour - time.Minute} // of the first entry
					if _, err := a.open().Expire(t.Context(), retention); err != nil {
						t.Fatal(err)
					}
					a.want("entry ")
					a.note()
					a.want("entry ")
				})
			})
		}
	}
}

// TestAuditOfNoTeam adds entries that are of no log.
func TestAuditOfNoTeam(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		a := newAudited(t, db)
		unchecked := `PRAGMA foreign_keys = OFF; `
		if db.Engine == "postgres" {
			unchecked = `ALTER TABLE audit DROP CONSTRAINT IF EXISTS audit_team_id_fkey; `
		}
		for id, team := range []int{0, 77} {
			a.exec(unchecked + fmt.Sprintf(`INSERT INTO audit (id, team_id, actor, at, action, target, detail, address, seq, mac)
				SELECT %d, %d, 'op', 0, 'team.delete', target, detail, address, 1, mac FROM audit WHERE team_id = $team AND seq = 1`, id+1, team))
			a.want("which has no log")
			a.exec(fmt.Sprintf(`DELETE FROM audit WHERE team_id = %d`, team))
			a.want("")
		}
	})
}

// TestAuditWithoutKeys begins logs while the key file is missing, which creates it, and continues them, which does not.
func TestAuditWithoutKeys(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		path := filepath.Join(t.TempDir(), "secret.key")
		s := db.Open(t, store.Options{Secrets: secret.File(path)})
		entry := dmarcd.AuditEntry{Actor: "op", Action: "user.login"}
		musttest.Do(t, s.CheckAuditKey(t.Context()))
		musttest.Do(t, s.Note(t.Context(), entry))
		musttest.Do(t, s.CheckAuditKey(t.Context()))
		musttest.Do(t, os.Rename(path, path+".away"))
		for range 2 {
			if err := s.CheckAuditKey(t.Context()); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the check: got %v, want that the key is missing", err)
			}
			if err := s.Note(t.Context(), entry); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("got %v, want that the key is missing", err)
			}
			if _, err := s.CreateTeam(t.Context(), "acme", true, entry); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a team: got %v, want that the key is missing", err)
			}
		}
		musttest.Do(t, os.Rename(path+".away", path))
		musttest.Do(t, s.Note(t.Context(), entry))
		if problem := musttest.Get(s.CheckAudit(t.Context()))(t); problem != "" {
			t.Errorf("got %q, want none", problem)
		}
	})
}

// TestAuditDuringRotation writes an entry that waits for a rotation: it has the new key.
func TestAuditDuringRotation(t *testing.T) {
	t.Parallel()
	a := newAudited(t, storetest.Postgres(t))
	path := filepath.Join(t.TempDir(), "secret.key")
	musttest.Do(t, os.WriteFile(path, []byte(a.keys), 0o600))
	s := a.db.Open(t, store.Options{Secrets: secret.File(path), Now: func() time.Time { return a.now }})
	held := musttest.Get(a.sql.BeginTx(t.Context(), nil))(t)
	defer func() { _ = held.Rollback() }()
	_, err := held.ExecContext(t.Context(), `SELECT 1 FROM audit_chains FOR UPDATE`)
	musttest.Do(t, err)
	written := make(chan error, 1)
	go func() {
		written <- s.Note(context.WithoutCancel(t.Context()), dmarcd.AuditEntry{Actor: "op", Action: "user.login"})
	}()
	for waiting := 0; waiting == 0; {
		musttest.Do(t, a.sql.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting))
	}
	a.keys = secret.NewKey()
	musttest.Do(t, os.WriteFile(path, []byte(a.keys), 0o600))
	musttest.Do(t, held.Rollback())
	musttest.Do(t, <-written)
	var seal []byte
	musttest.Do(t, a.sql.QueryRowContext(t.Context(), `SELECT seal FROM audit_chains WHERE team_id = 0`).Scan(&seal))
	key := musttest.Get(secret.Text("keys", a.keys).Subkey("dmarcd audit log 1"))(t)
	if !key.Made(seal) {
		t.Error("the log was sealed with the key of before the rotation")
	}
}

// TestAuditKeys replaces the key: old entries can be checked after it is gone, but not be forged with it.
func TestAuditKeys(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		a := newAudited(t, db)
		old := a.keys
		second := secret.NewKey()
		a.keys = second + " " + old
		a.want("")
		a.note()
		a.rotate()
		a.want("")
		a.keys = second
		a.want("")
		a.note()
		a.keys = secret.NewKey() + " " + second
		a.rotate()
		a.keys, _, _ = strings.Cut(a.keys, " ")
		a.note()
		a.want("")

		third := a.keys
		a.keys = old
		a.want("the key of its seal is missing")
		a.note() // seals the log with a key of earlier times
		a.keys = third
		a.want("the key of its seal is missing")
		a.note()
		a.want("was changed, or the one before it was removed")
	})
}

// TestFirstAudit begins the logs as a first start does.
func TestFirstAudit(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		musttest.Get(s.FirstStart(t.Context(), [32]byte{1}))(t)
		musttest.Get(s.FirstInvitation(t.Context(), [32]byte{2}))(t)
		if problem := musttest.Get(s.CheckAudit(t.Context()))(t); problem != "" {
			t.Errorf("got %q, want none", problem)
		}
	})
}

// TestAuditTurns writes entries of one team while a transaction holds the log of another one.
func TestAuditTurns(t *testing.T) {
	t.Parallel()
	a := newAudited(t, storetest.Postgres(t))
	held := musttest.Get(a.sql.BeginTx(t.Context(), nil))(t)
	defer func() { _ = held.Rollback() }()
	_, err := held.ExecContext(t.Context(), `SELECT 1 FROM audit_chains WHERE team_id <> `+strconv.FormatInt(int64(a.team), 10)+` FOR UPDATE`)
	musttest.Do(t, err)
	a.note()
	waits, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := a.open().Note(waits, dmarcd.AuditEntry{Actor: "op", Action: "user.login"}); err == nil {
		t.Error("got no error, want the entry of the installation to wait")
	}
}
