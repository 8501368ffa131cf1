package spool_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/intake/spool"
)

// fillVariable names the folder that this program fills with mails in place of running
// its tests.
const fillVariable = "DMARCD_TEST_FILL_SPOOL"

// fill commits mails until it is killed, and says so of each.
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

// killedMail is the n-th mail, of a size of its own.
func killedMail(n int) string {
	return fmt.Sprintf("Subject: %d\r\n\r\n%s", n, strings.Repeat("x", n*997%20_000))
}

// TestKill kills a process that commits mails, again and again, and wants every mail
// that it said it had to be there and whole. It shows nothing about a machine that
// loses power.
func TestKill(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	committed := 0
	for round := range 10 {
		command := exec.Command(program)
		command.Env = append(os.Environ(), fillVariable+"="+folder)
		output, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		// It is killed while it works on the next mail, at another place each time.
		lines := bufio.NewScanner(output)
		for range 3 + 7*round%11 {
			if lines.Scan() {
				committed++
			}
		}
		if err := command.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
			committed++
		}
		_ = command.Wait() // it was killed

		s, err := spool.Open(configuration(folder))
		if err != nil {
			t.Fatal(err)
		}
		entries := s.List()
		// Each kill may have come between a commit and the word about it.
		if got := len(entries); got < committed || got > committed+round+1 {
			t.Errorf("round %d: got %d mails want %d", round, got, committed)
		}
		for n, entry := range entries {
			if got, want := contents(t, entry), killedMail(n); got != want {
				t.Errorf("mail %d: got %d bytes want %d", n, len(got), len(want))
			}
		}
		if got := files(t, folder, ".damaged"); len(got) != 0 {
			t.Errorf("got %q want nothing damaged", got)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if committed == 0 {
		t.Error("no mail was committed")
	}
}
