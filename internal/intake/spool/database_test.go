package spool_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/spool"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// aside returns the number of messages that were set aside.
func (on storage) aside(t *testing.T, folder string) (n int) {
	t.Helper()
	if on.create == nil {
		return len(files(t, folder, ".damaged"))
	}
	musttest.Do(t, on.db.SQL(t).QueryRowContext(t.Context(), `SELECT COUNT(*) FROM spool WHERE crashes > 3`).Scan(&n))
	return n
}

// rows returns the number of rows in the tables of messages.
func (on storage) rows(t *testing.T) (n int) {
	t.Helper()
	query := `SELECT (SELECT COUNT(*) FROM spool) + (SELECT COUNT(*) FROM spool_chunks)`
	musttest.Do(t, on.db.SQL(t).QueryRowContext(t.Context(), query).Scan(&n))
	return n
}

var errCutOff = errors.New("the database cannot be reached")

// replica is the database of a process that can be cut off, as if the process were paused.
type replica struct {
	spool.Database
	cutOff atomic.Bool
}

func (r *replica) HoldSpool(ctx context.Context, lease time.Duration) error {
	if r.cutOff.Load() {
		return errCutOff
	}
	return r.Database.HoldSpool(ctx, lease)
}

func (r *replica) SetSpooledCrashes(ctx context.Context, names []string, crashes int) error {
	if r.cutOff.Load() {
		return errCutOff
	}
	return r.Database.SetSpooledCrashes(ctx, names, crashes)
}

// forgetful loses the answer to the first claim of messages.
type forgetful struct {
	spool.Database
	lost bool
}

func (f *forgetful) ClaimSpooled(ctx context.Context, maxCrashes, limit int, add func(string, []byte, int64, int)) error {
	if f.lost {
		return f.Database.ClaimSpooled(ctx, maxCrashes, limit, add)
	}
	err := f.Database.ClaimSpooled(ctx, maxCrashes, limit, func(string, []byte, int64, int) { f.lost = true })
	if f.lost {
		err = errCutOff
	}
	return err
}

