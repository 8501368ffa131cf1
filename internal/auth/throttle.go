package auth

import (
	"fmt"
	"math"
	"net/netip"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/clientaddr"
)

// The number of free attempts per key, and the delay after them, which doubles with
// each attempt.
const (
	freePerEmail   = 5
	freePerAddress = 20 // an office may share one address
	// freePerSite is for the /48 of IPv6 addresses: one client can have all of its networks,
	// but so can an office, in which one attacker must not delay all others.
	freePerSite = 5 * freePerAddress
	firstWait   = time.Second
	maxWait     = time.Minute
	// forgetAfter is how long attempts count.
	forgetAfter = time.Hour
	// knownFor is how long an address is known after a user signed in from it.
	knownFor = 30 * 24 * time.Hour
	// maxTracked limits the memory; a full table is cleared.
	maxTracked = 100_000
)

// ThrottledError is an ErrLimit with the time to wait.
type ThrottledError struct {
	RetryAfter time.Duration // at least one second
}

// Error is a message for the user.
func (e *ThrottledError) Error() string {
	number, unit := e.RetryAfter.Seconds(), "seconds"
	switch {
	case e.RetryAfter < 2*time.Second:
		unit = "second"
	case e.RetryAfter > 2*time.Hour:
		number, unit = math.Ceil(e.RetryAfter.Hours()), "hours"
	case e.RetryAfter > 2*time.Minute:
		number, unit = math.Ceil(e.RetryAfter.Minutes()), "minutes"
	}
	return fmt.Sprintf("Too many attempts. Try again in %d %s.", int(number), unit)
}

// Is makes errors.Is(err, dmarcd.ErrLimit) hold.
func (e *ThrottledError) Is(target error) bool { return target == dmarcd.ErrLimit }

// Throttle slows down password guessing, by network address, by site and by email address.
// Only the delay for a network address applies to those from which the owner of the email
// address signed in, so that an attacker who always tries first cannot lock out the owner.
//
// Attempts are stored in memory: each process counts separately, and a restart clears
// them; PasswordSignIn then finds known addresses in the sessions. It is safe for concurrent use.
type Throttle struct {
	now func() time.Time

	mu    sync.Mutex
	tries map[string]tries
	known map[string]time.Time // last success, by network address and email address
}

type tries struct {
	count int
	last  time.Time
}

// NewThrottle returns a throttle that uses the clock.
func NewThrottle(now func() time.Time) *Throttle {
	return &Throttle{now: now, tries: map[string]tries{}, known: map[string]time.Time{}}
}

// Attempt counts an attempt to sign in, with "" where the email address is not known, or returns a ThrottledError without counting it.
// Attempts count before their result is known, so that concurrent attempts are all
// counted.
func (t *Throttle) Attempt(address, email string) error {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	byAddress, byEmail, bySite := addressKey(address), emailKey(email), siteKey(address)
	wait := t.wait(byAddress, freePerAddress, now)
	if last, ok := t.known[byAddress+" "+email]; !ok || now.Sub(last) >= knownFor {
		wait = max(wait, t.wait(byEmail, freePerEmail, now), t.wait(bySite, freePerSite, now))
	}
	if wait > 0 {
		return &ThrottledError{RetryAfter: max(wait.Round(time.Second), time.Second)}
	}
	if len(t.tries) >= maxTracked {
		clear(t.tries)
	}
	for _, key := range []string{byAddress, byEmail, bySite} {
		if key != "" {
			t.tries[key] = tries{count: t.tries[key].count + 1, last: now}
		}
	}
	return nil
}

// mayAsk reports whether to look up if the owner of an email address uses a network address, after
// a throttled attempt. It is false for a minute afterwards, and while the network address is
// throttled anyway: such attempts cost nothing, and the time of many queries would reveal whether
// there is a user.
func (t *Throttle) mayAsk(address, email string) bool {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	byAddress := addressKey(address)
	key := "asked " + byAddress + " " + email
	if t.wait(byAddress, freePerAddress, now) > 0 || now.Sub(t.tries[key].last) < maxWait || len(t.tries) >= maxTracked {
		return false
	}
	t.tries[key] = tries{last: now}
	return true
}

// Succeeded removes a successful attempt, and clears earlier ones for the email address,
// which is known at the network address from now on. Attempts from the network address
// remain: otherwise an attacker could reset the count with a password of their own.
func (t *Throttle) Succeeded(address, email string) {
	t.know(address, email)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.tries, emailKey(email))
	for _, key := range []string{addressKey(address), siteKey(address)} {
		if known, ok := t.tries[key]; ok {
			known.count--
			t.tries[key] = known
		}
	}
}

// know notes that the owner of an email address uses a network address.
func (t *Throttle) know(address, email string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) >= maxTracked {
		clear(t.known)
	}
	t.known[addressKey(address)+" "+email] = t.now()
}

// wait returns the delay for a key, and removes expired attempts.
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

// emailKey returns the key of an email address, "" for none.
func emailKey(email string) string {
	if email == "" {
		return ""
	}
	return "email " + email
}

// addressKey returns the key of a network address; see clientaddr.NetworkOf.
func addressKey(address string) string {
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return "address " + address
	}
	return "address " + clientaddr.NetworkOf(addr).String()
}

// siteKey returns the key of the /48 network of an IPv6 address, "" for others.
func siteKey(address string) string {
	addr, err := netip.ParseAddr(address)
	if err != nil || addr.Unmap().Is4() {
		return ""
	}
	return "site " + clientaddr.SiteOf(addr).String()
}
