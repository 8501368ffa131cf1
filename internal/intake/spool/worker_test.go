package spool_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/spool"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// recorder implements the functions of a Worker and records their calls.
type recorder struct {
	t *testing.T
	// answer returns the error of the n-th attempt to store a message for a team,
	// starting at 1. It may block or panic.
	answer func(text string, team dmarcd.TeamID, n int) error
	// verify may block or panic.
	verify func(text string)

	mu      sync.Mutex
	count   map[string]int
	batches [][]string
	stored  []string // "text for team", in order
	rejects []string // "text for team"
	times   []time.Time
}

func newRecorder(t *testing.T) *recorder {
	return &recorder{
		t: t, count: make(map[string]int),
		answer: func(string, dmarcd.TeamID, int) error { return nil },
		verify: func(string) {},
	}
}

func (r *recorder) Verify(_ context.Context, e *spool.Entry) dmarcd.Authentication {
	text := contents(r.t, e)
	r.verify(text)
	return dmarcd.Authentication{Genuine: dmarcd.GenuineYes, From: text}
}

func (r *recorder) Handle(_ context.Context, team dmarcd.TeamID, batch []*spool.Entry) []error {
	var texts []string
	var errs []error
	start := time.Now()
	for _, e := range batch {
		texts = append(texts, contents(r.t, e))
	}
	r.mu.Lock()
	r.batches = append(r.batches, texts)
	r.times = append(r.times, time.Now())
	r.mu.Unlock()
	for i, text := range texts {
		name := fmt.Sprint(text, " for ", team)
		r.mu.Lock()
		r.count[name]++
		n := r.count[name]
		r.mu.Unlock()
		err := r.answer(text, team, n)
		errs = append(errs, err)
		if err == nil {
			r.mu.Lock()
			r.stored = append(r.stored, name)
			r.mu.Unlock()
		}
		if v := batch[i].Authentication; v.Genuine == dmarcd.GenuineYes && v.From != text {
			r.t.Errorf("got the authentication result %+v on %q", v, text)
		}
		if time.Since(start) > 0 {
			break // tests that the rest is queued again
		}
	}
	return errs
}

func (r *recorder) Reject(_ context.Context, team dmarcd.TeamID, e *spool.Entry, reason string) error {
	text := contents(r.t, e)
	if reason == "" {
		r.t.Error("got no reason")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rejects = append(r.rejects, fmt.Sprint(text, " for ", team))
	if strings.Contains(text, "unrejectable") {
		panic("it cannot be rejected")
	}
	return nil
}

// all returns the elements of stored, sorted.
func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(slices.Values(r.stored))
}

// work runs a worker until the returned function is called.
func work(t *testing.T, s *spool.Spool, r *recorder) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	worker := &spool.Worker{Spool: s, Verify: r.Verify, Handle: r.Handle, Reject: r.Reject}
	go func() { ended <- worker.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("got %v want no error", err)
		}
	}
}

func TestWorkerTakesWhatACrashLeft(t *testing.T) {
	t.Parallel()
	onFilesAndSQLite(t, func(t *testing.T, on storage) {
		synctest.Test(t, func(t *testing.T) {
			folder := t.TempDir()
			s := open(t, on.configuration(t, folder))
			mustPut(t, s, "left")
			musttest.Do(t, s.Close())
			s = open(t, on.configuration(t, folder))
			r := newRecorder(t)
			stop := work(t, s, r)
			synctest.Wait()
			stop()
			if diff := cmp.Diff([]string{"left for team_7"}, r.all()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := files(t, folder, ".mail"); len(got) != 0 {
				t.Errorf("got %q want the message removed", got)
			}
		})
	})
}

func TestWorkerSeesACommitAtOnce(t *testing.T) {
	t.Parallel()
	onFilesAndSQLite(t, func(t *testing.T, on storage) {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, on.configuration(t, t.TempDir()))
			r := newRecorder(t)
			stop := work(t, s, r)
			defer stop()
			for i := range 3 {
				synctest.Wait() // the worker sleeps
				mustPut(t, s, fmt.Sprint("mail ", i))
				synctest.Wait() // no time passes
				if got := len(r.all()); got != i+1 {
					t.Errorf("got %d messages stored want %d", got, i+1)
				}
			}
		})
	})
}

