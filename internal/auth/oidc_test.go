package auth_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// fakeProvider is an OpenID provider that answers as a test has it. test/oidc runs a
// real one.
type fakeProvider struct {
	*httptest.Server
	key      *ecdsa.PrivateKey
	now      func() time.Time
	nonce    string         // of the ID token
	claims   map[string]any // of the ID token, beside those that every one has
	userInfo map[string]any
	status   int  // of the token endpoint; 0 is 200
	tokens   bool // there is an ID token
	asked    map[string]int
}

func newFakeProvider(t *testing.T, now func() time.Time) *fakeProvider {
	t.Helper()
	key := musttest.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	p := &fakeProvider{key: key, now: now, tokens: true, asked: map[string]int{}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked[r.URL.Path]++
		w.Header().Set("Content-Type", "application/json")
		answer := p.answer(t, r.URL.Path)
		if r.URL.Path == "/token" && p.status != 0 {
			w.WriteHeader(p.status)
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *fakeProvider) answer(t *testing.T, path string) map[string]any {
	t.Helper()
	base64 := base64.RawURLEncoding.EncodeToString
	switch path {
	case "/.well-known/openid-configuration":
		return map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token",
			"jwks_uri": p.URL + "/keys", "userinfo_endpoint": p.URL + "/userinfo", "id_token_signing_alg_values_supported": []string{"ES256"},
		}
	case "/keys":
		public, err := p.key.PublicKey.Bytes() // SEC 1: 4, x, y
		if err != nil {
			t.Error(err)
		}
		return map[string]any{"keys": []any{map[string]any{
			"kty": "EC", "crv": "P-256", "alg": "ES256", "kid": "1", "x": base64(public[1:33]), "y": base64(public[33:]),
		}}}
	case "/token":
		answer := map[string]any{"access_token": "access", "token_type": "Bearer"}
		if p.tokens {
			answer["id_token"] = p.idToken(t)
		}
		return answer
	}
	return p.userInfo
}

// idToken returns a signed ID token (RFC 7519, RFC 7518 §3.4).
func (p *fakeProvider) idToken(t *testing.T) string {
	t.Helper()
	claims := map[string]any{
		"iss": p.URL, "sub": "subject", "aud": "id", "nonce": p.nonce,
		"iat": p.now().Unix(), "exp": p.now().Add(time.Minute).Unix(),
	}
	maps.Copy(claims, p.claims)
	return p.sign(t, claims)
}

// sign returns a token of the provider.
func (p *fakeProvider) sign(t *testing.T, claims map[string]any) string {
	t.Helper()
	body, err := json.Marshal(claims)
	if err != nil {
		t.Error(err)
	}
	base64 := base64.RawURLEncoding.EncodeToString
	signed := base64([]byte(`{"alg":"ES256","kid":"1"}`)) + "." + base64(body)
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, p.key, digest[:])
	if err != nil {
		t.Error(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signed + "." + base64(signature)
}

// fakeIdentities remembers who was signed in.
type fakeIdentities struct{ identity dmarcd.Identity }

func (f *fakeIdentities) SignInIdentity(_ context.Context, identity dmarcd.Identity) (dmarcd.SignIn, error) {
	f.identity = identity
	return dmarcd.SignIn{User: dmarcd.User{ID: 7}}, nil
}

// visit is a sign-in under way.
type visit struct {
	provider   *fakeProvider
	identities *fakeIdentities
	clock      *hand
	signIn     *auth.OIDC
	cookie     string
	query      url.Values // what the provider sends the browser back with
}

func beginVisit(t *testing.T, next string) *visit {
	t.Helper()
	v := &visit{clock: newHand(), identities: &fakeIdentities{}}
	v.provider = newFakeProvider(t, v.clock.now)
	v.provider.claims = map[string]any{"email": "Ann@Corp.example", "email_verified": true, "name": "Ann"}
	var err error
	v.signIn, err = auth.NewOIDC(auth.OIDCOptions{
		Issuer: v.provider.URL, ClientID: "id", ClientSecret: "secret", BaseURL: "https://dmarc.example/api",
		Domains: []string{"corp.example"}, Now: v.clock.now,
	}, v.identities)
	musttest.Do(t, err)
	location, cookie, err := v.signIn.Begin(t.Context(), next)
	musttest.Do(t, err)
	to := musttest.Get(url.Parse(location))(t)
	question := to.Query()
	if got := question.Get("redirect_uri"); got != "https://dmarc.example"+auth.CallbackPath {
		t.Errorf("redirect_uri: got %q", got)
	}
	v.cookie, v.provider.nonce = cookie, question.Get("nonce")
	v.query = url.Values{"state": {question.Get("state")}, "code": {"code"}}
	return v
}

func TestOIDCFinish(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		change  func(v *visit)
		want    error
		message string // the error, for the log
	}{
		{name: "right"},
		{name: "the issuer is named", change: func(v *visit) { v.query.Set("iss", v.provider.URL) }},
		{
			name: "another issuer", change: func(v *visit) { v.query.Set("iss", "https://other.example") },
			want: dmarcd.ErrUnauthorized, message: "another issuer",
		},
		{name: "another state", change: func(v *visit) { v.query.Set("state", "x") }, want: dmarcd.ErrUnauthorized, message: "state"},
		{name: "no state", change: func(v *visit) { v.query.Del("state") }, want: dmarcd.ErrUnauthorized, message: "state"},
		{
			name: "the provider refuses", change: func(v *visit) { v.query.Set("error", "access_denied") },
			want: dmarcd.ErrUnauthorized, message: "access_denied",
		},
		{name: "no cookie", change: func(v *visit) { v.cookie = "" }, want: dmarcd.ErrUnauthorized, message: "malformed"},
		{
			name: "half a cookie", change: func(v *visit) { v.cookie, _, _ = strings.Cut(v.cookie, ".") },
			want: dmarcd.ErrUnauthorized, message: "malformed",
		},
		{
			name: "a cookie without end", change: func(v *visit) { v.cookie += strings.Repeat("A", 4096) },
			want: dmarcd.ErrUnauthorized, message: "malformed",
		},
		{
			name: "a long cookie", change: func(v *visit) { v.cookie += strings.Repeat("A", 4096-len(v.cookie)) },
			want: dmarcd.ErrUnauthorized, message: "not ours",
		},
		{name: "no signature", change: func(v *visit) { v.cookie += "!" }, want: dmarcd.ErrUnauthorized, message: "not ours"},
		{name: "a cookie of others", change: func(v *visit) { v.cookie = "x" + v.cookie }, want: dmarcd.ErrUnauthorized, message: "not ours"},
		{name: "just in time", change: func(v *visit) { v.clock.at = v.clock.at.Add(10*time.Minute - time.Second) }},
		{
			name: "too late", change: func(v *visit) { v.clock.at = v.clock.at.Add(10 * time.Minute) },
			want: dmarcd.ErrUnauthorized, message: "too old",
		},
		{name: "no ID token", change: func(v *visit) { v.provider.tokens = false }, want: dmarcd.ErrUnauthorized, message: "no ID token"},
		{name: "another nonce", change: func(v *visit) { v.provider.nonce = "x" }, want: dmarcd.ErrUnauthorized, message: "not for this sign-in"},
		{
			name: "another client", change: func(v *visit) { v.provider.claims["aud"] = "other" },
			want: dmarcd.ErrUnauthorized, message: "verify the ID token",
		},
		{
			name: "a long subject", change: func(v *visit) { v.provider.claims["sub"] = strings.Repeat("x", 256) },
			want: dmarcd.ErrUnauthorized, message: "too long",
		},
		{
			name: "claims of another form", change: func(v *visit) { v.provider.claims["name"] = 7 },
			want: dmarcd.ErrUnauthorized, message: "read the ID token",
		},
		{name: "the code is refused", change: func(v *visit) { v.provider.status = 400 }, want: dmarcd.ErrUnauthorized, message: "change the code"},
		{name: "the provider is broken", change: func(v *visit) { v.provider.status = 500 }, want: dmarcd.ErrTemporary, message: "change the code"},
		{name: "the provider is away", change: func(v *visit) { v.provider.Close() }, want: dmarcd.ErrTemporary, message: "change the code"},
		{name: "claims at UserInfo", change: func(v *visit) {
			v.provider.userInfo = v.provider.claims
			v.provider.userInfo["sub"], v.provider.claims = "subject", nil
		}},
		{name: "claims of another subject", change: func(v *visit) {
			v.provider.userInfo = v.provider.claims
			v.provider.userInfo["sub"], v.provider.claims = "other", nil
		}, want: dmarcd.ErrUnauthorized, message: "another user"},
		{name: "claims at UserInfo of another form", change: func(v *visit) {
			v.provider.userInfo, v.provider.claims = map[string]any{"sub": "subject", "name": 7}, nil
		}, want: dmarcd.ErrUnauthorized, message: "read the user's claims"},
		{name: "no UserInfo", change: func(v *visit) {
			v.provider.userInfo, v.provider.claims = map[string]any{"sub": 7}, nil
		}, want: dmarcd.ErrTemporary, message: "ask for the person's claims"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			v := beginVisit(t, "/app/domains?search=x")
			if test.change != nil {
				test.change(v)
			}
			user, next, err := v.signIn.Finish(t.Context(), v.cookie, v.query)
			if test.want != nil {
				if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.message) {
					t.Errorf("got %v, want %v with %q", err, test.want, test.message)
				}
				return
			}
			want := dmarcd.Identity{Issuer: v.provider.URL, Subject: "subject", Email: "ann@corp.example", Name: "Ann", Admit: true}
			if err != nil || user.ID != 7 || next != "/app/domains?search=x" || !reflect.DeepEqual(v.identities.identity, want) {
				t.Errorf("got user %d, %q, %+v, %v; want %+v", user.ID, next, v.identities.identity, err, want)
			}
			if got := v.provider.asked["/.well-known/openid-configuration"]; got != 1 {
				t.Errorf("the provider was discovered %d times, want once", got)
			}
		})
	}
}

