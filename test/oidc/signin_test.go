package oidc_test

import (
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/test/oidc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var people = []oidc.Account{
	{Subject: "known", Email: "Known@Example.com", Verified: true, Name: "Known Person"},
	{Subject: "invited", Email: "invited@example.com", Verified: true, Name: "Invited Person"},
	{Subject: "colleague", Email: "colleague@corp.example", Verified: true, Name: "A Colleague"},
	{Subject: "outsider", Email: "outsider@example.net", Verified: true},
	{Subject: "liar", Email: "known@example.com", Verified: false},
	{Subject: "nameless", Email: "", Verified: true},
}

func newSignIn(t *testing.T, p *oidc.Provider, s *store.Store, change func(*auth.OIDCOptions)) *auth.OIDC {
	t.Helper()
	options := auth.OIDCOptions{
		Issuer: p.Issuer, ClientID: p.ClientID, ClientSecret: p.ClientSecret,
		BaseURL: "http://127.0.0.1:1/api", Domains: []string{"corp.example"}, Now: time.Now,
	}
	if change != nil {
		change(&options)
	}
	return musttest.Get(auth.NewOIDC(options, s))(t)
}

// invite makes a link for an address into a team of its own.
func invite(t *testing.T, s *store.Store, email string) (hash [32]byte) {
	t.Helper()
	team := storetest.Team(t, s, "team of "+email)
	_, hash = auth.NewInvitation()
	err := s.CreateInvitation(t.Context(), hash, dmarcd.Invitation{
		Email: email, Team: team.ID, Role: dmarcd.RoleEditor, ExpiresAt: time.Now().Add(time.Hour),
	})
	musttest.Do(t, err)
	return hash
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	for name, inIDToken := range map[string]bool{"claims by UserInfo": false, "claims in the ID token": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provider := oidc.Start(t, oidc.Options{Accounts: people, ClaimsInIDToken: inIDToken})
			s := openStore(t, storetest.SQLite(t))
			known := musttest.Get(s.UseInvitation(t.Context(), invite(t, s, "known@example.com"), dmarcd.Claim{PasswordHash: "x"}))(t)
			invite(t, s, "invited@example.com")
			signIn := newSignIn(t, provider, s, nil)
			for _, test := range []struct {
				account string
				want    error
				email   string
				teams   int
			}{
				{account: "liar", want: dmarcd.ErrForbidden},
				{account: "nameless", want: dmarcd.ErrForbidden},
				{account: "outsider", want: dmarcd.ErrNotFound},
				{account: "unknown", want: dmarcd.ErrUnauthorized},
				{account: "known", email: "known@example.com", teams: 1},
				{account: "known", email: "known@example.com", teams: 1},
				{account: "invited", email: "invited@example.com", teams: 1},
				{account: "colleague", email: "colleague@corp.example"},
			} {
				location, cookie, err := signIn.Begin(t.Context(), "/app/domains?q=x")
				musttest.Do(t, err)
				back := provider.SignIn(t, location, test.account)
				user, next, err := signIn.Finish(t.Context(), cookie, back.Query())
				if !errors.Is(err, test.want) || user.Email != test.email {
					t.Errorf("%s: got %q, %v; want %q, %v", test.account, user.Email, err, test.email, test.want)
				}
				if test.want != nil {
					continue
				}
				if next != "/app/domains?q=x" {
					t.Errorf("%s: sent to %q, want the page that was asked for", test.account, next)
				}
				if test.account == "known" && user.ID != known.ID {
					t.Error("a person with a user got another")
				}
				memberships, err := s.Memberships(t.Context(), user.ID)
				if err != nil || len(memberships) != test.teams {
					t.Errorf("%s: got %d teams, %v; want %d", test.account, len(memberships), err, test.teams)
				}
			}
		})
	}
}

// TestGroups has groups give roles, from the scope and the claim of that name.
func TestGroups(t *testing.T) {
	t.Parallel()
	for name, inIDToken := range map[string]bool{"claims by UserInfo": false, "claims in the ID token": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provider := oidc.Start(t, oidc.Options{ClaimsInIDToken: inIDToken, Accounts: []oidc.Account{
				{Subject: "ann", Email: "ann@example.com", Verified: true, Groups: []string{"staff", "others"}},
				{Subject: "bob", Email: "bob@example.com", Verified: true, Groups: []string{"others"}},
				{Subject: "cy", Email: "cy@corp.example", Verified: true},
			}})
			s := openStore(t, storetest.SQLite(t))
			storetest.Team(t, s, "acme")
			storetest.Team(t, s, "beta")
			signIn := newSignIn(t, provider, s, func(o *auth.OIDCOptions) {
				o.Groups, o.GroupsClaim, o.Domains = []string{"staff=editor:acme"}, "groups", []string{"corp.example=viewer:beta"}
			})
			for account, want := range map[string]dmarcd.TeamRole{"ann": {Team: "acme", Role: dmarcd.RoleEditor}, "bob": {}, "cy": {Team: "beta", Role: dmarcd.RoleViewer}} {
				location, cookie, err := signIn.Begin(t.Context(), "/app/")
				musttest.Do(t, err)
				user, _, err := signIn.Finish(t.Context(), cookie, provider.SignIn(t, location, account).Query())
				if want.Team == "" {
					if !errors.Is(err, dmarcd.ErrNotFound) {
						t.Errorf("%s: got %v, want ErrNotFound", account, err)
					}
					continue
				}
				musttest.Do(t, err)
				if got := musttest.Get(s.Memberships(t.Context(), user.ID))(t); len(got) != 1 || got[0].Team.Name != want.Team || got[0].Role != want.Role {
					t.Errorf("%s: got %+v, want %+v", account, got, want)
				}
			}
		})
	}
}

