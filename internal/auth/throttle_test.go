package auth_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
)

// hand is a clock that is set manually.
type hand struct{ at time.Time }

func (h *hand) now() time.Time { return h.at }

func newHand() *hand { return &hand{at: time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)} }

// wait returns the delay of an attempt; 0 means that it was made.
func wait(t *testing.T, throttle *auth.Throttle, address, email string) time.Duration {
	t.Helper()
	err := throttle.Attempt(address, email)
	if err == nil {
		return 0
	}
	var throttled *auth.ThrottledError
	if !errors.As(err, &throttled) || !errors.Is(err, dmarcd.ErrLimit) {
		t.Fatalf("got %v, want a ThrottledError", err)
	}
	return throttled.RetryAfter
}

func TestWaitGrows(t *testing.T) {
	t.Parallel()
	clock := newHand()
	throttle := auth.NewThrottle(clock.now)
	for i := range 5 {
		if got := wait(t, throttle, fmt.Sprintf("192.0.2.%d", i), "ann@example.com"); got != 0 {
			t.Errorf("attempt %d waits %v, want none", i+1, got)
		}
	}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		address := fmt.Sprintf("198.51.100.%d", i)
		for range 2 { // rejected attempts do not count
			if got := wait(t, throttle, address, "ann@example.com"); got != want*time.Second {
				t.Fatalf("wait %d: got %v, want %v", i+1, got, want*time.Second)
			}
		}
		if got := wait(t, throttle, address, "bob@example.com"); i == 0 && got != 0 {
			t.Errorf("another user waits %v", got)
		}
		clock.at = clock.at.Add(want * time.Second)
		if got := wait(t, throttle, address, "ann@example.com"); got != 0 {
			t.Fatalf("after the wait: another %v", got)
		}
	}
	clock.at = clock.at.Add(time.Hour)
	for range 5 {
		if got := wait(t, throttle, "192.0.2.1", "ann@example.com"); got != 0 {
			t.Errorf("an hour later: got a wait of %v, want none", got)
		}
	}
}

func TestThrottleByAddress(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, first, second string
		same                bool
	}{
		{"one address", "192.0.2.1", "192.0.2.1", true},
		{"two addresses", "192.0.2.1", "192.0.2.2", false},
		{"one IPv6 network", "2001:db8::1", "2001:db8::ffff:1", true},
		{"two IPv6 networks", "2001:db8::1", "2001:db8:0:1::1", false},
		{"an IPv4 address in two forms", "192.0.2.1", "::ffff:192.0.2.1", true},
		{"no address", "", "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			throttle := auth.NewThrottle(newHand().now)
			for i := range 20 {
				if got := wait(t, throttle, test.first, fmt.Sprintf("user%d@example.com", i)); got != 0 {
					t.Fatalf("attempt %d waits %v", i+1, got)
				}
			}
			if got := wait(t, throttle, test.second, "another@example.com"); (got > 0) != test.same {
				t.Errorf("got a wait of %v, want one: %t", got, test.same)
			}
		})
	}
}

// TestThrottleBySite guesses from forty /64 networks of one /48.
func TestThrottleBySite(t *testing.T) {
	t.Parallel()
	const ann, own = "ann@example.com", "2001:db8:1:99::1"
	throttle := auth.NewThrottle(newHand().now)
	if got := wait(t, throttle, own, ann); got != 0 {
		t.Fatalf("got a wait of %v", got)
	}
	throttle.Succeeded(own, ann)
	made := 0
	for i := range 40 {
		for j := range 5 {
			if wait(t, throttle, fmt.Sprintf("2001:db8:1:%x::%x", i, j+1), fmt.Sprintf("user%d-%d@example.com", i, j)) == 0 {
				made++
			}
		}
	}
	if made != 100 {
		t.Errorf("got %d attempts from one /48, want 100", made)
	}
	for address, waits := range map[string]bool{"2001:db8:1:ffff::1": true, "2001:db8:2::1": false, "::ffff:192.0.2.1": false, "192.0.2.2": false} {
		if got := wait(t, throttle, address, "bob"+address); (got > 0) != waits {
			t.Errorf("%s: got a wait of %v, want one: %t", address, got, waits)
		}
	}
	if got := wait(t, throttle, own, ann); got != 0 {
		t.Errorf("a user where they signed in before waits %v", got)
	}
}