// TestLostClaim lets a replica claim messages and lose the answer, while it has others.
func TestLostClaim(t *testing.T) {
	t.Parallel()
	on := onSQLite(t)
	synctest.Test(t, func(t *testing.T) {
		dead, _ := on.replica(t)
		config := on.configuration(t, t.TempDir())
		config.Database = &forgetful{Database: config.Database}
		s := open(t, config)
		mustPut(t, s, "own")
		mustPut(t, dead, "claimed")
		r := newRecorder(t)
		release := make(chan struct{})
		r.answer = func(text string, _ dmarcd.TeamID, _ int) error {
			if text == "own" {
				<-release
			}
			return nil
		}
		defer work(t, s, r)()
		time.Sleep(time.Minute)
		close(release)
		synctest.Wait()
		if diff := cmp.Diff([]string{"claimed for team_7", "own for team_7"}, r.all()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if entries, bytes := s.Stats(); entries != 0 || bytes != 0 || on.rows(t) != 0 {
			t.Errorf("got %d entries, %d bytes, %d rows want none", entries, bytes, on.rows(t))
		}
	})
}

// onSQLite returns a storage in SQLite.
func onSQLite(t *testing.T) storage { return storage{create: storetest.SQLite}.fresh(t) }

// replica opens a spool of another process on the database.
func (on storage) replica(t *testing.T) (*spool.Spool, *replica) {
	t.Helper()
	config := on.configuration(t, t.TempDir())
	r := &replica{Database: config.Database}
	config.Database = r
	return open(t, config), r
}

// TestLiveReplicaRetainsItsMail checks that an idle replica leaves the messages of a live one.
func TestLiveReplicaRetainsItsMail(t *testing.T) {
	t.Parallel()
	on := onSQLite(t)
	synctest.Test(t, func(t *testing.T) {
		a, _ := on.replica(t)
		b, _ := on.replica(t)
		first, second := newRecorder(t), newRecorder(t)
		release := make(chan struct{})
		first.answer = func(string, dmarcd.TeamID, int) error { <-release; return nil }
		defer work(t, b, second)()
		defer work(t, a, first)()
		for i := range 3 {
			mustPut(t, a, fmt.Sprint("mail ", i))
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if got := second.all(); len(got) != 0 {
			t.Errorf("got %q taken from a live replica want nothing", got)
		}
		close(release)
		synctest.Wait()
		if got := len(first.all()); got != 3 {
			t.Errorf("got %d messages stored want 3", got)
		}
		if got := on.rows(t); got != 0 {
			t.Errorf("got %d rows left want none", got)
		}
	})
}

// TestReplicaDies cuts a replica off while it handles a message, again and again. Others
// take its messages over, and count a crash of that message only.
func TestReplicaDies(t *testing.T) {
	t.Parallel()
	for _, stage := range []string{"verify", "store"} {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			on := onSQLite(t)
			synctest.Test(t, func(t *testing.T) {
				kill, goOn := context.WithCancel(t.Context())
				var stops []func()
				defer func() {
					goOn()
					for _, stop := range stops {
						stop()
					}
				}()
				block := func(text string) {
					if text == "bad" {
						<-kill.Done()
					}
				}
				s, connection := on.replica(t)
				mustPut(t, s, "bad")
				recorders := []*recorder{}
				for attempt := 1; ; attempt++ {
					r := newRecorder(t)
					recorders = append(recorders, r)
					if stage == "verify" {
						r.verify = block
					} else {
						r.answer = func(text string, _ dmarcd.TeamID, _ int) error { block(text); return nil }
					}
					stops = append(stops, work(t, s, r))
					time.Sleep(time.Minute) // others are taken for dead, and suspects wait
					synctest.Wait()
					if stage == "verify" && attempt == 3 {
						break // the third attempt skips verification, so it succeeds
					}
					if len(r.rejects) > 0 {
						if attempt != 4 {
							t.Errorf("got a rejection at attempt %d want 4", attempt)
						}
						break
					}
					if attempt > 4 {
						t.Fatal("got no rejection")
					}
					mustPut(t, s, fmt.Sprint("good ", attempt))
					synctest.Wait()
					connection.cutOff.Store(true)
					s, connection = on.replica(t)
				}
				goOn() // those that were cut off go on
				synctest.Wait()
				stored := make(map[string]bool)
				for _, r := range recorders {
					for _, name := range r.all() {
						stored[name] = true
					}
				}
				for i := 1; i < len(recorders); i++ {
					if name := fmt.Sprintf("good %d for team_7", i); !stored[name] {
						t.Errorf("got %v stored want %q among them", stored, name)
					}
				}
				if got := on.rows(t); got != 0 {
					t.Errorf("got %d rows left want none", got)
				}
			})
		})
	}
}