func TestWorkerWorksInBatches(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		sizes []int
		want  []int // messages in each batch
	}{
		{"by number", make([]int, 45), []int{20, 20, 5}},
		{"by size", []int{3 << 20, 1 << 20, 1 << 20, 5 << 20, 1}, []int{2, 1, 1, 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				config := configuration(t.TempDir())
				config.Limits.Bytes = 1 << 30
				s := open(t, config)
				r := newRecorder(t)
				others := make(chan struct{})
				r.answer = func(text string, _ dmarcd.TeamID, _ int) error {
					if text == "first" {
						<-others
					}
					return nil
				}
				stop := work(t, s, r)
				defer stop()
				mustPut(t, s, "first")
				synctest.Wait()
				for _, size := range test.sizes {
					mustPut(t, s, strings.Repeat("x", size))
					synctest.Wait() // it is verified
				}
				close(others)
				synctest.Wait()
				var got []int
				for _, b := range r.batches[1:] {
					got = append(got, len(b))
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestWorkerTriesAgain(t *testing.T) {
	t.Parallel()
	onFilesAndSQLite(t, func(t *testing.T, on storage) {
		tests := []struct {
			name string
			err  error
		}{
			{"temporary", dmarcd.ErrTemporary},
			{"not known to be temporary", dmarcd.ErrInvalid},
		}
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				on := on.fresh(t)
				synctest.Test(t, func(t *testing.T) {
					s := open(t, on.configuration(t, t.TempDir()))
					mustPut(t, s, "bad")
					r := newRecorder(t)
					r.answer = func(text string, _ dmarcd.TeamID, n int) error {
						if text == "bad" && n <= 12 {
							return test.err
						}
						return nil
					}
					stop := work(t, s, r)
					defer stop()
					synctest.Wait()
					mustPut(t, s, "good")
					synctest.Wait()
					if diff := cmp.Diff([]string{"good for team_7"}, r.all()); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
					time.Sleep(30 * time.Minute)
					synctest.Wait()
					attempts := slices.Delete(slices.Clone(r.times), 1, 2) // without that of "good"
					for i := range 12 {
						if got, want := attempts[i+1].Sub(attempts[i]), min(time.Second<<i, 5*time.Minute); got != want {
							t.Errorf("attempt %d: got a delay of %s want %s", i+2, got, want)
						}
					}
					if got := texts(t, s); len(got) != 0 {
						t.Errorf("got %q want nothing left", got)
					}
				})
			})
		}
	})
}

func TestWorkerRetainsWhatWasInterrupted(t *testing.T) {
	t.Parallel()
	onFilesAndSQLite(t, func(t *testing.T, on storage) {
		folder := t.TempDir()
		s := open(t, on.configuration(t, folder))
		mustPut(t, s, "mail")
		ctx, cancel := context.WithCancel(t.Context())
		worker := &spool.Worker{
			Spool:  s,
			Verify: newRecorder(t).Verify,
			Handle: func(ctx context.Context, _ dmarcd.TeamID, batch []*spool.Entry) []error {
				cancel()
				return []error{ctx.Err()}
			},
		}
		musttest.Do(t, worker.Run(ctx))
		if diff := cmp.Diff([]string{"mail"}, texts(t, s)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		musttest.Do(t, s.Close())
		if got := append(files(t, folder, ".busy"), files(t, folder, ".crashes")...); len(got) != 0 {
			t.Errorf("got %q want no crash noted", got)
		}
	})
}

// TestEachTeamHasItsOwnAttempts sends a message to two teams; storing fails for one.
func TestEachTeamHasItsOwnAttempts(t *testing.T) {
	t.Parallel()
	onFilesAndSQLite(t, func(t *testing.T, on storage) {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, on.configuration(t, t.TempDir()))
			r := newRecorder(t)
			r.answer = func(_ string, team dmarcd.TeamID, n int) error {
				if team == 7 && n < 5 {
					return dmarcd.ErrLimit
				}
				return nil
			}
			stop := work(t, s, r)
			defer stop()
			musttest.Do(t, put(s, "mail", mailTo("192.0.2.1", 7, 8)))
			synctest.Wait()
			if diff := cmp.Diff([]string{"mail for team_8"}, r.all()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := texts(t, s); len(got) != 1 {
				t.Errorf("got %q want the message in the spool", got)
			}
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			if diff := cmp.Diff([]string{"mail for team_7", "mail for team_8"}, r.all()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := texts(t, s); len(got) != 0 {
				t.Errorf("got %q want nothing left", got)
			}
		})
	})
}
