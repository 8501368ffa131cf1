package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

func TestCredential(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, clock := t.Context(), newClock()
		s := db.Open(t, store.Options{Now: clock.Now})
		team := newTeam(t, s, "a")
		hash := sha256.Sum256([]byte("secret"))
		made := musttest.Get(team.CreateToken(ctx, store.NewToken{Name: "ci", Scope: dmarcd.ScopeRead, Hash: hash, ExpiresAt: clock.Now().Add(time.Hour)}))(t)
		look := func() dmarcd.Credential {
			t.Helper()
			return musttest.Get(s.Credential(ctx, hash))(t)
		}
		before := s.Stats().Queries
		if diff := cmp.Diff(dmarcd.Credential{Token: made, API: true}, look()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if n := s.Stats().Queries - before; n != 1 {
			t.Errorf("the lookup took %d queries, want 1", n)
		}
		musttest.Do(t, s.SetAPI(ctx, "a", false))
		if look().API {
			t.Error("a denied team is still on the whitelist")
		}
		used := clock.advance(90 * time.Second)
		musttest.Do(t, s.TouchToken(ctx, made.ID, used, "192.0.2.1"))
		musttest.Do(t, s.TouchToken(ctx, made.ID, used.Add(-time.Hour), "192.0.2.2"))
		if got, want := look().Token, used.Truncate(time.Minute); !got.UsedAt.Equal(want) || got.UsedFrom != "192.0.2.1" {
			t.Errorf("last use %v from %s, want %v from 192.0.2.1", got.UsedAt, got.UsedFrom, want)
		}
		revoked := clock.advance(time.Minute)
		for range 2 {
			musttest.Do(t, team.RevokeToken(ctx, made.ID))
			clock.advance(time.Minute)
		}
		if got := look().Token.RevokedAt; !got.Equal(revoked) {
			t.Errorf("revoked at %v, want %v", got, revoked)
		}
		if _, err := s.Credential(ctx, sha256.Sum256([]byte("another"))); !errors.Is(err, dmarcd.ErrNotFound) {
			t.Errorf("unknown: got %v, want ErrNotFound", err)
		}
	})
}

// TestTokensAreLimited creates as many tokens as a team may have, and revokes more than are kept.
func TestTokensAreLimited(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		const most = 500
		ctx, clock := t.Context(), newClock()
		s := db.Open(t, store.Options{Now: clock.Now})
		team, other := newTeam(t, s, "a"), newTeam(t, s, "b")
		create := func(team *store.Team, name string, expires time.Time) (dmarcd.Token, error) {
			return team.CreateToken(ctx, store.NewToken{Name: name, Scope: dmarcd.ScopeRead, Hash: sha256.Sum256([]byte(name)), ExpiresAt: expires})
		}
		musttest.Get(create(other, "other", time.Time{}))(t)
		for i := range most {
			musttest.Get(create(team, fmt.Sprint("expires ", i), clock.Now().Add(time.Hour)))(t)
		}
		if _, err := create(team, "one more", time.Time{}); !errors.Is(err, dmarcd.ErrInvalid) {
			t.Errorf("got %v, want ErrInvalid", err)
		}
		clock.advance(2 * time.Hour)
		revoked := musttest.Get(create(team, "after they expired", time.Time{}))(t)
		musttest.Do(t, team.RevokeToken(ctx, revoked.ID))
		clock.advance(time.Second)
		last := musttest.Get(create(team, "last", time.Time{}))(t)
		tokens := musttest.Get(team.Tokens(ctx))(t)
		if n := len(tokens); n != most+1 || tokens[n-1].ID != last.ID || tokens[n-2].ID != revoked.ID {
			t.Errorf("got %d tokens, want the last one and %d that are not valid", n, most)
		}
		if stored, err := other.Tokens(ctx); err != nil || len(stored) != 1 {
			t.Errorf("another team: got %d tokens, %v; want 1", len(stored), err)
		}
	})
}

func TestFirstStartHappensOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		var made atomic.Int32
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				ok, err := s.FirstStart(context.Background(), sha256.Sum256([]byte{byte(i)}))
				if err != nil {
					t.Error(err)
				}
				if ok {
					made.Add(1)
				}
			})
		}
		group.Wait()
		teams, err := s.Teams(t.Context())
		if err != nil || made.Load() != 1 || len(teams) != 1 || !teams[0].API || teams[0].Name != dmarcd.DefaultTeam {
			t.Errorf("made %d times: %+v, %v", made.Load(), teams, err)
		}
		tokens, err := s.Team(teams[0].ID).Tokens(t.Context())
		if err != nil || len(tokens) != 1 {
			t.Errorf("got %d tokens, %v; want 1", len(tokens), err)
		}
	})
}

