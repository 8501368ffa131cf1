package auth_test

import (
	"context"
	"encoding/base64"
	"errors"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/crypto/argon2"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// weakHash returns a hash that is fast to verify.
func weakHash(password string) string {
	base64, salt := base64.RawStdEncoding.EncodeToString, []byte("salt of 17 bytes.")
	return "$argon2id$v=19$m=256,t=1,p=1$" + base64(salt) + "$" + base64(argon2.IDKey([]byte(password), salt, 1, 256, 1, 24))
}

func TestPasswords(t *testing.T) {
	t.Parallel()
	p := auth.NewPasswords()
	hash := func(password string) string {
		t.Helper()
		return musttest.Get(p.Hash(t.Context(), "", "", password))(t)
	}
	good := hash("correct horse battery")
	if form := regexp.MustCompile(`^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$`); !form.MatchString(good) {
		t.Errorf("got the hash %q, want the parameters in it", good)
	}
	if hash("correct horse battery") == good {
		t.Error("the same password has the same hash twice: no salt")
	}
	weaker := weakHash("correct horse battery")
	composed, decomposed := "p\u00e4ssw\u00f6rter hier", "pa\u0308sswo\u0308rter hier"
	for _, test := range []struct {
		name, hash, password string
		want                 bool
	}{
		{"the right one", good, "correct horse battery", true},
		{"a wrong one", good, "correct horse batterY", false},
		{"a part of it", good, "correct horse", false},
		{"an empty one", good, "", false},
		{"one without end", good, strings.Repeat("x", 1<<20), false},
		{"typed on another keyboard", hash(composed), decomposed, true},
		{"no user", "", "correct horse battery", false},
		{"no user, empty", "", "", false},
		{"other parameters", weaker, "correct horse battery", true},
		{"other parameters, a wrong one", weaker, "correct horse batterY", false},
	} {
		got, err := p.Verify(t.Context(), "", test.hash, test.password)
		if err != nil || got != test.want {
			t.Errorf("%s: got %t, %v; want %t", test.name, got, err, test.want)
		}
	}
	for _, bad := range []string{
		"x", "$argon2id$v=19$m=65536,t=3,p=4$", "$2a$10$abcdef", good + "$", strings.Replace(good, "v=19", "v=16", 1), strings.Replace(good, "t=2", "t=0", 1),
		strings.Replace(good, "p=1", "p=0", 1), good + "!", strings.Replace(good, "p=1$", "p=1$!", 1), good[:strings.LastIndexByte(good, '$')+1],
		strings.Replace(good, "m=19456", "m=019456", 1), strings.Replace(good, "v=19$m=19456", "v=19$m=x", 1), "$x",
	} {
		if ok, err := p.Verify(t.Context(), "", bad, "correct horse battery"); ok || err == nil {
			t.Errorf("%q: got %t, %v; want an error", bad, ok, err)
		}
	}
}

func TestRejectedPasswords(t *testing.T) {
	t.Parallel()
	for name, password := range map[string]string{
		"empty":              "",
		"eleven characters":  "elevenchars",
		"eleven of 22 bytes": strings.Repeat("ä", 11),
		"without end":        strings.Repeat("x", 1025),
		"no UTF-8":           "twelve chars\xff",
	} {
		if hash, err := auth.NewPasswords().Hash(t.Context(), "", "", password); !errors.Is(err, dmarcd.ErrInvalid) {
			t.Errorf("%s: got %q, %v; want ErrInvalid", name, hash, err)
		}
	}
}

func TestPasswordsAtTheLimits(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	p := auth.NewPasswords()
	for name, password := range map[string]string{"twelve characters": "twelve chars", "1024 bytes": strings.Repeat("two words, ", 94)[:1024]} {
		hash, err := p.Hash(t.Context(), "", "", password)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if right, err := p.Verify(t.Context(), "", hash, password); !right || err != nil {
			t.Errorf("%s: got %t, %v; want it right", name, right, err)
		}
	}
}

func TestNothingIsHashedForWhoHasLeft(t *testing.T) {
	t.Parallel()
	left, leave := context.WithCancel(t.Context())
	leave()
	p := auth.NewPasswords()
	if _, err := p.Hash(left, "", "", "correct horse battery"); !errors.Is(err, dmarcd.ErrTemporary) {
		t.Errorf("Hash: got %v, want ErrTemporary", err)
	}
	if _, err := p.Verify(left, "", "", "correct horse battery"); !errors.Is(err, dmarcd.ErrTemporary) {
		t.Errorf("Verify: got %v, want ErrTemporary", err)
	}
}
