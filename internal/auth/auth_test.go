package auth_test

import (
	"context"
	"errors"
	"hash/crc32"
	"log/slog"
	"math/big"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^dmd_[0-9A-Za-z]{40}$`)
	seen := map[string]bool{}
	counts := map[rune]int{}
	for range 2000 {
		token := auth.NewToken()
		if !form.MatchString(token) || !auth.ValidToken(token) || seen[token] {
			t.Fatalf("bad or repeated token %q", token)
		}
		seen[token] = true
		// The same checksum computed differently: base 62 in math/big has the digits in
		// the order 0-9a-zA-Z.
		random, check := token[4:38], token[38:]
		for _, c := range random {
			counts[c]++
		}
		swapped := new(big.Int).SetUint64(uint64(crc32.ChecksumIEEE([]byte(random)))).Text(62)
		want := strings.Map(swapCase, strings.Repeat("0", 6-len(swapped))+swapped)
		if check != want {
			t.Fatalf("checksum of %q is %q, want %q", random, check, want)
		}
	}
	// 1,097 of each are expected; 8 standard deviations are 265. Without the
	// rejection of high bytes the first eight would be a quarter more likely.
	for _, c := range "01234567" {
		if got := counts[c]; len(counts) != 62 || got < 832 || got > 1362 {
			t.Errorf("got %q %d times of %d different characters, want each alike", c, got, len(counts))
		}
	}
}

func swapCase(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z':
		return r - 'a' + 'A'
	case r >= 'A' && r <= 'Z':
		return r - 'A' + 'a'
	}
	return r
}

func TestMalformedTokens(t *testing.T) {
	t.Parallel()
	good := auth.NewToken()
	for name, token := range map[string]string{
		"empty":            "",
		"prefix only":      "dmd_",
		"too short":        good[:len(good)-1],
		"too long":         good + "0",
		"another prefix":   "xmd_" + good[4:],
		"a typo":           good[:10] + flip(good[10]) + good[11:],
		"bad checksum":     good[:43] + flip(good[43]),
		"foreign alphabet": good[:10] + "-" + good[11:],
	} {
		if auth.ValidToken(token) {
			t.Errorf("%s: %q passes", name, token)
		}
	}
}

func flip(c byte) string {
	if c == 'a' {
		return "b"
	}
	return "a"
}

// fakeCredentials counts calls and fails on demand.
type fakeCredentials struct {
	credential dmarcd.Credential
	err        error
	touchErr   error
	looked     int
	touched    []time.Time
}

func (f *fakeCredentials) Credential(context.Context, [32]byte) (dmarcd.Credential, error) {
	f.looked++
	return f.credential, f.err
}

func (f *fakeCredentials) TouchToken(_ context.Context, _ dmarcd.TokenID, at time.Time, _ string) error {
	f.touched = append(f.touched, at)
	return f.touchErr
}

func TestCacheIsNeverOlderThanASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeCredentials{credential: dmarcd.Credential{Token: dmarcd.Token{ID: 1}, API: true}}
		a := auth.NewAuthenticator(fake, time.Now, slog.New(slog.DiscardHandler))
		token := auth.NewToken()
		for range 100 {
			musttest.Get(a.Authenticate(t.Context(), token, "192.0.2.1"))(t)
		}
		if fake.looked != 1 {
			t.Errorf("100 uses at once took %d lookups, want 1", fake.looked)
		}
		time.Sleep(900 * time.Millisecond)
		if _, err := a.Authenticate(t.Context(), token, "192.0.2.1"); err != nil || fake.looked != 2 {
			t.Errorf("after 900 ms: got %v and %d lookups, want 2", err, fake.looked)
		}
		fake.credential.API = false
		fake.credential.Token.RevokedAt = time.Now()
		time.Sleep(time.Second) // fake clock of the bubble
		if _, err := a.Authenticate(t.Context(), token, "192.0.2.1"); !errors.Is(err, dmarcd.ErrUnauthorized) {
			t.Errorf("a second after the revocation: got %v, want ErrUnauthorized", err)
		}
	})
}

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 15, 9, 30, 15, 0, time.UTC)
	broken := errors.New("broken")
	for _, test := range []struct {
		name  string
		token dmarcd.Token
		err   error
		want  error
	}{
		{name: "valid"},
		{name: "not expired yet", token: dmarcd.Token{ExpiresAt: now.Add(time.Second)}},
		{name: "expired", token: dmarcd.Token{ExpiresAt: now}, want: dmarcd.ErrUnauthorized},
		{name: "revoked", token: dmarcd.Token{RevokedAt: now.Add(-time.Hour)}, want: dmarcd.ErrUnauthorized},
		{name: "of this network", token: dmarcd.Token{Networks: []netip.Prefix{netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("192.0.2.0/24")}}},
		{name: "of another network", token: dmarcd.Token{Networks: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}}, want: auth.ErrOtherNetwork},
		{name: "of another network, revoked", token: dmarcd.Token{RevokedAt: now, Networks: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}}, want: dmarcd.ErrUnauthorized},
		{name: "unknown", err: dmarcd.ErrNotFound, want: dmarcd.ErrUnauthorized},
		{name: "no database", err: broken, want: broken},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			fake := &fakeCredentials{credential: dmarcd.Credential{Token: test.token}, err: test.err}
			a := auth.NewAuthenticator(fake, func() time.Time { return now }, slog.New(slog.DiscardHandler))
			if _, err := a.Authenticate(t.Context(), auth.NewToken(), "192.0.2.1"); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if _, err := a.Authenticate(t.Context(), "dmd_typo", "192.0.2.1"); !errors.Is(err, dmarcd.ErrUnauthorized) || fake.looked != 1 {
				t.Errorf("a typo: got %v after %d lookups; want ErrUnauthorized without one", err, fake.looked)
			}
		})
	}
}

func TestLastUseIsWrittenOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeCredentials{credential: dmarcd.Credential{Token: dmarcd.Token{ID: 1}}}
		a := auth.NewAuthenticator(fake, time.Now, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.Run(ctx) }()
		token := auth.NewToken()
		for range 150 { // two minutes and a half
			musttest.Get(a.Authenticate(ctx, token, "192.0.2.1"))(t)
			time.Sleep(time.Second)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if len(fake.touched) != 3 {
			t.Errorf("written %d times, want 3: %v", len(fake.touched), fake.touched)
		}
	})
}

// TestCachesAreBounded uses more tokens than are remembered: of a full cache nothing is
// left, and of one that is not yet full everything.
func TestCachesAreBounded(t *testing.T) {
	t.Parallel()
	const most = 10_000
	now := time.Date(2026, 11, 15, 9, 30, 15, 0, time.UTC)
	fake := &fakeCredentials{}
	a := auth.NewAuthenticator(fake, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	use := func(token string, id int) {
		t.Helper()
		fake.credential.Token.ID = dmarcd.TokenID(id)
		musttest.Get(a.Authenticate(t.Context(), token, "192.0.2.1"))(t)
	}
	writeAll := func() {
		t.Helper()
		ended, end := context.WithCancel(t.Context())
		end()
		musttest.Do(t, a.Run(ended))
	}
	first, second := auth.NewToken(), auth.NewToken()
	use(first, 1)
	use(second, 2)
	for i := range most - 2 {
		use(auth.NewToken(), i+3)
	}
	use(first, 1)
	if fake.looked != most {
		t.Errorf("a full cache: got %d lookups, want %d", fake.looked, most)
	}
	writeAll()
	if len(fake.touched) != most {
		t.Errorf("got %d uses written, want %d", len(fake.touched), most)
	}
	use(first, 1)
	writeAll() // and forgets, since all that may be remembered was written
	if len(fake.touched) != most {
		t.Errorf("the same minute again: got %d uses written, want %d", len(fake.touched), most)
	}
	use(first, 1)
	writeAll()
	if len(fake.touched) != most+1 {
		t.Errorf("after the list was emptied: got %d uses written, want %d", len(fake.touched), most+1)
	}
	use(auth.NewToken(), most+1)
	use(first, 1)
	if fake.looked != most+1 {
		t.Errorf("one that was used since: got %d lookups, want %d", fake.looked, most+1)
	}
	use(second, 2)
	if fake.looked != most+2 {
		t.Errorf("the one that was used least recently: got %d lookups, want %d", fake.looked, most+2)
	}
}

// TestUseThatCannotBeWritten is noted again by the next use.
func TestUseThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 15, 9, 30, 15, 0, time.UTC)
	fake := &fakeCredentials{touchErr: errors.New("broken")}
	a := auth.NewAuthenticator(fake, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	token := auth.NewToken()
	ended, end := context.WithCancel(t.Context())
	end()
	for range 2 {
		musttest.Get(a.Authenticate(t.Context(), token, "192.0.2.1"))(t)
		musttest.Do(t, a.Run(ended))
		fake.touchErr = nil
	}
	if len(fake.touched) != 2 {
		t.Errorf("got %d writes, want 2", len(fake.touched))
	}
	musttest.Get(a.Authenticate(t.Context(), token, "192.0.2.1"))(t)
	if err := a.Run(ended); err != nil || len(fake.touched) != 2 {
		t.Errorf("what is written already: got %v and %d writes, want 2", err, len(fake.touched))
	}
}