// TestWaitingMailOfADeadReplica checks that each message that a dead replica had accepted
// is handled by one of the others, and none counts a crash.
func TestWaitingMailOfADeadReplica(t *testing.T) {
	t.Parallel()
	on := onSQLite(t)
	synctest.Test(t, func(t *testing.T) {
		dead, _ := on.replica(t) // it has no worker, so it does not extend its lease
		var want []string
		for i := range 30 {
			mustPut(t, dead, fmt.Sprintf("mail %02d", i))
			want = append(want, fmt.Sprintf("mail %02d for team_7", i))
		}
		r := newRecorder(t)
		for range 2 {
			s, _ := on.replica(t)
			defer work(t, s, r)()
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := r.all(); len(got) != 0 {
			t.Errorf("got %d messages after 10 s want the replica not taken for dead yet", len(got))
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if diff := cmp.Diff(want, r.all()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		// It was only slow: its messages are gone, which is no error.
		late := newRecorder(t)
		for _, e := range dead.List() {
			if mail, err := e.Open(); err != nil {
				t.Errorf("its copy: %v", err)
			} else {
				_ = mail.Close()
			}
		}
		stop := work(t, dead, late)
		time.Sleep(time.Second)
		synctest.Wait()
		stop()
		if entries, bytes := dead.Stats(); entries != 0 || bytes != 0 {
			t.Errorf("got %d entries, %d bytes want none", entries, bytes)
		}
		if got := on.rows(t); got != 0 {
			t.Errorf("got %d rows left want none", got)
		}
	})
}

// TestGoneMailIsForgotten lets a replica claim messages that another one, which was taken
// for dead, removes.
func TestGoneMailIsForgotten(t *testing.T) {
	t.Parallel()
	on := onSQLite(t)
	synctest.Test(t, func(t *testing.T) {
		s, _ := on.replica(t)
		mustPut(t, s, "mail")
		musttest.Do(t, s.Close())
		s, _ = on.replica(t) // claims it
		musttest.Get(on.db.SQL(t).ExecContext(t.Context(), `DELETE FROM spool`))(t)
		r := newRecorder(t)
		defer work(t, s, r)()
		synctest.Wait()
		if entries, _ := s.Stats(); entries != 0 || len(r.all()) != 0 {
			t.Errorf("got %d entries, stored %q want none", entries, r.all())
		}
	})
}

// TestReplicasShareTheSpace floods one replica: another one has only what is left, and
// leaves space for other teams.
func TestReplicasShareTheSpace(t *testing.T) {
	t.Parallel()
	on := onSQLite(t)
	spools := make([]*spool.Spool, 2)
	fill := func(s *spool.Spool) (n int) {
		for put(s, "0123456789", mailTo("192.0.2.1", 1)) == nil {
			n++
		}
		return n
	}
	var taken []int
	for i := range spools {
		config := on.configuration(t, t.TempDir())
		config.Limits = spool.Limits{Bytes: 200, Entries: 100}
		spools[i] = open(t, config)
		taken = append(taken, fill(spools[i]))
	}
	if diff := cmp.Diff([]int{10, 0}, taken); diff != "" {
		t.Errorf("messages of the flood (-want +got):\n%s", diff)
	}
	if err := put(spools[1], "0123456789", mailTo("198.51.100.1", 2)); err != nil {
		t.Errorf("a message of another team and network: %v", err)
	}
}

// TestFilesMoveToTheDatabase opens a folder with messages in files.
func TestFilesMoveToTheDatabase(t *testing.T) {
	t.Parallel()
	on := onSQLite(t)
	folder := t.TempDir()
	s := open(t, configuration(folder))
	mustPut(t, s, "one")
	mustPut(t, s, "two")
	want := s.List()[0].Envelope
	musttest.Do(t, s.Close())
	s = open(t, on.configuration(t, folder))
	if got := files(t, folder, ".mail"); len(got) != 0 {
		t.Errorf("got the files %q want none", got)
	}
	if diff := cmp.Diff([]string{"one", "two"}, texts(t, s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, s.List()[0].Envelope, compareAddresses); diff != "" {
		t.Errorf("envelope (-want +got):\n%s", diff)
	}
	musttest.Do(t, s.Close())
	if diff := cmp.Diff([]string{"one", "two"}, texts(t, open(t, on.configuration(t, t.TempDir())))); diff != "" {
		t.Errorf("in the folder of another replica (-want +got):\n%s", diff)
	}
}

// TestDatabaseFails checks that a message is not accepted without the database.
func TestDatabaseFails(t *testing.T) {
	t.Parallel()
	on := onSQLite(t)
	folder := t.TempDir()
	config := on.configuration(t, folder)
	config.Database = unwritable{config.Database}
	s := open(t, config)
	if err := put(s, "mail", envelope("a")); !errors.Is(err, errCutOff) || !errors.Is(err, dmarcd.ErrTemporary) {
		t.Errorf("got %v want %v, temporary", err, errCutOff)
	}
	if entries, bytes := s.Stats(); entries != 0 || bytes != 0 {
		t.Errorf("got %d entries, %d bytes want none", entries, bytes)
	}
	if got := len(files(t, folder, ".draft")) + on.rows(t); got != 0 {
		t.Errorf("got %d drafts and rows want none", got)
	}
}

// unwritable stores messages, but the answer is lost.
type unwritable struct{ spool.Database }

func (u unwritable) AddSpooled(ctx context.Context, name, charged string, envelope []byte, size int64, content io.Reader) error {
	return errors.Join(errCutOff, u.Database.AddSpooled(ctx, name, charged, envelope, size, content))
}