func TestEnsureToken(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx := t.Context()
		s := db.Open(t, store.Options{})
		hash := sha256.Sum256([]byte("configured"))
		var group sync.WaitGroup
		for range 6 {
			group.Go(func() {
				if err := s.EnsureToken(context.Background(), hash); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		c, err := s.Credential(ctx, hash)
		if err != nil || !c.API || !c.Token.May(dmarcd.ScopeWrite) {
			t.Fatalf("got %+v, %v", c, err)
		}
		musttest.Do(t, s.Team(c.Token.Team).RevokeToken(ctx, c.Token.ID))
		musttest.Do(t, s.SetAPI(ctx, dmarcd.DefaultTeam, false))
		musttest.Do(t, s.EnsureToken(ctx, hash))
		if c, err := s.Credential(ctx, hash); err != nil || !c.Token.Valid(time.Now()) || c.API {
			t.Errorf("got %+v, %v; want a valid token of a team that stays denied", c, err)
		}
		foreign := sha256.Sum256([]byte("foreign"))
		musttest.Get(newTeam(t, s, "other").CreateToken(ctx, store.NewToken{Scope: dmarcd.ScopeRead, Hash: foreign}))(t)
		if err := s.EnsureToken(ctx, foreign); !errors.Is(err, dmarcd.ErrConflict) {
			t.Errorf("a token of another team: got %v, want ErrConflict", err)
		}
	})
}

func TestPurgeRemovesWhatWasDeleted(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, clock := t.Context(), newClock()
		s := db.Open(t, store.Options{Now: clock.Now})
		team := newTeam(t, s, "a")
		for name, days := range map[string]int{"gone.example": 2 * 500, "kept.example": 5} {
			addDomain(t, team, name)
			var counts []dmarcd.DayCount
			for day := range days {
				counts = append(counts, dmarcd.DayCount{Day: dmarcd.Day(day), Summary: dmarcd.Summary{Compliant: 1}})
			}
			storetest.Count(t, team, name, counts...)
			for i := range 3 {
				check := facts.Check{At: clock.advance(time.Second), Conclusive: true, Record: fmt.Sprint(i)}
				musttest.Get(team.SaveCheck(ctx, name, check, dmarcd.Plan{Next: clock.Now()}))(t)
			}
		}
		gone := musttest.Get(team.Domain(ctx, "gone.example"))(t)
		musttest.Do(t, team.DeleteDomain(ctx, "gone.example"))
		if steps := storetest.All(t, s.Purge); steps < 3 {
			t.Errorf("purged in %d steps: the steps are not small", steps)
		}
		if strings.Contains(db.Dump(t), fmt.Sprint(int64(gone.ID))) {
			t.Error("rows of the deleted domain are left")
		}
		if sum, err := team.Summary(ctx, dmarcd.Days{}); err != nil || sum.Compliant != 5 {
			t.Errorf("the other domain's sum is %+v, %v", sum, err)
		}
	})
}

func TestBackup(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)
	s := db.Open(t, store.Options{})
	addVictim(t, s)
	before := db.Dump(t)
	musttest.Do(t, s.AddSpooled(t.Context(), "1", "", []byte("{}"), 8, strings.NewReader("not kept")))
	file := filepath.Join(t.TempDir(), "backup.db")
	musttest.Do(t, s.Backup(t.Context(), file))
	copied := storetest.DB{Engine: "sqlite", DSN: file}
	if err := copied.Open(t, store.Options{}).CheckSchema(t.Context()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(before, copied.Dump(t)); diff != "" {
		t.Errorf("the backup differs (-database +backup):\n%s", diff)
	}
	if content := musttest.Get(os.ReadFile(file))(t); bytes.Contains(content, []byte("not kept")) {
		t.Error("the backup has mail of the spool")
	}
	if err := s.Backup(t.Context(), file); err == nil {
		t.Error("a backup overwrote a file")
	}
	info := musttest.Get(os.Stat(file))(t)
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("the backup has mode %o, want 600: it holds what the database holds", got)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".dmarcd-backup-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestBackupOfPostgreSQLIsRejected(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	s := storetest.Postgres(t).Open(t, store.Options{})
	if err := s.Backup(t.Context(), filepath.Join(t.TempDir(), "backup.db")); !errors.Is(err, dmarcd.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
}

func TestQueriesAreNotCompiled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	s := storetest.Postgres(t).Open(t, store.Options{})
	inTx, inSnapshot, err := s.SettingInTransactions(t.Context(), "jit")
	if err != nil || inTx != "off" || inSnapshot != "off" {
		t.Errorf("got jit = %q in a transaction and %q in a snapshot, %v, want off", inTx, inSnapshot, err)
	}
}

