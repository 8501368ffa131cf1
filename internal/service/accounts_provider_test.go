package service_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// provider is an identity provider, which tells the claims.
type provider struct {
	*httptest.Server

	claims map[string]any
}

// withProvider has the service of a world use an identity provider and a clock.
func (w *world) withProvider(now *time.Time) *provider {
	w.Helper()
	key := musttest.Get(rsa.GenerateKey(rand.Reader, 2048))(w)
	encode := base64.RawURLEncoding.EncodeToString
	p := &provider{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		answer := map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		}
		switch r.URL.Path {
		case "/keys":
			answer = map[string]any{"keys": []any{map[string]any{
				"kty": "RSA", "kid": "1", "n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
			}}}
		case "/token":
			claims := map[string]any{"iss": p.URL, "aud": "id", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(), "email_verified": true}
			maps.Copy(claims, p.claims)
			body, err := json.Marshal(claims)
			signed := encode([]byte(`{"alg":"RS256","kid":"1"}`)) + "." + encode(body)
			digest := sha256.Sum256([]byte(signed))
			signature, errSign := rsa.SignPKCS1v15(nil, key, crypto.SHA256, digest[:])
			if err = errors.Join(err, errSign); err != nil {
				w.Error(err)
			}
			answer = map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": signed + "." + encode(signature)}
		}
		out.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(out).Encode(answer); err != nil {
			w.Error(err)
		}
	}))
	w.Cleanup(p.Close)
	w.options.Now = func() time.Time { return *now }
	w.options.OIDC = musttest.Get(auth.NewOIDC(auth.OIDCOptions{
		Issuer: p.URL, ClientID: "id", ClientSecret: "secret", BaseURL: "https://dmarc.example/api", Domains: []string{"corp.example"}, Now: w.options.Now,
	}, w.store))(w)
	w.service = service.New(w.store, w.options)
	return p
}

// signIn signs in with claims, and leads to the page next.
func (p *provider) signIn(w *world, client service.Client, next string, claims map[string]any) (session string, err error) {
	w.Helper()
	location, state, err := w.service.BeginSingleSignOn(ctx, next)
	w.must(err)
	asked := musttest.Get(url.Parse(location))(w).Query()
	p.claims = maps.Clone(claims)
	p.claims["nonce"] = asked.Get("nonce")
	session, _, err = w.service.FinishSingleSignOn(ctx, state, url.Values{"state": {asked.Get("state")}, "code": {"x"}}, client)
	return session, err
}

// TestProofByProvider proves at the identity provider who a user is. Only a sign-in of the same user within the
// last minutes counts, as the provider tells its time, and not for users with a second factor.
func TestProofByProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	now := time.Now()
	p := w.withProvider(&now)
	claims := func(subject string, age time.Duration) map[string]any {
		return map[string]any{"sub": subject, "email": subject + "@corp.example", "auth_time": now.Add(-age).Unix()}
	}
	timeless := claims("ann", 0)
	delete(timeless, "auth_time")
	client := service.Client{Address: "192.0.2.9"}
	account := func() *service.Account {
		t.Helper()
		return musttest.Get(w.service.Account(ctx, client))(t)
	}
	for _, row := range []struct {
		name   string
		claims map[string]any
		fresh  bool
	}{
		{"now", claims("ann", 0), true},
		{"within 10 minutes", claims("ann", dmarcd.ProofLife-time.Minute), true},
		{"remembered for long", claims("ann", dmarcd.ProofLife), false},
		{"at an unknown time", timeless, false},
	} {
		client.Session = musttest.Get(p.signIn(w, client, "/app/", row.claims))(t)
		if got := account().Fresh(); got != row.fresh {
			t.Errorf("a session of a sign-in %s: got a fresh proof %t", row.name, got)
		}
	}
	proves := func(what string, by service.Client, claims map[string]any, want error) {
		t.Helper()
		now = now.Add(time.Second)
		failures := w.failures()
		if _, err := p.signIn(w, by, service.ProvedPath, claims); !errors.Is(err, want) || account().Fresh() != (want == nil) {
			t.Errorf("%s: got %v and a fresh proof %t, want %v", what, err, account().Fresh(), want)
		}
		if noted := w.failures() - failures; noted != map[bool]int{true: 1}[want != nil] {
			t.Errorf("%s: got %d entries of a failure", what, noted)
		}
	}
	proves("a sign-in from before", client, claims("ann", dmarcd.ProofLife), dmarcd.ErrUnauthorized)
	proves("no time", client, timeless, dmarcd.ErrUnauthorized)
	proves("another user", client, claims("bob", 0), dmarcd.ErrUnauthorized)
	proves("no session", service.Client{Address: "192.0.2.9"}, claims("ann", 0), dmarcd.ErrUnauthorized)
	proves("the user, now", client, claims("ann", 0), nil)
	if entry := w.entries()[0]; entry.Action != "user.proved" || entry.Actor != "ann@corp.example" || entry.Detail != "identity provider" {
		t.Errorf("got the entry %+v", entry)
	}
	w.enrolled(account(), now)
	now = now.Add(dmarcd.ProofLife)
	proves("with a second factor", client, claims("ann", 0), dmarcd.ErrUnauthorized)
}

// failures returns the number of audit entries of failed sign-ins.
func (w *world) failures() (n int) {
	w.Helper()
	for _, entry := range w.entries() {
		if entry.Action == "user.login_failed" {
			n++
		}
	}
	return n
}
