package spool_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/spool"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestCrashingMailIsRejected makes Handle panic for one message of a batch, within one
// process and with a restart after each attempt.
func TestCrashingMailIsRejected(t *testing.T) {
	t.Parallel()
	onFilesAndSQLite(t, func(t *testing.T, on storage) {
		tests := []struct {
			name     string
			restarts bool
		}{{"in one process", false}, {"over restarts", true}}
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				on := on.fresh(t)
				synctest.Test(t, func(t *testing.T) {
					folder := t.TempDir()
					r := newRecorder(t)
					r.answer = func(text string, _ dmarcd.TeamID, _ int) error {
						if text == "bad" {
							panic("a bug")
						}
						return nil
					}
					s := open(t, on.configuration(t, folder))
					for _, text := range []string{"one", "bad", "two"} {
						mustPut(t, s, text)
					}
					stop := work(t, s, r)
					for range 10 {
						time.Sleep(3 * time.Second)
						synctest.Wait()
						if test.restarts {
							stop()
							musttest.Do(t, s.Close())
							s = open(t, on.configuration(t, folder))
							stop = work(t, s, r)
						}
					}
					time.Sleep(time.Minute)
					synctest.Wait()
					stop()
					if diff := cmp.Diff([]string{"one for team_7", "two for team_7"}, slices.Compact(r.all())); diff != "" {
						t.Errorf("stored (-want +got):\n%s", diff)
					}
					if diff := cmp.Diff([]string{"bad for team_7"}, r.rejects); diff != "" {
						t.Errorf("rejected (-want +got):\n%s", diff)
					}
					if got := r.count["bad for team_7"]; got != 3 {
						t.Errorf("got %d attempts want 3", got)
					}
					musttest.Do(t, s.Close())
					if got := files(t, folder, ""); len(got) != 1 {
						t.Errorf("got the files %q want the lock alone", got)
					}
				})
			})
		}
	})
}

// TestMailThatCannotBeRejected makes Reject panic as well.
func TestMailThatCannotBeRejected(t *testing.T) {
	t.Parallel()
	onFilesAndSQLite(t, func(t *testing.T, on storage) {
		synctest.Test(t, func(t *testing.T) {
			folder := t.TempDir()
			r := newRecorder(t)
			r.answer = func(string, dmarcd.TeamID, int) error { panic("a bug") }
			s := open(t, on.configuration(t, folder))
			mustPut(t, s, "unrejectable")
			stop := work(t, s, r)
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			stop()
			if got := len(r.rejects); got != 1 {
				t.Errorf("got %d attempts to reject want 1", got)
			}
			if got := on.aside(t, folder); got != 1 {
				t.Errorf("got %d messages set aside want 1", got)
			}
			if entries, bytes := s.Stats(); entries != 0 || bytes != 0 {
				t.Errorf("got %d entries, %d bytes want none", entries, bytes)
			}
		})
	})
}

// TestProcessEndsWhileAMailIsHandled simulates a crash: it copies the folder while a
// message is in progress and opens the copy.
func TestProcessEndsWhileAMailIsHandled(t *testing.T) {
	t.Parallel()
	for _, stage := range []string{"verify", "store"} {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				folder := t.TempDir()
				s := open(t, configuration(folder))
				mustPut(t, s, "bad")
				var attempts int
				for {
					r := newRecorder(t)
					kill := make(chan struct{})
					if stage == "verify" {
						r.verify = func(string) { <-kill }
					} else {
						r.answer = func(string, dmarcd.TeamID, int) error { <-kill; return nil }
					}
					stop := work(t, s, r)
					time.Sleep(10 * time.Second)
					synctest.Wait()
					left := filepath.Join(t.TempDir(), "left")
					musttest.Do(t, os.CopyFS(left, os.DirFS(folder)))
					close(kill)
					synctest.Wait()
					stop()
					musttest.Do(t, s.Close())
					if len(r.rejects) > 0 {
						break
					}
					if attempts++; attempts > 3 {
						t.Fatal("got a fourth attempt want a rejection")
					}
					if stage == "verify" && attempts == 3 {
						// The third attempt skips verification, so it succeeds.
						if diff := cmp.Diff([]string{"bad for team_7"}, r.all()); diff != "" {
							t.Errorf("(-want +got):\n%s", diff)
						}
						return
					}
					folder = left
					s = open(t, configuration(folder))
				}
				if attempts != 3 {
					t.Errorf("got %d attempts want 3", attempts)
				}
			})
		})
	}
}