// withSettings adds pairs of names and values to the query of a URL.
func withSettings(t *testing.T, dsn string, settings ...string) string {
	t.Helper()
	u := musttest.Get(url.Parse(dsn))(t)
	query := u.Query()
	for i := 0; i < len(settings); i += 2 {
		query.Set(settings[i], settings[i+1])
	}
	u.RawQuery = query.Encode()
	return u.String()
}

func TestTemporaryErrors(t *testing.T) {
	t.Parallel()
	t.Run("an SQLite file locked by another process", func(t *testing.T) {
		t.Parallel()
		if testing.Short() {
			return
		}
		db := storetest.SQLite(t)
		s := db.Open(t, store.Options{})
		team := newTeam(t, s, "a")
		raw := db.SQL(t)
		conn := musttest.Get(raw.Conn(t.Context()))(t)
		defer func() { _ = conn.Close() }()
		musttest.Get(conn.ExecContext(t.Context(), `BEGIN EXCLUSIVE`))(t)
		if _, err := team.AddDomain(t.Context(), "example.com", time.Time{}); !errors.Is(err, dmarcd.ErrTemporary) {
			t.Errorf("got %v, want ErrTemporary", err)
		}
		if _, err := team.Domains(t.Context(), "", 1); err != nil {
			t.Errorf("a reader waited for a writer: %v", err)
		}
	})
	t.Run("no PostgreSQL there", func(t *testing.T) {
		t.Parallel()
		_, err := store.Open(t.Context(), "postgres://unknown:hunter2@127.0.0.1:1/none", store.Options{})
		if !errors.Is(err, dmarcd.ErrTemporary) {
			t.Errorf("got %v, want ErrTemporary", err)
		}
		if strings.Contains(fmt.Sprint(err), "hunter2") {
			t.Errorf("the password is in the error: %v", err)
		}
	})
	t.Run("a PostgreSQL that rejects every login", func(t *testing.T) {
		t.Parallel()
		if testing.Short() {
			return
		}
		dsn := musttest.Get(url.Parse(storetest.Postgres(t).DSN))(t)
		dsn.User = url.User("no_such_role")
		if _, err := store.Open(t.Context(), dsn.String(), store.Options{}); !errors.Is(err, dmarcd.ErrTemporary) {
			t.Errorf("got %v, want ErrTemporary", err)
		}
	})
	t.Run("PostgreSQL rows that stay locked", func(t *testing.T) {
		t.Parallel()
		if testing.Short() {
			return
		}
		db := storetest.Postgres(t)
		newTeam(t, db.Open(t, store.Options{}), "a")
		s := musttest.Get(store.Open(t.Context(), withSettings(t, db.DSN, "statement_timeout", "300", "lock_timeout", "100ms"), store.Options{}))(t)
		t.Cleanup(func() { _ = s.Close() }) // nothing was written
		lock := musttest.Get(db.SQL(t).BeginTx(t.Context(), nil))(t)
		defer func() { _ = lock.Rollback() }()
		musttest.Get(lock.ExecContext(t.Context(), `LOCK TABLE teams`))(t)
		_, err := s.TeamByName(t.Context(), "a")
		if !errors.Is(err, dmarcd.ErrTemporary) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("outside a transaction: got %v, want ErrTemporary after statement_timeout", err)
		}
		_, err = s.CreateTeam(t.Context(), "b", false)
		if !errors.Is(err, dmarcd.ErrTemporary) || !strings.Contains(err.Error(), "lock timeout") {
			t.Errorf("inside: got %v, want ErrTemporary after lock_timeout", err)
		}
	})
	t.Run("a timeout that is none", func(t *testing.T) {
		t.Parallel()
		_, err := store.Open(t.Context(), "postgres://127.0.0.1:1/none?lock_timeout=soon", store.Options{})
		if err == nil || !strings.Contains(err.Error(), `lock_timeout: "soon" must be`) {
			t.Errorf("got %v, want what the setting must be", err)
		}
	})
	t.Run("a folder that is not there", func(t *testing.T) {
		t.Parallel()
		_, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "missing", "dmarcd.db"), store.Options{})
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v, want one about the missing folder", err)
		}
	})
}

