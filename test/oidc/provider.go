// Package oidc starts a real OpenID provider for tests: the npm package oidc-provider, run by
// Node.js on a free local port. The tests are in this folder and in the browser tests.
// scripts/need-node.sh installs what it needs.
package oidc

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// Account is a user of the provider.
type Account struct {
	Subject  string   `json:"subject"` // what they sign in with
	Email    string   `json:"email"`
	Verified bool     `json:"verified"` // whether the provider has verified Email
	Name     string   `json:"name"`
	Groups   []string `json:"groups"`
}

// Options configure a provider.
type Options struct {
	Accounts []Account
	// ClaimsInIDToken includes the claims in the ID token. Otherwise only the UserInfo endpoint
	// has them.
	ClaimsInIDToken bool
	// LogoutURI receives logout tokens; "" for none.
	LogoutURI string
}

// Provider runs until the test ends.
type Provider struct {
	Issuer                 string
	ClientID, ClientSecret string
}

// Start starts a provider. It has one client, which may use redirect URIs on any local port,
// and requires PKCE.
func Start(t testing.TB, options Options) *Provider {
	t.Helper()
	p := &Provider{ClientID: "dmarcd", ClientSecret: "a secret of the test"}
	settings, err := json.Marshal(map[string]any{
		"client":             map[string]string{"id": p.ClientID, "secret": p.ClientSecret},
		"callback":           auth.CallbackPath,
		"accounts":           options.Accounts,
		"claims_in_id_token": options.ClaimsInIDToken,
		"logout_uri":         options.LogoutURI,
	})
	musttest.Do(t, err)
	cmd := exec.CommandContext(t.Context(), "node", "provider.mjs")
	cmd.Dir = folder(t)
	cmd.Stderr = t.Output()
	input := musttest.Get(cmd.StdinPipe())(t)
	output := musttest.Get(cmd.StdoutPipe())(t)
	if err := cmd.Start(); err != nil {
		t.Fatalf("start Node.js (scripts/need-node.sh installs it): %v", err)
	}
	t.Cleanup(func() {
		_ = input.Close() // which ends it
		_ = cmd.Wait()    // t.Context has killed it, or it ended
	})
	if _, err := input.Write(append(settings, '\n')); err != nil {
		t.Fatalf("tell the provider its settings: %v", err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatalf("the provider did not start (scripts/need-node.sh installs its packages): %v", err)
	}
	p.Issuer = strings.TrimSpace(line)
	return p
}

// folder returns the folder of this package, relative to that of the running test.
func folder(t testing.TB) string {
	t.Helper()
	dir := musttest.Get(os.Getwd())(t)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "test", "oidc")
		}
		above := filepath.Dir(dir)
		if above == dir {
			t.Fatal("the root of the module was not found")
		}
		dir = above
	}
}

// SignIn signs in with an account at location like a user, and returns where the provider
// redirects the browser.
func (p *Provider) SignIn(t testing.TB, location, account string) *url.URL {
	t.Helper()
	jar := musttest.Get(cookiejar.New(nil))(t)
	browser := &http.Client{
		Jar:       jar,
		Timeout:   10 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			if r.URL.Path == auth.CallbackPath {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
	page, _ := visit(t, browser, http.MethodGet, location, nil)
	form := url.Values{"account": {account}}
	at, back := visit(t, browser, http.MethodPost, page.String(), strings.NewReader(form.Encode()))
	to, err := url.Parse(back.Get("Location"))
	if err != nil || to.Path != auth.CallbackPath {
		t.Fatalf("the provider does not send the browser back but to %s, %v", at, err)
	}
	return to
}

// visit requests an address and returns the final address and the header of the response.
func visit(t testing.TB, browser *http.Client, method, address string, body io.Reader) (at *url.URL, header http.Header) {
	t.Helper()
	request := musttest.Get(http.NewRequestWithContext(t.Context(), method, address, body))(t)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := browser.Do(request)
	musttest.Do(t, err)
	defer func() { _ = response.Body.Close() }() // it was read
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s: status %d: %s, %v", request.URL.Path, response.StatusCode, text, err)
	}
	return response.Request.URL, response.Header
}
