package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

const (
	killVariable = "DMARCD_E2E_KILLS"
	defaultKills = 8
	writers      = 4
)

// kills returns how often the process is killed on each engine.
func kills(t *testing.T) int {
	t.Helper()
	text := os.Getenv(killVariable)
	if text == "" {
		return defaultKills
	}
	count, err := strconv.Atoi(text)
	if err != nil || count < 1 {
		t.Fatalf("%s: got %q want a number from 1", killVariable, text)
	}
	return count
}

// ledger records the last answer about each domain. It is safe for concurrent use.
type ledger struct {
	mu       sync.Mutex
	promised map[string]promise
}

type promise int

const (
	unanswered promise = iota // a request was in progress
	present                   // answered 201
	gone                      // answered 204
)

func (l *ledger) note(name string, p promise) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.promised[name] = p
}

// write adds and deletes domains until the server no longer answers. It deletes every
// second one, and adds some of these again.
func (l *ledger) write(s *server, round, writer int) {
	send := func(r request, name string, want int, result promise) bool {
		l.note(name, unanswered)
		a, err := s.try(r)
		if err != nil {
			return false // killed; the request may have succeeded
		}
		if a.status != want {
			s.in.t.Errorf("%s %s: got status %d want %d: %s", r.method, name, a.status, want, a.body)
			return false
		}
		l.note(name, result)
		return true
	}
	for i := 0; ; i++ {
		name := fmt.Sprintf("n%d-w%d-r%d.example", i, writer, round)
		deletion := request{method: http.MethodDelete, path: "/domains/" + name, token: s.in.token}
		ok := send(adding(s.in.token, name), name, http.StatusCreated, present)
		if ok && i%2 == 1 {
			ok = send(deletion, name, http.StatusNoContent, gone)
		}
		if ok && i%4 == 3 {
			ok = send(adding(s.in.token, name), name, http.StatusCreated, present)
		}
		if !ok {
			return
		}
	}
}

// check compares the ledger with the list, and resolves unanswered requests.
func (l *ledger) check(t *testing.T, list []string) {
	t.Helper()
	for name, p := range l.promised {
		there := slices.Contains(list, name)
		switch {
		case p == present && !there:
			t.Errorf("%s was answered 201 and is not there", name)
		case p == gone && there:
			t.Errorf("%s was answered 204 and is still there", name)
		case p == unanswered && there:
			l.promised[name] = present
		case p == unanswered:
			l.promised[name] = gone
		}
	}
}

// TestKillLosesNothingThatWasAnswered kills the process at random times while several clients
// write.
func TestKillLosesNothingThatWasAnswered(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		l := &ledger{promised: map[string]promise{}}
		s := in.serve()
		for round := range kills(t) {
			var writing sync.WaitGroup
			for writer := range writers {
				writing.Go(func() { l.write(s, round, writer) })
			}
			// The time must be random, so there is no condition to wait for.
			<-time.After(time.Duration(20+rand.IntN(300)) * time.Millisecond)
			s.Kill()
			writing.Wait()
			s = in.serve()
			l.check(t, s.list())
		}
		promises := map[promise]int{}
		for _, p := range l.promised {
			promises[p]++
		}
		if promises[present] == 0 || promises[gone] == 0 {
			t.Errorf("got %d domains added and %d deleted, want some of both", promises[present], promises[gone])
		}
		t.Logf("%d domains added, %d deleted", promises[present], promises[gone])
	})
}
