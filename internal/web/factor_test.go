package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
)

// totpSecret is the secret of an authenticator app.
const totpSecret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"

// code returns the code of the app, some periods ago.
func (s *site) code(ago int) string {
	code, err := totp.GenerateCode(totpSecret, s.clock.Add(-30*time.Duration(ago)*time.Second))
	if err != nil {
		panic(err)
	}
	return code
}

// enrol has a user set up an authenticator app, and returns the recovery codes.
func (s *site) enrol(t *testing.T, user string) []string {
	t.Helper()
	w := s.post(user, "/app/account/authenticator/confirm", url.Values{"secret": {totpSecret}, "code": {s.code(0)}})
	codes := regexp.MustCompile(`[A-Z2-7]{4}(-[A-Z2-7]{4}){3}`).FindAllString(w.Body.String(), -1)
	if w.Code != http.StatusOK || len(codes) != 10 {
		t.Fatalf("got %d with the recovery codes %q, want ten", w.Code, codes)
	}
	s.clock = s.clock.Add(time.Minute) // a code works once
	return codes
}

// TestSecondFactor sets up an authenticator app, and signs in with it.
func TestSecondFactor(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	body := s.post(viewer, "/app/account/authenticator", nil).Body.String()
	if !regexp.MustCompile(`name="secret" value="[A-Z2-7]{32}"`).MatchString(body) || !strings.Contains(body, `src="data:image/png;base64,iVBOR`) {
		t.Errorf("got %s, want a secret with its QR code", body)
	}
	if w := s.post(viewer, "/app/account/authenticator/confirm", url.Values{"secret": {totpSecret}, "code": {"000000"}}); w.Code != 422 || !strings.Contains(w.Body.String(), "The code is incorrect") || !strings.Contains(w.Body.String(), totpSecret) {
		t.Errorf("a wrong code: got %d, want 422 with the same secret", w.Code)
	}
	codes := s.enrol(t, viewer)
	if body := s.body(t, viewer, "/app/account"); !strings.Contains(body, "10 recovery codes left") || strings.Contains(body, codes[0]) {
		t.Error("got an account without the number of recovery codes, or with one")
	}
	if body := s.body(t, owner, "/app/settings/members"); !regexp.MustCompile(`(?s)viewer@example.com.{1,200}yes`).MatchString(body) {
		t.Error("got members without who has a second factor")
	}

	w := s.post("", "/app/sign-in", url.Values{"email": {viewer}, "password": {samplePassword}, "next": {"/app/senders"}})
	step := w.Result().Cookies()[0]
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/app/sign-in/code?next=%2Fapp%2Fsenders" || step.Name != "dmarcd_step" || !step.HttpOnly {
		t.Fatalf("got %d to %q with the cookie %q, want the second step", w.Code, w.Header().Get("Location"), step.Name)
	}
	send := func(r *http.Request) *httptest.ResponseRecorder {
		r.AddCookie(step)
		return s.send("", r)
	}
	if w := send(httptest.NewRequest(http.MethodGet, "/app/sign-in/code?next=%2Fapp%2Fsenders", http.NoBody)); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "one-time-code") {
		t.Errorf("the second step: got %d", w.Code)
	}
	wrong := send(postForm("/app/sign-in/code", url.Values{"code": {"000000"}}))
	if wrong.Code != http.StatusUnauthorized || !strings.Contains(wrong.Body.String(), "Incorrect code") || len(wrong.Result().Cookies()) > 0 {
		t.Errorf("a wrong code: got %d, want 401 that says so", wrong.Code)
	}
	for _, code := range []string{s.code(0), codes[0]} {
		for n, want := range []int{http.StatusSeeOther, http.StatusUnauthorized} {
			w := send(postForm("/app/sign-in/code", url.Values{"code": {code}, "next": {"/app/senders"}}))
			if w.Code != want || want == http.StatusSeeOther && w.Header().Get("Location") != "/app/senders" {
				t.Errorf("%s, %d: got %d to %q, want %d", code, n, w.Code, w.Header().Get("Location"), want)
			}
		}
	}
	s.clock = s.clock.Add(11 * time.Minute)
	for _, r := range []*http.Request{postForm("/app/sign-in/code", url.Values{"code": {s.code(0)}}), httptest.NewRequest(http.MethodGet, "/app/sign-in/code", http.NoBody)} {
		if w := send(r); w.Code != http.StatusSeeOther || !strings.HasPrefix(w.Header().Get("Location"), "/app/sign-in?why=step") {
			t.Errorf("%s too late: got %d to %q, want the first step", r.Method, w.Code, w.Header().Get("Location"))
		}
	}
}

