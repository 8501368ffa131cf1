package adversary_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// chore is something that the victim does again and again.
type chore struct {
	name   string
	method string
	path   string
	media  string
	want   int
	body   func(n int) []byte
	rare   bool // done once in five rounds: it is expensive on purpose
}

// chores are what a team does all day.
func (v *tenant) chores() []chore {
	return []chore{
		{"list domains", http.MethodGet, "/domains", "", http.StatusOK, nil, false},
		{"read the summary", http.MethodGet, "/reports", "", http.StatusOK, nil, false},
		{"upload a report", http.MethodPost, "/reports", "application/octet-stream", http.StatusCreated, func(n int) []byte {
			return []byte(about("victim.test", fmt.Sprintf("chore %d", n), 1, 0).xml())
		}, false},
		{"add a domain", http.MethodPost, "/domains", "application/json", http.StatusCreated, func(n int) []byte {
			return fmt.Appendf(nil, `{"domain": "chore%d.victim.test"}`, n)
		}, false},
		{"sign in", http.MethodPost, "/app/sign-in", "application/x-www-form-urlencoded", http.StatusSeeOther, func(int) []byte {
			return []byte(url.Values{"email": {v.email}, "password": {password}}.Encode())
		}, true},
	}
}

// serial numbers what all tests send, so that each of it is new.
var serial atomic.Int64

// watch lets the victim work while an attack runs, and fails the test where the
// victim gets an error or has to wait, or the daemon needs too much memory. It
// returns when the attack does and the victim has finished a round.
func (a *arena) watch(name string, attack func()) {
	a.t.Helper()
	a.d.Memory.Reset()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var working sync.WaitGroup
	slowest := map[string]time.Duration{}
	faults := map[string]string{}
	before, uploads := a.victim.counted("").Total, int64(0)
	working.Go(func() {
		for round := 0; round == 0 || ctx.Err() == nil; round++ {
			n := int(serial.Add(1))
			for _, c := range a.victim.chores() {
				if !a.d.Running() {
					return
				}
				if c.rare && round%5 != 0 {
					continue
				}
				took, fault := a.victim.work(c, n)
				slowest[c.name] = max(slowest[c.name], took)
				if fault != "" && faults[c.name] == "" {
					faults[c.name] = fault
				}
				if fault == "" && c.path == "/reports" && c.method == http.MethodPost {
					uploads++
				}
			}
			a.rounds.Add(1)
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond): // people pause
			}
		}
	})
	began := time.Now()
	attack()
	took := time.Since(began)
	cancel()
	working.Wait()
	for _, c := range a.victim.chores() {
		if faults[c.name] != "" {
			a.t.Errorf("%s: the victim cannot %s: %s", name, c.name, faults[c.name])
			continue
		}
		quiet := func() time.Duration { took, _ := a.victim.work(c, int(serial.Add(1))); return took }
		if limit := a.limit(answerLimit, slowest[c.name], quiet); slowest[c.name] > limit {
			a.t.Errorf("%s: the victim waited for %v to %s, want at most %v", name, slowest[c.name], c.name, limit)
		}
	}
	var waits []string
	for chore, wait := range slowest {
		waits = append(waits, fmt.Sprintf("%s %v", chore, wait.Round(time.Millisecond)))
	}
	slices.Sort(waits)
	a.t.Logf("%s: took %v, at most %d MiB; the victim waited at most: %s", name, took.Round(time.Millisecond), a.d.Memory.Peak()>>20, strings.Join(waits, ", "))
	a.survives(name)
	if got := a.victim.counted("").Total; got < before+uploads {
		a.t.Errorf("%s: the victim has %d messages counted want at least %d", name, got, before+uploads)
	}
}

// asSlow is how many times as long as without an attack something may take on a busy machine.
const asSlow = 20

// limit returns how long something may take that took so long: the limit or, where the machine
// is busy, a multiple of what it takes now, when nothing attacks.
func (a *arena) limit(limit, took time.Duration, quiet func() time.Duration) time.Duration {
	if took <= limit || !a.d.Running() {
		return limit
	}
	for range 3 {
		limit = max(limit, asSlow*quiet())
	}
	return limit
}

// work waits until the victim has done its chores some times.
func (a *arena) work(times int64) {
	a.t.Helper()
	till := a.rounds.Load() + times
	eventually(a.t, patience, "the victim works", func() bool { return a.rounds.Load() >= till || !a.d.Running() })
}

// work does a chore once and returns how long it took and what was wrong.
func (v *tenant) work(c chore, n int) (time.Duration, string) {
	var body []byte
	if c.body != nil {
		body = c.body(n)
	}
	got, err := v.try(context.Background(), c.method, c.path, c.media, body) // the client has a timeout
	switch {
	case err != nil:
		return got.took, fmt.Sprintf("%v after %v", err, got.took)
	case got.status != c.want:
		return got.took, fmt.Sprintf("got %v after %v want %d", got, got.took, c.want)
	}
	return got.took, ""
}

// survives fails the test where the daemon is gone or has needed too much
// memory since the latest reset of its meter.
func (a *arena) survives(name string) {
	a.t.Helper()
	if a.d.Memory.Killed() {
		a.t.Fatalf("%s: the daemon was killed when it had more than %d MiB", name, memoryNet>>20)
	}
	if !a.d.Running() {
		a.t.Fatalf("%s: the daemon is gone:\n%.4000s", name, lastLines(a.d.Log(), 4000))
	}
	if got := a.d.Memory.Peak(); got > memoryLimit {
		a.t.Errorf("%s: the daemon had %d MiB resident want at most %d", name, got>>20, memoryLimit>>20)
	}
}

// lastLines returns the end of a log.
func lastLines(log string, n int) string { return log[max(0, len(log)-n):] }
