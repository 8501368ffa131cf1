package web_test

import (
	"html"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// unproven are the forms that need no fresh proof. All others are tried by TestFreshProof.
var unproven = strings.Fields(`
	/sign-in /sign-in/passkey /sign-in/code /sign-out /reset /reset/{token} /invitation/{token} /confirm/{token} /unsubscribe/{token} /oidc/logout /theme /team
	/account/name /account/address/{token} /account/password /account/sessions/end /account/sessions/{id}/end
	/sample /sample/delete /domains/bulk /domains/new /domains/{domain}/questions/{sender} /domains/{domain}/forwarding /domains/{domain}/parked
	/domains/{domain}/senders /domains/{domain}/dns /domains/{domain}/selftest /domains/{domain}/purpose /domains/{domain}/tags
	/senders /senders/own /senders/own/{sender}/remove /activity/acknowledge /activity/{id}/acknowledge
	/reports/upload /reports/rejected/{id}/retry /reports/rejected/{id}/delete /reports/exclude /reports/{id}/counted /reports/{id}/delete
	/settings/tokens/{id}/revoke /settings/mailboxes /settings/mailboxes/{id}/resume /settings/mailboxes/{id}/remove
	/settings/notifications/rules /settings/notifications/digest /settings/notifications/test /settings/notifications/new/{kind} /settings/notifications/{id}
	/settings/notifications/{id}/selection /settings/notifications/{id}/test /settings/notifications/{id}/rotate /settings/notifications/{id}/remove
	/settings/notifications/{id}/deliveries/{delivery}/retry /settings/retention /installation/teams /installation/teams/{id}/api`)

// provenRoutes returns patterns of the forms that need a fresh proof, by their routes.
func provenRoutes(t *testing.T) map[string]*regexp.Regexp {
	t.Helper()
	patterns := map[string]*regexp.Regexp{}
	for _, route := range regexp.MustCompile(`post\("([^"]+)"`).FindAllStringSubmatch(string(musttest.Get(os.ReadFile("routes.go"))(t)), -1) {
		if !slices.Contains(unproven, route[1]) {
			patterns[route[1]] = routePattern(route[1])
		}
	}
	return patterns
}

// untriedHere is the number of entries of a form that fails in this sample after the proof.
const untriedHere = -1

// provenForms returns the forms that need a fresh proof.
func (s *site) provenForms(t *testing.T) (forms []formCase) {
	t.Helper()
	routes := provenRoutes(t)
	for _, form := range append(
		s.forms(),
		formCase{"/app/account/authenticator/remove", viewer, nil, untriedHere},
		formCase{"/app/account/passkeys", viewer, url.Values{"name": {"Phone"}, "passkey": {"{}"}}, untriedHere},
		formCase{"/app/account/passkeys/pky_1/remove", viewer, nil, untriedHere},
		formCase{"/app/account/recovery", viewer, nil, untriedHere},
	) {
		for route, pattern := range routes {
			if pattern.MatchString(form.path) && !slices.Contains(unproven, strings.TrimPrefix(form.path, "/app")) {
				forms = append(forms, form)
				delete(routes, route)
			}
		}
	}
	for route := range routes {
		t.Errorf("%s: got no form, want one that is sent with an old session, or the route among those that need no proof", route)
	}
	return forms
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
	for n, form := range unchanged.provenForms(t) {
		for rank, user := range roles {
			t.Run(user+" "+form.path, func(t *testing.T) {
				s := unchanged
				may := rank >= slices.Index(roles, form.need)
				if may {
					s = newSite(t)
					s.clock = s.clock.Add(dmarcd.ProofLife)
				}
				f, before := s.provenForms(t)[n], s.audit(t)
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
				if f.entries == untriedHere {
					return
				}
				proof.Set("proof-password", samplePassword)
				w = s.post(user, f.path, proof)
				if made := s.audit(t) - before - 2; w.Code != http.StatusSeeOther && w.Code != http.StatusOK || made != f.entries {
					t.Errorf("the password: got %d and %d entries, want it done with that of the proof and %d: %s", w.Code, made, f.entries, w.Body)
				}
			})
		}
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
