package web_test

import (
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// challenge matches what is random in a page.
var challenge = regexp.MustCompile(`data-passkey="[^"]*"`)

// TestNoAnswerShowsWhoHasAnAccount compares the answers about an address of a user with those about others: signing in, asking
// for another password, and inviting.
func TestNoAnswerShowsWhoHasAnAccount(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const unknown = "unknown@example.com"
	for _, row := range []struct {
		name, as, path string
		form           url.Values
	}{
		{"sign-in", "", "/app/sign-in", url.Values{"password": {"a wrong guess"}}},
		{"reset", "", "/app/reset", nil},
		{"invitation", owner, "/app/settings/members", url.Values{"role": {"viewer"}}},
	} {
		answer := func(email string) *httptest.ResponseRecorder {
			form := url.Values{"email": {email}}
			for name, values := range row.form {
				form[name] = values
			}
			return s.post(row.as, row.path, form)
		}
		// The list of open invitations has the addresses that were entered, so the second answer is about fewer.
		a, b := answer(zoe), answer(unknown)
		texts := []string{a.Body.String(), b.Body.String()}
		for i, text := range texts {
			main, _, _ := strings.Cut(text, "<section><h2>Members</h2>")
			texts[i] = strings.NewReplacer(zoe, "ADDRESS", unknown, "ADDRESS").Replace(challenge.ReplaceAllString(main, ""))
		}
		header := func(w *httptest.ResponseRecorder) []string {
			var names []string
			for name := range w.Header() {
				names = append(names, name)
			}
			slices.Sort(names)
			return names
		}
		if a.Code != b.Code || texts[0] != texts[1] || !slices.Equal(header(a), header(b)) {
			t.Errorf("%s: got %d with %v and %s for a user, %d with %v and %s for others", row.name, a.Code, header(a), texts[0], b.Code, header(b), texts[1])
		}
	}
}

// TestUnknownUsersTakeTime signs in as a user and as others, with wrong passwords. Without the hash, others would take a
// hundredth of the time.
func TestUnknownUsersTakeTime(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	s := newSite(t)
	const known = "slow@example.com"
	hash := musttest.Get(auth.NewPasswords().Hash(t.Context(), "", known, newPassword))(t) // with the usual parameters
	s.letIn(t, dmarcd.Invitation{Email: known, Team: s.team, Role: dmarcd.RoleViewer}, hash)
	var times [2][]time.Duration
	for n := range 5 { // attempts without a delay
		for i, email := range []string{known, strings.Repeat("x", n+1) + "@example.com"} {
			began := time.Now()
			if w := s.post("", "/app/sign-in", url.Values{"email": {email}, "password": {"a wrong guess"}}); w.Code != 401 {
				t.Fatalf("%s: got %d, want 401", email, w.Code)
			}
			times[i] = append(times[i], time.Since(began))
		}
	}
	for i := range times {
		slices.Sort(times[i])
	}
	if user, other := times[0][2], times[1][2]; other < user/10 || user < other/10 {
		t.Errorf("got a median of %s for a user and %s for others, want about the same", user, other)
	}
}