func TestOIDCIdentity(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		claims map[string]any
		want   dmarcd.Identity
	}{
		{"verified", map[string]any{"email": "ann@corp.example", "email_verified": true}, dmarcd.Identity{Email: "ann@corp.example", Admit: true}},
		{"verified, in a word", map[string]any{"email": "ann@corp.example", "email_verified": "true"}, dmarcd.Identity{Email: "ann@corp.example", Admit: true}},
		{"not verified", map[string]any{"email": "ann@corp.example", "email_verified": false}, dmarcd.Identity{}},
		{"not verified, in a word", map[string]any{"email": "ann@corp.example", "email_verified": "false"}, dmarcd.Identity{}},
		{"verification not mentioned", map[string]any{"email": "ann@corp.example"}, dmarcd.Identity{}},
		{"another domain", map[string]any{"email": "ann@example.com", "email_verified": true}, dmarcd.Identity{Email: "ann@example.com"}},
		{"no address", map[string]any{"email": "ann", "email_verified": true, "name": "Ann"}, dmarcd.Identity{Name: "Ann"}},
		{"a name that cannot be shown", map[string]any{"email": "ann@example.com", "email_verified": true, "name": "A\x00nn"}, dmarcd.Identity{Email: "ann@example.com"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			v := beginVisit(t, "")
			v.provider.claims = test.claims
			if _, _, err := v.signIn.Finish(t.Context(), v.cookie, v.query); err != nil {
				t.Fatal(err)
			}
			test.want.Issuer, test.want.Subject = v.provider.URL, "subject"
			if got := v.identities.identity; !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestOIDCNext checks that a link to the sign-in cannot lead on to another site.
func TestOIDCNext(t *testing.T) {
	t.Parallel()
	const own = "/app/"
	longest := own + strings.Repeat("x", 1024-len(own))
	for name, test := range map[string]struct{ next, want string }{
		"none":                        {"", own},
		"a page":                      {"/app/domains/example.com?days=7", "/app/domains/example.com?days=7"},
		"a mark behind the blank":     {"/app/!", "/app/!"},
		"beside the pages":            {"/api/docs", own},
		"another site":                {"https://evil.example/app/", own},
		"another site, no scheme":     {"//evil.example/app/", own},
		"another site by a backslash": {`/app/\evil.example`, own},
		"a blank":                     {"/app/ x", own},
		"a tab":                       {"/app/\t//evil.example", own},
		"a line break":                {"/app/\r\nSet-Cookie:x", own},
		"delete":                      {"/app/\x7f", own},
		"as long as allowed":          {longest, longest},
		"too long":                    {longest + "x", own},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := beginVisit(t, test.next)
			if _, next, err := v.signIn.Finish(t.Context(), v.cookie, v.query); err != nil || next != test.want {
				t.Errorf("got %q, %v; want %q", next, err, test.want)
			}
		})
	}
}

func TestOIDCOptions(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*auth.OIDCOptions){
		"no issuer":        func(o *auth.OIDCOptions) { o.Issuer = "" },
		"no client":        func(o *auth.OIDCOptions) { o.ClientID = "" },
		"no secret":        func(o *auth.OIDCOptions) { o.ClientSecret = "" },
		"no real base URL": func(o *auth.OIDCOptions) { o.BaseURL = "http://[" },
	} {
		options := auth.OIDCOptions{Issuer: "https://id.example", ClientID: "id", ClientSecret: "secret", BaseURL: "http://localhost/api"}
		musttest.Get(auth.NewOIDC(options, nil))(t)
		change(&options)
		if _, err := auth.NewOIDC(options, nil); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

// TestOIDCDiscovery has a provider that cannot be reached at first. Clients that ask again and
// again, and leave, cause few requests to it and do not stop its discovery.
func TestOIDCDiscovery(t *testing.T) {
	t.Parallel()
	clock, asked, away := newHand(), 0, true
	var provider *httptest.Server
	provider = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; away {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": provider.URL, "authorization_endpoint": provider.URL + "/authorize", "token_endpoint": provider.URL + "/token"})
	}))
	t.Cleanup(provider.Close)
	signIn := musttest.Get(auth.NewOIDC(auth.OIDCOptions{
		Issuer: provider.URL, ClientID: "id", ClientSecret: "secret", BaseURL: "https://dmarc.example/api", Now: clock.now,
	}, &fakeIdentities{}))(t)
	for range 3 {
		if _, _, err := signIn.Begin(t.Context(), ""); !errors.Is(err, dmarcd.ErrTemporary) {
			t.Errorf("got %v, want ErrTemporary", err)
		}
	}
	if asked != 1 {
		t.Errorf("the provider was asked %d times, want once in five seconds", asked)
	}
	away = false
	clock.at = clock.at.Add(5 * time.Second)
	left, leave := context.WithCancel(t.Context())
	leave()
	for _, ctx := range []context.Context{left, t.Context()} {
		if _, _, err := signIn.Begin(ctx, ""); err != nil {
			t.Error(err)
		}
	}
	if asked != 2 {
		t.Errorf("the provider was asked %d times, want once more", asked)
	}
}

