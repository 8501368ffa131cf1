package e2e_test

import (
	"hash/crc32"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/test/daemon"
)

// mintToken returns a well-formed token that starts with the seed: "dmd_", 34 characters,
// and their CRC-32 in base62.
func mintToken(seed string) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	body := seed + strings.Repeat("x", 34-len(seed))
	sum := crc32.ChecksumIEEE([]byte(body))
	check := make([]byte, 6)
	for i := len(check) - 1; i >= 0; i-- {
		check[i] = digits[sum%62]
		sum /= 62
	}
	return "dmd_" + body + string(check)
}

// statusWith returns the status of a request with the token.
func (s *server) statusWith(token string) int {
	s.in.t.Helper()
	return s.send(request{method: http.MethodGet, path: "/domains", token: token}).status
}

// soon checks that requests with the token get the status after a change. Package auth tests that
// it takes a second at most, which a busy machine may add to.
func (s *server) soon(what, token string, want int) {
	s.in.t.Helper()
	daemon.Eventually(s.in.t, answerLimit, what, func() bool { return s.statusWith(token) == want })
}

func TestTokensHaveTheDocumentedForm(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		in.serve()
		for what, token := range map[string]string{"first start": in.token, "token create": in.newToken("default")} {
			if !tokenPattern.MatchString(token) || len(token) != 44 {
				t.Errorf("%s: got a token of another form than dmd_ and 40 characters", what)
				continue
			}
			if mintToken(token[4:38]) != token {
				t.Errorf("%s: the last six characters are not the CRC-32 of the others", what)
			}
		}
	})
}

func TestExpiredTokenIsRejected(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve()
		const lifetime = 2 * time.Second
		began := time.Now()
		token := in.newToken("default", "--expires", lifetime.String())
		if got := s.statusWith(token); got != http.StatusOK && time.Since(began) < lifetime {
			t.Errorf("before it expires: got status %d want 200", got)
		}
		daemon.Eventually(t, answerLimit, "the token expires", func() bool { return s.statusWith(token) == http.StatusUnauthorized })
		// Expiry is rounded to a second.
		if took, earliest := time.Since(began), lifetime-time.Second; took < earliest {
			t.Errorf("refused after %v, want not before %v", took, earliest)
		}
	})
}

func TestRevokedTokenIsRejected(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve()
		token := in.newToken("default", "--name", "short-lived")
		if got := s.statusWith(token); got != http.StatusOK {
			t.Fatalf("before: got status %d want 200", got)
		}
		in.do("token", "revoke", in.tokenID("default", "short-lived"))
		s.soon("the revoked token is refused", token, http.StatusUnauthorized)
		if got := s.statusWith(in.token); got != http.StatusOK {
			t.Errorf("another token of the team: got status %d want 200", got)
		}
	})
}

func TestDeniedTeamIsRejectedWithinASecond(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve()
		in.do("team", "create", "guests", "--api")
		token := in.newToken("guests")
		if got := s.statusWith(token); got != http.StatusOK {
			t.Fatalf("before: got status %d want 200", got)
		}
		in.do("team", "deny", "guests")
		s.soon("the denied team is refused", token, http.StatusForbidden)
		in.do("team", "allow", "guests")
		s.soon("the team is allowed again", token, http.StatusOK)
		if got := s.statusWith(in.token); got != http.StatusOK {
			t.Errorf("another team: got status %d want 200", got)
		}
	})
}
