package auth_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
)

// TestCommonPasswords refuses passwords that are tried first, and no others.
func TestCommonPasswords(t *testing.T) {
	t.Parallel()
	passwords := auth.NewPasswords()
	for password, common := range map[string]bool{
		"123456789012":            true,
		"2026-11-19-2026":         true,
		"password1234":            true,
		"Password2026!!":          true,
		"P4ssw0rd-2026!":          true,
		"passwordpassword":        true,
		"dragon-monkey-77":        true,
		"qwertyuiop12":            true,
		"1q2w3e4r5t6y":            true,
		"zyxwvutsrqponm":          true,
		"aaaaaaaaaaaa":            true,
		"abcabcabcabc":            true,
		"dmarcd-dmarcd-1":         true,
		"Ann.Example2026":         true,
		"letmein@corp.example":    true,
		"correct horse battery":   false,
		"a few words in a row":    false,
		"other words than before": false,
		"horse summer dragon tea": false,
		"a8b3k9x2m5q7":            false,
		"Zq9#vT2!mLp4":            false,
		"пароль из четырёх слов":  false,
		strings.Repeat("ab", 600): false, // too long
	} {
		_, err := passwords.Hash(t.Context(), "192.0.2.1", "ann@corp.example", password)
		var invalid *dmarcd.InvalidError
		if got := errors.As(err, &invalid) && strings.Contains(invalid.Message, "tried first"); got != common {
			t.Errorf("%q: got %v, want it refused as common: %t", password, err, common)
		}
	}
}