// TestOIDCProof checks that a sign-in that proves who a user is asks the provider to authenticate them again, and returns
// when it did.
func TestOIDCProof(t *testing.T) {
	t.Parallel()
	for next, want := range map[string]string{auth.ProvedPath: "0", "/app/": ""} {
		v := beginVisit(t, next)
		location, cookie, err := v.signIn.Begin(t.Context(), next)
		musttest.Do(t, err)
		question := musttest.Get(url.Parse(location))(t).Query()
		if got := question.Get("max_age"); got != want {
			t.Errorf("%s: got the max_age %q, want %q", next, got, want)
		}
		v.provider.nonce, v.provider.claims["auth_time"] = question.Get("nonce"), 1_700_000_000
		of, _, err := v.signIn.Finish(t.Context(), cookie, url.Values{"state": {question.Get("state")}, "code": {"code"}})
		if err != nil || of.ProvedAt.Unix() != 1_700_000_000 {
			t.Errorf("%s: got the time %v and %v, want that of the ID token", next, of.ProvedAt, err)
		}
	}
	v := beginVisit(t, "/app/")
	v.provider.claims["auth_time"] = v.clock.now().Add(24 * time.Hour).Unix()
	if of, _, err := v.signIn.Finish(t.Context(), v.cookie, v.query); err != nil || !of.ProvedAt.Equal(v.clock.now()) {
		t.Errorf("an auth_time in the future: got %v and %v, want that of the sign-in", of.ProvedAt, err)
	}
	v = beginVisit(t, "/app/")
	if of, _, err := v.signIn.Finish(t.Context(), v.cookie, v.query); err != nil || !of.ProvedAt.IsZero() {
		t.Errorf("no auth_time: got %v and %v, want no time", of.ProvedAt, err)
	}
}

