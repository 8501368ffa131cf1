package spool_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/intake/spool"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

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
