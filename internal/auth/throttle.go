package auth

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
)

// What one source of attempts may do before it has to wait, and how long then:
// the wait doubles with each attempt.
const (
	freePerEmail   = 5
	freePerAddress = 20 // an office may have one address
	firstWait      = time.Second
	maxWait        = time.Minute
	// forgetAfter is how long attempts count.
	forgetAfter = time.Hour
	// maxTracked bounds the memory; what is fuller is emptied.
	maxTracked = 100_000
)

// ThrottledError is an ErrLimit that says when to try again.
type ThrottledError struct {
	RetryAfter time.Duration // at least a second
}

// Error returns the sentence for the person who waits.
func (e *ThrottledError) Error() string {
	unit := "seconds"
	if e.RetryAfter < 2*time.Second {
		unit = "second"
	}
	return fmt.Sprintf("Too many attempts. Try again in %d %s.", int(e.RetryAfter.Seconds()), unit)
}

// Is makes errors.Is(err, dmarcd.ErrLimit) hold.
func (e *ThrottledError) Is(target error) bool { return target == dmarcd.ErrLimit }

// Throttle slows down those who guess passwords: by their address, and by the
// e-mail address that they try. The wait for an e-mail address is bounded by a
// minute, so that a stranger cannot lock its owner out for long.
//
// It remembers attempts in memory: each process counts for itself, and a restart
// forgets. It is safe for concurrent use.
type Throttle struct {
	now func() time.Time

	mu    sync.Mutex
	tries map[string]tries
}

// tries are the attempts of one source.
type tries struct {
	count int
	last  time.Time
}

// NewThrottle returns a throttle on that clock.
func NewThrottle(now func() time.Time) *Throttle {
	return &Throttle{now: now, tries: map[string]tries{}}
}

// Attempt counts an attempt to sign in, or returns a ThrottledError if it comes
// too early; then it does not count. Attempts count before their outcome is
// known, so that many at once are not one.
func (t *Throttle) Attempt(address, email string) error {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	byAddress, byEmail := addressKey(address), emailKey(email)
	wait := max(t.wait(byAddress, freePerAddress, now), t.wait(byEmail, freePerEmail, now))
	if wait > 0 {
		return &ThrottledError{RetryAfter: max(wait.Round(time.Second), time.Second)}
	}
	if len(t.tries) >= maxTracked {
		clear(t.tries)
	}
	for _, key := range []string{byAddress, byEmail} {
		t.tries[key] = tries{count: t.tries[key].count + 1, last: now}
	}
	return nil
}

// Succeeded takes back an attempt that was right, and forgets those before it
// for the e-mail address. Those of the network address stay: otherwise one right
// password of their own would let a stranger guess others'.
func (t *Throttle) Succeeded(address, email string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.tries, emailKey(email))
	if known, ok := t.tries[addressKey(address)]; ok {
		known.count--
		t.tries[addressKey(address)] = known
	}
}

// wait returns how long a source has to wait, and forgets old attempts.
func (t *Throttle) wait(key string, free int, now time.Time) time.Duration {
	known, ok := t.tries[key]
	if !ok {
		return 0
	}
	if now.Sub(known.last) >= forgetAfter {
		delete(t.tries, key)
		return 0
	}
	if known.count < free {
		return 0
	}
	pause := maxWait
	if doublings := known.count - free; doublings < 6 { // 2^6 s is over the limit
		pause = firstWait << doublings
	}
	return known.last.Add(pause).Sub(now)
}

func emailKey(email string) string { return "email " + email }

// addressKey names the source of a network address: itself, or the /64 of an
// IPv6 address, all of which one machine may have.
func addressKey(address string) string {
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return "address " + address
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		if network, err := addr.Prefix(64); err == nil {
			return "address " + network.String()
		}
	}
	return "address " + addr.String()
}