func TestForgedAnswers(t *testing.T) {
	t.Parallel()
	provider := oidc.Start(t, oidc.Options{Accounts: people})
	s := openStore(t, storetest.SQLite(t))
	signIn := newSignIn(t, provider, s, nil)
	otherKey := newSignIn(t, provider, s, func(o *auth.OIDCOptions) { o.ClientSecret = "another" })
	late := newSignIn(t, provider, s, func(o *auth.OIDCOptions) {
		o.Now = func() time.Time { return time.Now().Add(10 * time.Minute) }
	})
	_, foreign, err := signIn.Begin(t.Context(), "/app/")
	musttest.Do(t, err)
	for _, test := range []struct {
		name   string
		finish *auth.OIDC // signIn if nil
		forge  func(cookie string, query url.Values) (string, url.Values)
	}{
		{name: "no cookie", forge: func(_ string, q url.Values) (string, url.Values) { return "", q }},
		{name: "the cookie of another sign-in", forge: func(_ string, q url.Values) (string, url.Values) { return foreign, q }},
		{name: "the cookie of another sign-in with its state", forge: func(_ string, q url.Values) (string, url.Values) {
			location, cookie, err := signIn.Begin(t.Context(), "/app/")
			musttest.Do(t, err)
			asked := musttest.Get(url.Parse(location))(t)
			q.Set("state", asked.Query().Get("state")) // the verifier does not fit the code
			return cookie, q
		}},
		{name: "a changed cookie", forge: func(c string, q url.Values) (string, url.Values) { return "A" + c[1:], q }},
		{name: "a cookie signed by others", finish: otherKey, forge: func(c string, q url.Values) (string, url.Values) { return c, q }},
		{name: "too late", finish: late, forge: func(c string, q url.Values) (string, url.Values) { return c, q }},
		{name: "another state", forge: func(c string, q url.Values) (string, url.Values) { q.Set("state", "x"); return c, q }},
		{name: "another issuer", forge: func(c string, q url.Values) (string, url.Values) { q.Set("iss", "https://id.example"); return c, q }},
		{name: "another code", forge: func(c string, q url.Values) (string, url.Values) { q.Set("code", "x"); return c, q }},
	} {
		location, cookie, err := signIn.Begin(t.Context(), "/app/")
		musttest.Do(t, err)
		query := provider.SignIn(t, location, "colleague").Query()
		forged, answer := test.forge(cookie, query)
		finish := signIn
		if test.finish != nil {
			finish = test.finish
		}
		if user, _, err := finish.Finish(t.Context(), forged, answer); !errors.Is(err, dmarcd.ErrUnauthorized) {
			t.Errorf("%s: got %+v, %v; want ErrUnauthorized", test.name, user, err)
		}
	}
	if users, err := s.Users(t.Context()); err != nil || len(users) != 0 {
		t.Errorf("a forged answer made %v, %v", users, err)
	}
}

func TestACodeIsGoodOnce(t *testing.T) {
	t.Parallel()
	provider := oidc.Start(t, oidc.Options{Accounts: people})
	s := openStore(t, storetest.SQLite(t))
	signIn := newSignIn(t, provider, s, nil)
	location, cookie, err := signIn.Begin(t.Context(), "/app/")
	musttest.Do(t, err)
	query := provider.SignIn(t, location, "colleague").Query()
	user, _, err := signIn.Finish(t.Context(), cookie, query)
	musttest.Do(t, err)
	if _, _, err := signIn.Finish(t.Context(), cookie, query); !errors.Is(err, dmarcd.ErrUnauthorized) {
		t.Errorf("the second use: got %v, want ErrUnauthorized", err)
	}
	sessions := auth.NewSessions(s, time.Now, slog.New(slog.DiscardHandler))
	secret := musttest.Get(sessions.Begin(t.Context(), user, auth.Client{Address: "127.0.0.1"}, ""))(t)
	session, err := sessions.Resolve(t.Context(), secret)
	if err != nil || session.User.Email != "colleague@corp.example" || session.Team.ID != 0 {
		t.Errorf("got %+v, %v; want a session of the colleague, who has no team yet", session, err)
	}
}

func TestNextIsAPageOfOurs(t *testing.T) {
	t.Parallel()
	provider := oidc.Start(t, oidc.Options{Accounts: people})
	s := openStore(t, storetest.SQLite(t))
	signIn := newSignIn(t, provider, s, nil)
	for next, want := range map[string]string{
		"":                                  "/app/",
		"/app/settings":                     "/app/settings",
		"https://evil.example":              "/app/",
		"//evil.example/app/":               "/app/",
		"/app/\\evil.example":               "/app/",
		"/app/\t/x":                         "/app/",
		"/api/domains":                      "/app/",
		"/app/" + strings.Repeat("x", 2000): "/app/",
	} {
		location, cookie, err := signIn.Begin(t.Context(), next)
		musttest.Do(t, err)
		_, got, err := signIn.Finish(t.Context(), cookie, provider.SignIn(t, location, "colleague").Query())
		if err != nil || got != want {
			t.Errorf("%.40q leads to %q, %v; want %q", next, got, err, want)
		}
	}
}