// TestGroups reads the groups of a person from the ID token or the UserInfo endpoint, and the roles of the mail domain.
func TestGroups(t *testing.T) {
	t.Parallel()
	staff, admins := dmarcd.TeamRole{Team: "acme", Role: dmarcd.RoleViewer}, dmarcd.TeamRole{Team: "The = Team", Role: dmarcd.RoleOwner}
	for _, row := range []struct {
		name            string
		token, userInfo any // the claim, nil for none
		verified        bool
		groups, join    []dmarcd.TeamRole
	}{
		{name: "in the ID token", token: []string{"staff", "other", "cn=admins"}, verified: true, groups: []dmarcd.TeamRole{staff, admins}, join: []dmarcd.TeamRole{staff}},
		{name: "at the UserInfo endpoint", userInfo: []string{"staff"}, verified: true, groups: []dmarcd.TeamRole{staff}, join: []dmarcd.TeamRole{staff}},
		{name: "the ID token wins", token: []string{}, userInfo: []string{"staff"}, verified: true, join: []dmarcd.TeamRole{staff}},
		{name: "one name", token: "staff", verified: true, groups: []dmarcd.TeamRole{staff}, join: []dmarcd.TeamRole{staff}},
		{name: "no list", token: map[string]any{"staff": true}, verified: true, join: []dmarcd.TeamRole{staff}},
		{name: "numbers", token: []any{1, "staff"}, verified: true, groups: []dmarcd.TeamRole{staff}, join: []dmarcd.TeamRole{staff}},
		{name: "none", verified: true, join: []dmarcd.TeamRole{staff}},
		{name: "an address that is not verified", token: []string{"staff"}, groups: []dmarcd.TeamRole{staff}},
	} {
		v := &visit{clock: newHand(), identities: &fakeIdentities{}}
		v.provider = newFakeProvider(t, v.clock.now)
		v.provider.claims = map[string]any{"email": "Ann@Corp.example", "email_verified": row.verified}
		v.provider.userInfo = map[string]any{"sub": "subject"}
		if row.token != nil {
			v.provider.claims["roles"] = row.token
		}
		if row.userInfo != nil {
			v.provider.userInfo["roles"] = row.userInfo
		}
		signIn := musttest.Get(auth.NewOIDC(auth.OIDCOptions{
			Issuer: v.provider.URL, ClientID: "id", ClientSecret: "secret", BaseURL: "https://dmarc.example/api", Now: v.clock.now,
			Domains: []string{"other.example", "corp.example=viewer:acme"}, Groups: []string{"staff=viewer:acme", "cn=admins=owner:The = Team"}, GroupsClaim: "roles",
		}, v.identities))(t)
		location, cookie, err := signIn.Begin(t.Context(), "/app/")
		musttest.Do(t, err)
		asked := musttest.Get(url.Parse(location))(t).Query()
		v.provider.nonce = asked.Get("nonce")
		_, _, err = signIn.Finish(t.Context(), cookie, url.Values{"state": {asked.Get("state")}, "code": {"x"}})
		got := v.identities.identity
		if err != nil || !got.HasGroups || !slices.Equal(got.Groups, row.groups) || !slices.Equal(got.Join, row.join) || got.Admit != row.verified {
			t.Errorf("%s: got %+v, %v; want %v and %v", row.name, got, err, row.groups, row.join)
		}
	}
	for _, group := range []string{"staff", "staff=king:acme", "=viewer:acme", "staff=viewer:"} {
		if _, err := auth.NewOIDC(auth.OIDCOptions{Issuer: "https://id.example", ClientID: "x", ClientSecret: "x", Groups: []string{group}}, nil); err == nil {
			t.Errorf("%q: got no error", group)
		}
	}
}