// TestVerificationPanics checks that the message is stored with an unknown result.
func TestVerificationPanics(t *testing.T) {
	t.Parallel()
	onFilesAndSQLite(t, func(t *testing.T, on storage) {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, on.configuration(t, t.TempDir()))
			r := newRecorder(t)
			r.verify = func(string) { panic("a bug") }
			mustPut(t, s, "mail")
			entry := s.List()[0]
			stop := work(t, s, r)
			synctest.Wait()
			stop()
			if diff := cmp.Diff([]string{"mail for team_7"}, r.all()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if v := entry.Authentication; v.Genuine != dmarcd.GenuineUnknown || !strings.Contains(v.Reason, "internal error") {
				t.Errorf("got the authentication result %+v want unknown", v)
			}
		})
	})
}

// fillVariable contains the folder that a child process of TestKill fills.
const fillVariable = "DMARCD_TEST_FILL_SPOOL"

// fill commits messages until it is killed, and prints the number of each.
func fill(folder string) {
	config := configuration(folder)
	config.Limits = spool.Limits{Bytes: 1 << 30, Entries: 1 << 20}
	s, err := spool.Open(config)
	if err != nil {
		panic(err)
	}
	next := len(s.List())
	for ; ; next++ {
		if err := put(s, killedMail(next), envelope("a")); err != nil {
			panic(err)
		}
		fmt.Println(next)
	}
}

// killedMail returns the n-th message; sizes vary.
func killedMail(n int) string {
	return fmt.Sprintf("Subject: %d\r\n\r\n%s", n, strings.Repeat("x", n*997%20_000))
}

// TestKill repeatedly kills a process that commits messages, and checks that every message
// it reported as committed exists and is complete. It does not cover power loss. It is not
// parallel: until it executes its program, a new process has the open files of the others,
// and holds their locks.
func TestKill(t *testing.T) { //nolint:paralleltest // see above
	folder := t.TempDir()
	program := musttest.Get(os.Executable())(t)
	committed := 0
	for round := range 10 {
		command := exec.Command(program)
		command.Env = append(os.Environ(), fillVariable+"="+folder)
		output := musttest.Get(command.StdoutPipe())(t)
		musttest.Do(t, command.Start())
		// The child is killed at a different point in each round.
		lines := bufio.NewScanner(output)
		for range 3 + 7*round%11 {
			if !lines.Scan() {
				t.Fatalf("round %d: the child ended by itself: %v", round, command.Wait())
			}
			committed++
		}
		musttest.Do(t, command.Process.Kill())
		for lines.Scan() {
			committed++
		}
		_ = command.Wait() // killed

		s := musttest.Get(spool.Open(configuration(folder)))(t)
		entries := s.List()
		// In each round, the kill may come between a commit and its report.
		if got := len(entries); got < committed || got > committed+round+1 {
			t.Errorf("round %d: got %d messages want %d to %d", round, got, committed, committed+round+1)
		}
		for n, entry := range entries {
			if got, want := contents(t, entry), killedMail(n); got != want {
				t.Errorf("message %d: got %d bytes want %d", n, len(got), len(want))
			}
		}
		if got := files(t, folder, ".damaged"); len(got) != 0 {
			t.Errorf("got %q want no damaged files", got)
		}
		musttest.Do(t, s.Close())
	}
}
