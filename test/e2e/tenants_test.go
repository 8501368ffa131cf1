package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// Both names have the same length, so that not even a length distinguishes them.
const (
	theirs  = "theirs.example"
	unknown = "unknown.example"
)

const tenantZone = `
	_dmarc.theirs.example. TXT "v=DMARC1; p=reject"
	_dmarc.unknown.example. TXT "v=DMARC1; p=reject"
`

// comparable returns the answer without what differs between any two answers.
func (a answer) comparable() map[string]any {
	header := a.header.Clone()
	for _, name := range []string{"Date", "X-Request-Id", "Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset"} {
		header.Del(name)
	}
	return map[string]any{"status": a.status, "header": header, "body": a.text()}
}

// withOtherTeam creates the team others, which has the domain theirs with counted
// messages, and returns its token.
func withOtherTeam(in *installation, s *server) string {
	in.t.Helper()
	in.do("team", "create", "others", "--api")
	token := in.newToken("others")
	s.send(adding(token, theirs)).wantStatus(in.t, http.StatusCreated)
	in.count("others", theirs, dmarcd.DayCount{Day: 20000, Summary: dmarcd.Summary{Compliant: 7, NonCompliant: 3}})
	return token
}

// count adds messages to the counters of a domain, directly in the database.
func (in *installation) count(team, name string, counts ...dmarcd.DayCount) {
	in.t.Helper()
	database := in.db.Open(in.t, store.Options{})
	owner := musttest.Get(database.TeamByName(in.t.Context(), team))(in.t)
	storetest.Count(in.t, database.Team(owner.ID), name, counts...)
}

func TestAnotherTeamsDomainIsLikeNone(t *testing.T) {
	each(t, tenantZone, func(t *testing.T, in *installation) {
		s := in.serve()
		withOtherTeam(in, s)
		token := in.token
		queries := []string{"", "?from=2026-01-01&to=2026-12-31", "?from=x"}
		for i, e := range endpoints(theirs) {
			if !strings.Contains(e.path, theirs) {
				continue
			}
			for _, query := range queries {
				got, want := e.request(token), endpoints(unknown)[i].request(token)
				got.path += query
				want.path += query
				if diff := cmp.Diff(s.send(want).comparable(), s.send(got).comparable()); diff != "" {
					t.Errorf("%s%s (-unknown +of another team):\n%s", e, query, diff)
				}
			}
			got, want := e.request(token), endpoints(unknown)[i].request(token)
			got.method, want.method = http.MethodHead, http.MethodHead
			if diff := cmp.Diff(s.send(want).comparable(), s.send(got).comparable()); diff != "" {
				t.Errorf("HEAD %s (-unknown +of another team):\n%s", e.path, diff)
			}
		}
	})
}

func TestListsAndSummariesAreTheTeamsOwn(t *testing.T) {
	each(t, tenantZone, func(t *testing.T, in *installation) {
		s := in.serve()
		other := withOtherTeam(in, s)
		s.get("/domains").wantBody(t, `[]`)
		s.get("/domains?limit=10&after=a.example").wantBody(t, `[]`)
		s.get("/reports").wantBody(t, zeros)

		s.add(unknown)
		if diff := cmp.Diff([]string{unknown}, s.list()); diff != "" {
			t.Errorf("domains of the team (-want +got):\n%s", diff)
		}
		a := s.send(request{method: http.MethodGet, path: "/domains", token: other})
		if diff := cmp.Diff([]string{theirs}, names(readDomains(t, a.body))); diff != "" {
			t.Errorf("domains of the other team (-want +got):\n%s", diff)
		}
		s.send(request{method: http.MethodGet, path: "/reports", token: other}).
			wantBody(t, `{"total":10,"compliant":7,"non_compliant":3}`)
		s.get("/reports/"+unknown).wantBody(t, zeros)
	})
}

func TestTwoTeamsHaveTheSameDomain(t *testing.T) {
	each(t, tenantZone, func(t *testing.T, in *installation) {
		s := in.serve()
		other := withOtherTeam(in, s)

		taken, free := s.send(adding(in.token, theirs)), s.send(adding(in.token, unknown))
		taken.wantStatus(t, http.StatusCreated)
		renamed := strings.ReplaceAll(taken.text(), theirs, unknown)
		got, want := readDomain(t, []byte(renamed)), readDomain(t, free.body)
		got.CreatedAt, got.UpdatedAt = want.CreatedAt, want.UpdatedAt
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("a domain that another team has (-unknown +of another team):\n%s", diff)
		}
		s.get("/reports/"+theirs).wantBody(t, zeros)

		// Changes of one team do not affect the other.
		in.do("domain", "purpose", "--team", "default", theirs, "business")
		s.remove(theirs)
		a := s.send(request{method: http.MethodGet, path: "/domains/" + theirs, token: other})
		a.wantStatus(t, http.StatusOK)
		if got := readDomain(t, a.body); got.Purpose != nil || !got.Active {
			t.Errorf("the other team's domain: got %s want it unchanged", a.body)
		}
		s.send(request{method: http.MethodGet, path: "/reports/" + theirs, token: other}).
			wantBody(t, `{"total":10,"compliant":7,"non_compliant":3}`)
	})
}

// TestAnotherTeamsDomainCostsLikeNone compares the number of SQL statements, which would
// be visible in the response time. The schedule also runs statements, so the minimum of
// several attempts counts.
func TestAnotherTeamsDomainCostsLikeNone(t *testing.T) {
	each(t, tenantZone, func(t *testing.T, in *installation) {
		s := in.serve()
		withOtherTeam(in, s)
		cost := func(r request) int {
			s.get("/reports") // caches the token
			before := s.queries()
			s.send(r)
			return s.queries() - before
		}
		for i, e := range endpoints(theirs) {
			if !strings.Contains(e.path, theirs) {
				continue
			}
			const many, fewest, most = 1 << 30, 5, 100
			got, want := many, many
			for n := 0; n < fewest || n < most && got != want; n++ {
				got = min(got, cost(e.request(in.token)))
				want = min(want, cost(endpoints(unknown)[i].request(in.token)))
			}
			if got != want || want == 0 {
				t.Errorf("%s: got %d queries want %d, as for an unknown domain", e, got, want)
			}
		}
	})
}
