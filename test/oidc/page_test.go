package oidc_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/secret"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/test/oidc"
)

// key is that of the daemon and of the stores beside it.
var key = secret.NewKey()

func openStore(t *testing.T, db storetest.DB) *store.Store {
	t.Helper()
	return db.Open(t, store.Options{Secrets: secret.Text("test", key)})
}

// serve runs the daemon with a provider, and returns its host and port. Clients see
// it at the address that the provider knows.
func serve(t *testing.T, db storetest.DB, p *oidc.Provider) string {
	t.Helper()
	effective, err := config.Load(config.Input{Environ: []string{
		"DMARCD_DATABASE=" + db.DSN, "DMARCD_DATA=" + t.TempDir(), "DMARCD_LISTEN=127.0.0.1:0", "DMARCD_BASE_URL=http://127.0.0.1:1/api",
		"DMARCD_OIDC_ISSUER=" + p.Issuer, "DMARCD_OIDC_CLIENT_ID=" + p.ClientID, "DMARCD_OIDC_CLIENT_SECRET=" + p.ClientSecret,
		"DMARCD_OIDC_DOMAINS=corp.example", "DMARCD_SECRET_KEY=" + key,
	}})
	musttest.Do(t, err)
	daemon := musttest.Get(app.New(t.Context(), effective.Config, app.Options{Log: slog.New(slog.DiscardHandler), Out: &bytes.Buffer{}}))(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- daemon.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return daemon.Config().Listen
}

// TestPage signs in on the web page by way of the provider.
func TestPage(t *testing.T) {
	t.Parallel()
	provider := oidc.Start(t, oidc.Options{Accounts: people})
	db := storetest.SQLite(t)
	invite(t, openStore(t, db), "invited@example.com")
	origin := "http://" + serve(t, db, provider)
	for _, row := range []struct {
		account string
		status  int // of the way back
		message string
	}{
		{"invited", http.StatusSeeOther, "team of invited@example.com"},
		{"colleague", http.StatusSeeOther, "You are not a member of a team"},
		{"outsider", http.StatusForbidden, "Sign in with single sign-on"},
		{"liar", http.StatusForbidden, "Sign in with single sign-on"},
	} {
		t.Run(row.account, func(t *testing.T) {
			t.Parallel()
			jar := musttest.Get(cookiejar.New(nil))(t)
			transport := &http.Transport{DisableKeepAlives: true}
			walking := &http.Client{Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			begun, _ := ask(t, walking, origin+"/app/oidc/start")
			back := provider.SignIn(t, begun.header.Get("Location"), row.account)
			finished, page := ask(t, walking, origin+back.RequestURI())
			if finished.status != row.status {
				t.Fatalf("got %d and %s, want %d", finished.status, page, row.status)
			}
			if _, page := ask(t, &http.Client{Jar: jar, Transport: transport}, origin+"/app/"); !strings.Contains(page, row.message) {
				t.Errorf("got %s, want %q in it", page, row.message)
			}
			if row.account == "invited" { // proves who the user is, in the same session
				for account, want := range map[string]int{"colleague": http.StatusUnauthorized, "invited": http.StatusSeeOther} {
					begun, _ := ask(t, walking, origin+"/app/oidc/start?next=%2Fapp%2Fproved")
					proved, page := ask(t, walking, origin+provider.SignIn(t, begun.header.Get("Location"), account).RequestURI())
					if proved.status != want || want == http.StatusSeeOther && proved.header.Get("Location") != "/app/proved" {
						t.Errorf("the proof of %s: got %d to %q and %s, want %d", account, proved.status, proved.header.Get("Location"), page, want)
					}
				}
			}
			if again, _ := ask(t, walking, origin+back.RequestURI()); again.status != http.StatusUnauthorized {
				t.Errorf("the same answer again: got %d, want 401", again.status)
			}
		})
	}
}

// TestProviderLogout signs out at the provider, which ends the session of the page.
func TestProviderLogout(t *testing.T) {
	t.Parallel()
	var page, body string
	passing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body) // the daemon rejects a part of it
		body = string(text)
		w.WriteHeader(sendLogout(t, page, body))
	}))
	t.Cleanup(passing.Close)
	provider := oidc.Start(t, oidc.Options{Accounts: people, LogoutURI: passing.URL})
	db := storetest.SQLite(t)
	s := openStore(t, db)
	invite(t, s, "invited@example.com")
	origin := "http://" + serve(t, db, provider)
	page = origin + "/app/oidc/logout"
	jar := musttest.Get(cookiejar.New(nil))(t)
	transport := &http.Transport{DisableKeepAlives: true}
	walking := &http.Client{Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	signIn := func() {
		t.Helper()
		begun, _ := ask(t, walking, origin+"/app/oidc/start")
		ask(t, walking, origin+provider.SignIn(t, begun.header.Get("Location"), "invited").RequestURI())
	}
	signedIn := func() bool {
		t.Helper()
		account, _ := ask(t, walking, origin+"/app/account")
		return account.status == http.StatusOK
	}
	signOut := func(account string) int {
		t.Helper()
		out, _ := ask(t, &http.Client{Transport: transport}, provider.Issuer+"/sign-out/"+account)
		return out.status
	}
	if signIn(); !signedIn() {
		t.Fatal("the sign-in failed")
	}
	if status := signOut("colleague"); status != http.StatusOK || !signedIn() {
		t.Errorf("another user: got %d, want 200 and the session", status)
	}
	if status := signOut("invited"); status != http.StatusOK || signedIn() {
		t.Errorf("got %d, want 200 and the session ended", status)
	}
	if signIn(); !signedIn() {
		t.Fatal("the second sign-in failed")
	}
	for name, form := range map[string]string{"the same token again": body, "no token": "", "a changed token": strings.Replace(body, "logout_token=", "logout_token=x", 1)} {
		if status := sendLogout(t, page, form); status != http.StatusBadRequest || !signedIn() {
			t.Errorf("%s: got %d, want 400 and the session", name, status)
		}
	}
}

// sendLogout posts a form, and returns the status of the answer.
func sendLogout(t *testing.T, page, form string) int {
	t.Helper()
	request := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, page, strings.NewReader(form)))(t)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		t.Error(err)
		return http.StatusBadGateway
	}
	_ = response.Body.Close() // only the status counts
	return response.StatusCode
}

// answered is the head of an answer.
type answered struct {
	status int
	header http.Header
}

func ask(t *testing.T, client *http.Client, address string) (answered, string) {
	t.Helper()
	request := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil))(t)
	response, err := client.Do(request)
	musttest.Do(t, err)
	defer func() { _ = response.Body.Close() }() // read-only
	body := musttest.Get(io.ReadAll(response.Body))(t)
	return answered{response.StatusCode, response.Header}, string(body)
}