func TestRightPasswordsAreForgiven(t *testing.T) {
	t.Parallel()
	throttle := auth.NewThrottle(newHand().now)
	for i := range 100 {
		if got := wait(t, throttle, "192.0.2.1", "ann@example.com"); got != 0 {
			t.Fatalf("attempt %d waits %v", i+1, got)
		}
		throttle.Succeeded("192.0.2.1", "ann@example.com")
	}
	// A successful sign-in does not clear attempts with other passwords.
	for i := range 20 {
		if got := wait(t, throttle, "192.0.2.1", fmt.Sprintf("user%d@example.com", i)); got != 0 {
			t.Fatalf("attempt %d waits %v", i+1, got)
		}
	}
	throttle.Succeeded("192.0.2.1", "user19@example.com")
	if got := wait(t, throttle, "192.0.2.1", "eve@example.com"); got != 0 {
		t.Errorf("the one that was taken back counts: %v", got)
	}
	if got := wait(t, throttle, "192.0.2.1", "eve@example.com"); got == 0 {
		t.Error("all guesses were forgiven")
	}
}

// TestOwnerIsNotLockedOut has an attacker with several network addresses try as often as
// possible. The owner is still admitted where they signed in before.
func TestOwnerIsNotLockedOut(t *testing.T) {
	t.Parallel()
	const ann, own = "ann@example.com", "192.0.2.1"
	h := newHand()
	throttle := auth.NewThrottle(h.now)
	attack := func() {
		for i := range 10 {
			_ = throttle.Attempt(fmt.Sprintf("198.51.100.%d", i), ann)
		}
	}
	attack()
	if got := wait(t, throttle, own, ann); got == 0 {
		t.Error("an unknown address does not wait")
	}
	h.at = h.at.Add(time.Hour)
	if got := wait(t, throttle, own, ann); got != 0 {
		t.Fatalf("got a wait of %v", got)
	}
	throttle.Succeeded(own, ann)
	attack()
	if got := wait(t, throttle, own, ann); got != 0 {
		t.Errorf("the owner waits %v", got)
	}
	if got := wait(t, throttle, "192.0.2.2", ann); got == 0 {
		t.Error("another address does not wait")
	}
	h.at = h.at.Add(30*24*time.Hour - time.Hour/2)
	attack()
	if got := wait(t, throttle, own, ann); got != 0 {
		t.Errorf("the owner waits %v after a month", got)
	}
	h.at = h.at.Add(time.Hour / 2)
	attack()
	if got := wait(t, throttle, own, ann); got == 0 {
		t.Error("an address is known for ever")
	}
}

func TestThrottledErrorStatesWhen(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]string{
		time.Second:     "Too many attempts. Try again in 1 second.",
		2 * time.Second: "Too many attempts. Try again in 2 seconds.",
		time.Minute:     "Too many attempts. Try again in 60 seconds.",
		3 * time.Minute: "Too many attempts. Try again in 3 minutes.",
		5 * time.Hour:   "Too many attempts. Try again in 5 hours.",
	} {
		if got := (&auth.ThrottledError{RetryAfter: after}).Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestThrottleIsBounded counts attempts of more keys than are remembered.
func TestThrottleIsBounded(t *testing.T) {
	t.Parallel()
	throttle := auth.NewThrottle(newHand().now)
	for range 5 {
		if got := wait(t, throttle, "192.0.2.1", "ann@example.com"); got != 0 {
			t.Fatalf("got a wait of %v", got)
		}
	}
	const most = 100_000 // with an address and an e-mail address each
	for i := range most/2 - 1 {
		if got := wait(t, throttle, fmt.Sprintf("address %d", i), fmt.Sprintf("%d@example.com", i)); got != 0 {
			t.Fatalf("got a wait of %v", got)
		}
		if i == most/2-2 {
			if got := wait(t, throttle, "192.0.2.2", "ann@example.com"); got == 0 {
				t.Error("a throttle that is just full has forgotten")
			}
		}
	}
	if got := wait(t, throttle, "192.0.2.2", "bob@example.com"); got != 0 {
		t.Fatalf("got a wait of %v", got)
	}
	if got := wait(t, throttle, "192.0.2.2", "ann@example.com"); got != 0 {
		t.Errorf("a full throttle has not forgotten: got a wait of %v", got)
	}
}
