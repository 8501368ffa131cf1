package imap_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/imap"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// provider issues access tokens.
type provider struct {
	*httptest.Server

	mu     sync.Mutex
	asked  []url.Values
	status int
	answer map[string]any
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{status: http.StatusOK}
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		p.asked = append(p.asked, r.PostForm)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(p.status)
		if err := json.NewEncoder(w).Encode(p.answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func TestOAuthToken(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		oauth   imap.OAuth
		status  int
		answer  map[string]any
		asked   map[string]string
		access  string
		refresh string
		says    string
	}{
		{
			name:  "with a refresh token",
			oauth: imap.OAuth{ClientID: "client", ClientSecret: "hush", RefreshToken: "first"}, status: 200,
			answer: map[string]any{"access_token": "access", "token_type": "Bearer", "expires_in": 3600},
			asked:  map[string]string{"grant_type": "refresh_token", "refresh_token": "first"},
			access: "access", refresh: "first",
		},
		{
			name:  "with a refresh token that is exchanged",
			oauth: imap.OAuth{ClientID: "client", RefreshToken: "first"}, status: 200,
			answer: map[string]any{"access_token": "access", "token_type": "Bearer", "refresh_token": "second"},
			asked:  map[string]string{"grant_type": "refresh_token", "refresh_token": "first"},
			access: "access", refresh: "second",
		},
		{
			name:  "as the program itself",
			oauth: imap.OAuth{ClientID: "client", ClientSecret: "hush", Scopes: []string{"https://mail.example/.default"}}, status: 200,
			answer: map[string]any{"access_token": "access", "token_type": "Bearer"},
			asked:  map[string]string{"grant_type": "client_credentials", "scope": "https://mail.example/.default"},
			access: "access",
		},
		{
			name:  "with a refresh token that has ended",
			oauth: imap.OAuth{ClientID: "client", RefreshToken: "first"}, status: 400,
			answer: map[string]any{"error": "invalid_grant", "error_description": "Token has been revoked.", "hidden": "first"},
			asked:  map[string]string{"grant_type": "refresh_token"},
			says:   "request an access token: the server rejected the login: the provider returned 400 Bad Request: invalid_grant Token has been revoked.",
		},
		{
			name:  "of a provider in trouble",
			oauth: imap.OAuth{ClientID: "client", RefreshToken: "first"}, status: 503,
			answer: map[string]any{"page": "<html>first"},
			asked:  map[string]string{"grant_type": "refresh_token"},
			says:   "request an access token: the provider returned 503 Service Unavailable",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			p.status, p.answer = row.status, row.answer
			row.oauth.TokenURL = p.URL
			access, renewed, err := row.oauth.Token(t.Context(), p.Client())
			if row.says != "" {
				if err == nil || err.Error() != row.says {
					t.Errorf("got error %v, want %q", err, row.says)
				}
				return
			}
			musttest.Do(t, err)
			if access != row.access || renewed.RefreshToken != row.refresh || renewed.TokenURL != p.URL {
				t.Errorf("got %q and %+v, want %q and the refresh token %q", access, renewed, row.access, row.refresh)
			}
			for key, want := range row.asked {
				if got := p.asked[0].Get(key); got != want {
					t.Errorf("asked with %s %q, want %q", key, got, want)
				}
			}
		})
	}
}

func TestLoginKeepsTheNewRefreshToken(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	p.answer = map[string]any{"access_token": "access", "token_type": "Bearer", "refresh_token": "second"}
	credentials := imap.Credentials{OAuth: &imap.OAuth{TokenURL: p.URL, ClientID: "client", RefreshToken: "first"}}
	var saved []string
	away := true
	login := credentials.Login(p.Client(), func(_ context.Context, renewed imap.Credentials) error {
		if away {
			return dmarcd.ErrTemporary
		}
		saved = append(saved, renewed.OAuth.RefreshToken)
		return nil
	})
	if _, err := login.Token(t.Context()); !errors.Is(err, dmarcd.ErrTemporary) {
		t.Errorf("got error %v, want ErrTemporary: a token that is not kept is not used", err)
	}
	away = false
	for range 2 {
		if access, err := login.Token(t.Context()); err != nil || access != "access" {
			t.Fatalf("got %q (%v), want the access token", access, err)
		}
	}
	if diff := cmp.Diff([]string{"second"}, saved); diff != "" {
		t.Errorf("saved other than once:\n%s", diff)
	}
	if got := p.asked[2].Get("refresh_token"); got != "second" {
		t.Errorf("asked the third time with %q, want the new one", got)
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	oauth := imap.OAuth{TokenURL: "https://login.example/token", ClientID: "client", RefreshToken: "refresh", Scopes: []string{"a", "b"}}
	change := func(f func(*imap.OAuth)) imap.Credentials {
		changed := oauth
		f(&changed)
		return imap.Credentials{OAuth: &changed}
	}
	for _, row := range []struct {
		name        string
		credentials imap.Credentials
		method      dmarcd.LoginMethod
		field       string // with the error
	}{
		{name: "a password", credentials: imap.Credentials{Password: "pass\"word\\ü"}, method: dmarcd.LoginPassword},
		{name: "OAuth", credentials: imap.Credentials{OAuth: &oauth}, method: dmarcd.LoginOAuth},
		{name: "OAuth of a program", credentials: change(func(o *imap.OAuth) { o.RefreshToken, o.ClientSecret = "", "hush" }), method: dmarcd.LoginOAuth},
		{name: "nothing", field: "password"},
		{name: "two lines", credentials: imap.Credentials{Password: "a\r\nb"}, field: "password"},
		{name: "a token URL in the clear", credentials: change(func(o *imap.OAuth) { o.TokenURL = "http://login.example" }), field: "token_url"},
		{name: "no token URL", credentials: change(func(o *imap.OAuth) { o.TokenURL = "" }), field: "token_url"},
		{name: "no client", credentials: change(func(o *imap.OAuth) { o.ClientID = "" }), field: "client_id"},
		{name: "nothing secret", credentials: change(func(o *imap.OAuth) { o.RefreshToken = "" }), field: "refresh_token"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := imap.DecodeCredentials(row.credentials.Encode())
			var invalid *dmarcd.InvalidError
			switch {
			case row.field != "" && (!errors.As(err, &invalid) || invalid.Field != row.field):
				t.Errorf("got error %v, want an InvalidError of the field %s", err, row.field)
			case row.field == "" && (err != nil || got.Method() != row.method || !cmp.Equal(got, row.credentials)):
				t.Errorf("got %+v (%v), want what was encoded", got, err)
			}
		})
	}
}

func TestDamagedCredentialsAreNotTold(t *testing.T) {
	t.Parallel()
	_, err := imap.DecodeCredentials([]byte(`hush"`))
	if err == nil || strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "'h'") {
		t.Errorf("got error %v, want one without the secret", err)
	}
}