func TestSQLiteSettings(t *testing.T) {
	t.Parallel()
	db := storetest.EmptySQLite(t)
	s := db.Open(t, store.Options{})
	info, err := os.Stat(db.DSN)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	// A dangling foreign key is rejected: the setting reached the connection that writes.
	if _, err := s.Team(4711).AddDomain(t.Context(), "example.com", time.Time{}); err == nil {
		t.Error("a domain of no team was stored")
	}
}

// TestViewOfTheInstallation has two teams, and a user who is a member of both.
func TestViewOfTheInstallation(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		ctx := in.Context()
		in.add(ours)
		in.wantReceived("stored", report("1", ours, storetest.Passed(ours, 5)))
		other := musttest.Get(in.store.CreateTeam(ctx, "b", false))(in)
		token := musttest.Get(in.store.Team(other.ID).CreateToken(ctx, store.NewToken{Name: "ci", Scope: dmarcd.ScopeRead, Hash: [32]byte{1}}))(in)
		var user dmarcd.SignIn
		for i, team := range []dmarcd.TeamID{in.team.ID(), other.ID} {
			hash := [32]byte{2, byte(i)}
			in.must(in.store.CreateInvitation(ctx, hash, dmarcd.Invitation{Team: team, Role: dmarcd.RoleEditor, ExpiresAt: in.clock.Now().Add(dmarcd.InvitationLife)}))
			user = musttest.Get(in.store.UseInvitation(ctx, hash, dmarcd.Claim{User: user.ID, Email: "a@example.com", PasswordHash: "x"}))(in)
		}

		sizes := musttest.Get(in.store.TeamSizes(ctx, dmarcd.Days{}))(in)
		if len(sizes) != 2 || sizes[0].Usage[dmarcd.QuotaDomains] != 1 || sizes[0].Members != 1 || sizes[0].Messages != 5 || sizes[0].Usage[dmarcd.QuotaStored] <= 0 ||
			sizes[1].Usage[dmarcd.QuotaDomains] != 0 || sizes[1].Members != 1 || sizes[1].Messages != 0 || sizes[1].Usage[dmarcd.QuotaStored] != 0 {
			in.Errorf("the sizes of the teams are %+v", sizes)
		}
		if got := sizes[0]; got.Stages[store.Unknown] != 1 || got.Grades[store.Unknown] != 1 || got.Mail != (dmarcd.MailCounts{}) || len(sizes[1].Stages) != 0 {
			in.Errorf("before the first posture: got %+v, want one domain of unknown stage and grade", got)
		}
		savePosture(in, in.team, ours, dmarcd.Posture{Stage: dmarcd.StageEnforced, MailCounts: dmarcd.MailCounts{Messages: 5, Yours: 4, YoursPassing: 3}})
		if got := musttest.Get(in.store.TeamSizes(ctx, dmarcd.Days{}))(in)[0]; got.Stages["enforced"] != 1 || got.Stages[store.Unknown] != 0 ||
			got.Mail != (dmarcd.MailCounts{Messages: 5, Yours: 4, YoursPassing: 3}) {
			in.Errorf("with a posture: got %+v, want one enforced domain", got)
		}
		stored := musttest.Get(in.store.StoredBytes(ctx))(in)
		if want := sizes[0].Usage[dmarcd.QuotaStored]; stored != want {
			in.Errorf("all teams have stored %d bytes, want %d", stored, want)
		}
		memberships := musttest.Get(in.store.AllMemberships(ctx))(in)
		if of := memberships[user.ID]; len(of) != 2 || of[0].Team.Name != "a" || of[1].Team.Name != "b" {
			in.Errorf("the user is a member of %+v", of)
		}
		if found, err := in.store.TeamByID(ctx, other.ID); err != nil || found != other {
			in.Errorf("got %+v, %v, want %+v", found, err, other)
		}
		if found, err := in.store.TeamOfToken(ctx, token.ID); err != nil || found != other.ID {
			in.Errorf("the token is of %s, %v, want %s", found, err, other.ID)
		}
		if _, recorded, err := in.store.ReportDomain(ctx); err != nil || recorded {
			in.Errorf("a report domain is recorded: %t, %v", recorded, err)
		}
		for _, domain := range []string{"reports.example", "other.example"} {
			in.must(in.store.SetReportDomain(ctx, domain))
			if got, recorded, err := in.store.ReportDomain(ctx); err != nil || !recorded || got != domain {
				in.Errorf("got %q, %t, %v, want %s", got, recorded, err, domain)
			}
		}
	})
}
