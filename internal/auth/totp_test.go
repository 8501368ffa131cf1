package auth_test

import (
	"encoding/base32"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestVerifyTOTP checks the codes of RFC 6238 appendix B, whose last 6 digits are those of 6 digits.
func TestVerifyTOTP(t *testing.T) {
	t.Parallel()
	secret := base32.StdEncoding.EncodeToString([]byte("12345678901234567890"))
	for _, row := range []struct {
		at     int64
		code   string
		period int64
		ok     bool
	}{
		{59, "287082", 1, true},
		{1111111109, "081804", 37037036, true},
		{1234567890, "005924", 41152263, true},
		{20000000000, "353130", 666666666, true},
		{59 + 30, "287082", 1, true},
		{59 - 30, "287082", 1, true},
		{59 + 60, "287082", 0, false},
		{59, "287083", 0, false},
		{59, "", 0, false},
		{59, "28708", 0, false},
		{59, "94287082", 0, false},
	} {
		if period, ok := auth.VerifyTOTP(secret, row.code, time.Unix(row.at, 0)); period != row.period || ok != row.ok {
			t.Errorf("%q at %d: got %d, %t; want %d, %t", row.code, row.at, period, ok, row.period, row.ok)
		}
	}
	for _, malformed := range []string{"", "not base32", secret[:8], secret + secret} {
		if _, ok := auth.VerifyTOTP(malformed, "287082", time.Unix(59, 0)); ok {
			t.Errorf("the secret %q: got a code accepted", malformed)
		}
		if _, err := auth.NewTOTP("ann@example.com", malformed); err == nil && malformed != "" {
			t.Errorf("the secret %q: got an image of it", malformed)
		}
	}
	setup := musttest.Get(auth.NewTOTP("ann@example.com", ""))(t)
	if again := musttest.Get(auth.NewTOTP("ann@example.com", setup.Secret))(t); len(setup.Secret) != 32 || again.Secret != setup.Secret || !strings.HasPrefix(string(setup.Image), "\x89PNG") {
		t.Errorf("got the secret %q, and %q again; want one of 32 characters with an image", setup.Secret, again.Secret)
	}
}

func TestRecoveryCodes(t *testing.T) {
	t.Parallel()
	codes, hashes := auth.NewRecoveryCodes()
	if len(codes) != 10 || len(hashes) != 10 || codes[0] == codes[1] {
		t.Fatalf("got %q, want ten", codes)
	}
	for _, typed := range []string{codes[0], strings.ToLower(codes[0]), " " + strings.ReplaceAll(codes[0], "-", " ")} {
		if hash, ok := auth.HashRecoveryCode(typed); !ok || hash != hashes[0] {
			t.Errorf("%q: got another hash than that of %q", typed, codes[0])
		}
	}
	if _, ok := auth.HashRecoveryCode("287082"); ok {
		t.Error("got a code of an app as a recovery code")
	}
}