// TestRequiredFactor leads users without a second factor from every page and form to their account, of the team that
// requires it alone.
func TestRequiredFactor(t *testing.T) {
	t.Parallel()
	for path, user := range map[string]string{"/app/settings/members/factor": owner, "/app/installation/users/factor": operator} {
		s := newSite(t)
		if w := s.post(user, path, url.Values{"required": {"yes"}}); w.Code != http.StatusSeeOther {
			t.Fatalf("%s: got %d", path, w.Code)
		}
		before := s.audit(t)
		for _, page := range s.allPages() {
			if page.user != operator || page.name == "account" || page.name == "not-found" {
				continue
			}
			if w := s.get(viewer, page.path); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/app/account" {
				t.Errorf("%s, %s: got %d to %q, want the account", path, page.path, w.Code, w.Header().Get("Location"))
			}
		}
		for _, form := range s.forms() {
			if form.path == "/app/sign-out" || strings.HasPrefix(form.path, "/app/account/") {
				continue
			}
			if w := s.post(owner, form.path, form.form); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/app/account" || s.audit(t) != before {
				t.Errorf("%s, the form %s: got %d to %q and %d entries, want the account and no change", path, form.path, w.Code, w.Header().Get("Location"), s.audit(t)-before)
			}
		}
		if body := s.body(t, viewer, "/app/account"); !strings.Contains(body, "A second factor is required.") {
			t.Errorf("%s: got an account that does not say so", path)
		}
		if free := s.get(elsewhere, "/app/").Code == http.StatusOK; free != (user == owner) {
			t.Errorf("%s: got another team free: %t", path, free)
		}
		s.enrol(t, viewer)
		s.body(t, viewer, "/app/")
	}
}

// TestForgedPasskey answers challenges with nonsense: the pages say so clearly, and nothing changes.
func TestForgedPasskey(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	page := s.get("", "/app/sign-in")
	cookies := page.Result().Cookies()
	if !strings.Contains(page.Body.String(), "data-passkey=\"{&#34;publicKey&#34;") || len(cookies) != 1 || cookies[0].Name != "dmarcd_passkey" || !cookies[0].HttpOnly {
		t.Fatalf("got the cookies %v and %s, want a challenge", cookies, page.Body)
	}
	for _, answer := range []string{"", "{}", `{"id":"AAAA","rawId":"AAAA","type":"public-key","response":{}}`} {
		r := postForm("/app/sign-in/passkey", url.Values{"passkey": {answer}})
		r.AddCookie(cookies[0])
		if w := s.send("", r); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "The passkey was not accepted") {
			t.Errorf("%q: got %d, want 401 that says so", answer, w.Code)
		}
		if w := s.post(viewer, "/app/account/passkeys", url.Values{"name": {"x"}, "passkey": {answer}}); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "The passkey was not added") {
			t.Errorf("adding %q: got %d, want 422 that says so", answer, w.Code)
		}
	}
	if w := s.post(viewer, "/app/account/passkeys/pky_1/remove", nil); w.Code != http.StatusNotFound {
		t.Errorf("removing an unknown passkey: got %d, want 404", w.Code)
	}
}
