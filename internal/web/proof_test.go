package web_test

import (
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
)

// needsProof reports whether a form needs a fresh proof.
func (f formCase) needsProof() bool {
	return strings.HasPrefix(f.path, "/app/account/authenticator") || strings.HasPrefix(f.path, "/app/account/passkeys") || strings.HasPrefix(f.path, "/app/settings/members") || f.path == "/app/settings/tokens" ||
		f.path == "/app/settings/invitations/withdraw" || f.path == "/app/domains/delete" || f.path == "/app/domains/example.com/delete" ||
		strings.HasPrefix(f.path, "/app/installation/users/") || strings.HasPrefix(f.path, "/app/settings/team/")
}

// TestFreshProof sends every form as every role with an old session. Those that need a fresh proof ask for it, with what
// the form contains, and change nothing before.
func TestFreshProof(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	unchanged := newSite(t)
	unchanged.clock = unchanged.clock.Add(dmarcd.ProofLife)
	proofs := 0
	for n, form := range unchanged.forms() {
		if !form.needsProof() {
			continue
		}
		proofs++
		for rank, user := range roles {
			t.Run(user+" "+form.path, func(t *testing.T) {
				s := unchanged
				may := rank >= slices.Index(roles, form.need)
				if may {
					s = newSite(t)
					s.clock = s.clock.Add(dmarcd.ProofLife)
				}
				f, before := s.forms()[n], s.audit(t)
				w := s.post(user, f.path, f.form)
				body := html.UnescapeString(w.Body.String())
				if w.Code != http.StatusForbidden || s.audit(t) != before || strings.Contains(body, "Confirm that it is you") != may {
					t.Fatalf("an old session: got %d and %d entries, want 403, none, and a question for a proof: %t", w.Code, s.audit(t)-before, may)
				}
				if !may {
					return
				}
				proof := url.Values{}
				for name, values := range f.form {
					proof[name] = values
					if !strings.Contains(body, `name="`+name+`" value="`+values[0]+`"`) {
						t.Errorf("got no %s=%s in %s", name, values[0], body)
					}
				}
				proof.Set("proof-password", "a wrong guess")
				if w := s.post(user, f.path, proof); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "That is incorrect") || s.audit(t) != before+1 {
					t.Errorf("a wrong password: got %d and %d entries, want 403 and that of the failure", w.Code, s.audit(t)-before)
				}
				proof.Set("proof-password", samplePassword)
				w = s.post(user, f.path, proof)
				if made := s.audit(t) - before - 2; w.Code != http.StatusSeeOther && w.Code != http.StatusOK || made != f.entries {
					t.Errorf("the password: got %d and %d entries, want it done with that of the proof and %d: %s", w.Code, made, f.entries, w.Body)
				}
			})
		}
	}
	if proofs != 15 {
		t.Errorf("got %d forms that need a proof, want 15", proofs)
	}
}

// TestProofBySecondFactor checks that a user with a second factor proves with it alone, for 10 minutes.
func TestProofBySecondFactor(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	codes := s.enrol(t, owner)
	s.clock = s.clock.Add(time.Hour)
	send := func(what string, want int, proof ...string) {
		t.Helper()
		form := url.Values{"name": {what}, "scope": {"read"}, "days": {"30"}}
		if len(proof) > 0 {
			form.Set(proof[0], proof[1])
		}
		if w := s.post(owner, "/app/settings/tokens", form); w.Code != want || strings.Contains(w.Body.String(), "proof-password") {
			t.Errorf("%s: got %d, want %d", what, w.Code, want)
		}
	}
	send("the password", http.StatusForbidden, "proof-password", samplePassword)
	send("a wrong code", http.StatusForbidden, "proof-code", "000000")
	send("a code", http.StatusOK, "proof-code", s.code(0))
	s.clock = s.clock.Add(9 * time.Minute)
	send("after 9 minutes", http.StatusOK)
	s.clock = s.clock.Add(time.Minute)
	send("after 10 minutes", http.StatusForbidden)
	send("a recovery code", http.StatusOK, "proof-code", codes[2])
	s.clock = s.clock.Add(10 * time.Minute)
	send("the same recovery code", http.StatusForbidden, "proof-code", codes[2])
	if w := s.post(owner, "/app/account/recovery", nil); w.Code != http.StatusForbidden {
		t.Errorf("new recovery codes: got %d, want 403", w.Code)
	}
	if w := s.post(owner, "/app/domains/bulk", url.Values{"action": {"delete"}, "domain": {sampleDomain}, "confirm": {"1"}}); w.Code != http.StatusOK || s.get(owner, "/app/domains/example.com").Code != http.StatusOK {
		t.Errorf("deleting domains: got %d, want the confirmation alone", w.Code)
	}
}
