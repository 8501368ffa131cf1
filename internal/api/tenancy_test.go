package api_test

import (
	"context"
	"crypto/sha256"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/api"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// nobodyElse resolves every token to one team, without a query.
type nobodyElse struct{ team dmarcd.TeamID }

func (n nobodyElse) Authenticate(context.Context, string) (dmarcd.Credential, error) {
	return dmarcd.Credential{Token: dmarcd.Token{ID: 1, Team: n.team, Scope: dmarcd.ScopeWrite}, API: true}, nil
}

// TestAnotherTeamsDomainIsNoDomain holds that a domain of another team answers
// like one that does not exist, to the letter and to the number of queries, on
// every endpoint that names one.
func TestAnotherTeamsDomainIsNoDomain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		victim, other := newTeam(t, s, "victim"), newTeam(t, s, "other")
		if _, err := s.Team(victim).AddDomain(t.Context(), "theirs.example", time.Time{}); err != nil {
			t.Fatal(err)
		}
		zone := dnstest.New(`_dmarc.theirs.example TXT "v=DMARC1; p=reject"`)
		handler := newAPI(t, s, nobodyElse{other}, zone)

		ask := func(method, path string) (answer string, queries int64, questions int) {
			before, asked := s.Stats().Queries, len(zone.Asked())
			w := httptest.NewRecorder()
			r := httptest.NewRequest(method, "http://api.example"+path, strings.NewReader(`{"domain":"`+path+`"}`))
			r.Header.Set("Authorization", "Bearer x")
			handler.ServeHTTP(w, r)
			body, _ := io.ReadAll(w.Body)
			var headers []string
			for name := range w.Header() {
				headers = append(headers, name+": "+w.Header().Get(name))
			}
			slices.Sort(headers)
			return http.StatusText(w.Code) + "\n" + strings.Join(headers, "\n") + "\n" + string(body), s.Stats().Queries - before, len(zone.Asked()) - asked
		}
		for _, operation := range []struct{ method, path string }{
			{"GET", "/api/domains/NAME"},
			{"HEAD", "/api/domains/NAME"},
			{"DELETE", "/api/domains/NAME"},
			{"POST", "/api/domains/NAME/verify"},
			{"GET", "/api/reports/NAME"},
			{"GET", "/api/reports/NAME?from=2026-01-01"},
			{"GET", "/api/domains/NAME/checks"},
			{"GET", "/api/domains/NAME/checks/latest"},
			{"GET", "/api/domains/NAME/setup"},
			{"GET", "/api/events?domain=NAME"},
			{"PUT", "/api/domains/NAME"},
			{"GET", "/api/domains/NAME/nothing"},
		} {
			name := operation.method + " " + operation.path
			theirs, queries, questions := ask(operation.method, strings.ReplaceAll(operation.path, "NAME", "theirs.example"))
			nobodys, wantQueries, wantQuestions := ask(operation.method, strings.ReplaceAll(operation.path, "NAME", "nobody.example"))
			if theirs != nobodys {
				t.Errorf("%s: another team's domain answers\n%s\none that does not exist\n%s", name, theirs, nobodys)
			}
			if queries != wantQueries || questions != wantQuestions {
				t.Errorf("%s: another team's domain takes %d queries and %d DNS questions, one that does not exist %d and %d",
					name, queries, questions, wantQueries, wantQuestions)
			}
		}
		if _, err := s.Team(victim).Domain(t.Context(), "theirs.example"); err != nil {
			t.Errorf("the other team's domain suffered: %v", err)
		}
	})
}

func newTeam(t *testing.T, s *store.Store, name string) dmarcd.TeamID {
	t.Helper()
	team, err := s.CreateTeam(t.Context(), name, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Team(team.ID).CreateToken(t.Context(), store.NewToken{Scope: dmarcd.ScopeWrite, Hash: sha256.Sum256([]byte(name))}); err != nil {
		t.Fatal(err)
	}
	return team.ID
}

func newAPI(t *testing.T, s *store.Store, authenticator api.Authenticator, zone *dnstest.Zone) *api.API {
	t.Helper()
	handler, err := api.New(api.Options{
		Store: s, Authenticator: authenticator,
		Checker: dnscheck.New(dnscheck.Options{Resolver: zone, Interval: time.Hour, Now: time.Now}),
		BaseURL: "http://api.example/api", WriteTimeout: time.Minute, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return handler
}
