package e2e_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/test/daemon"
)

// additions returns the endpoints other than the seven, for a domain.
func additions(name string) []endpoint {
	return []endpoint{
		{http.MethodGet, "/domains/" + name + "/checks", false},
		{http.MethodGet, "/domains/" + name + "/checks/latest", false},
		{http.MethodGet, "/domains/" + name + "/setup", false},
		{http.MethodGet, "/events", false},
		{http.MethodGet, "/insights/reports", false},
		{http.MethodGet, "/insights/rejected", false},
		{http.MethodGet, "/insights/daily", false},
		{http.MethodGet, "/insights/senders", false},
	}
}

// otherRequests returns a request to each endpoint but the seven.
func otherRequests(token string) []request {
	var all []request
	for _, e := range append(additions("example.com"), storedThings("rep_1", "rej_1")...) {
		all = append(all, e.request(token))
	}
	return slices.Concat(all, stateRequests("rep_1", "rej_1", token), advisorRequests("example.com", advised{"whk_1", "dlv_1", "sendgrid:rest"}, token), teamRequests(token), adminRequests("tok_1", token))
}

func TestAdditionsAreReadByATokenOfTheTeam(t *testing.T) {
	each(t, checkedZone, func(t *testing.T, in *installation) {
		s := in.serve()
		s.add("example.com")
		s.firstCheck("example.com")
		cast := newErrorFixture(in)
		for _, row := range []struct {
			name, token string
			want        int
		}{
			{"a token that may write", cast.write, http.StatusOK},
			{"a token that may only read", cast.read, http.StatusOK},
			{"no token", "", http.StatusUnauthorized},
			{"an unknown token", unknownToken, http.StatusUnauthorized},
			{"a revoked token", cast.revoked, http.StatusUnauthorized},
			{"a team that is not on the whitelist", cast.denied, http.StatusForbidden},
		} {
			for _, e := range additions("example.com") {
				if a := s.send(e.request(row.token)); a.status != row.want {
					t.Errorf("%s: %s: got status %d want %d: %s", row.name, e, a.status, row.want, a.body)
				}
			}
		}
		for _, e := range additions("example.com") {
			for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
				// The client compares Allow with the document.
				s.send(request{method: method, path: e.path, token: in.token}).wantStatus(t, http.StatusMethodNotAllowed)
			}
			s.get(e.path+"/").wantStatus(t, http.StatusNotFound)
		}
	})
}

func TestAdditionsAreConditional(t *testing.T) {
	each(t, checkedZone, func(t *testing.T, in *installation) {
		s := in.serve()
		s.add("example.com")
		s.firstCheck("example.com")
		for _, e := range additions("example.com") {
			get := s.get(e.path)
			tag := get.header.Get("ETag")
			a := s.ifNoneMatch(e.path, tag)
			if a.status != http.StatusNotModified || len(a.body) != 0 || a.header.Get("ETag") != tag {
				t.Errorf("%s: got status %d and the ETag %s want 304 and %s", e, a.status, a.header.Get("ETag"), tag)
			}
			s.ifNoneMatch(e.path, `"other"`).wantStatus(t, http.StatusOK)
			head := s.send(request{method: http.MethodHead, path: e.path, token: in.token})
			want := get.comparable()
			want["body"] = ""
			if diff := cmp.Diff(want, head.comparable()); diff != "" {
				t.Errorf("%s (-GET +HEAD):\n%s", e.path, diff)
			}
		}
	})
}

func TestAdditionsOfAnotherTeamAreLikeNone(t *testing.T) {
	each(t, tenantZone, func(t *testing.T, in *installation) {
		s := in.serve()
		other := withOtherTeam(in, s)
		in.setZone(strings.ReplaceAll(tenantZone, "p=reject", "p=none"))
		s.send(verifying(other, theirs)).wantStatus(t, http.StatusOK)
		read := func(path string) answer {
			return s.send(request{method: http.MethodGet, path: path, token: other})
		}
		if got := readAs[page[event]](t, read("/events?domain="+theirs)); len(got.Items) != 2 {
			t.Fatalf("events of the other team: got %v want two", got.Items)
		}
		daemon.Eventually(t, fullCheckLimit, "the other team's domain is checked", func() bool {
			return read("/domains/"+theirs+"/checks/latest").status == http.StatusOK
		})

		s.get("/events").wantBody(t, `{"items":[],"next":null}`)
		for i, e := range append(additions(theirs), endpoint{http.MethodGet, "/events?domain=" + theirs, false}) {
			for _, query := range []string{"", "?limit=1", "?limit=0"} {
				if strings.Contains(e.path, "?") {
					query = strings.Replace(query, "?", "&", 1)
				}
				got := s.get(e.path + query)
				want := s.get(append(additions(unknown), endpoint{http.MethodGet, "/events?domain=" + unknown, false})[i].path + query)
				if diff := cmp.Diff(want.comparable(), got.comparable()); diff != "" {
					t.Errorf("%s%s (-unknown +of another team):\n%s", e, query, diff)
				}
			}
		}

		// The same domain in this team has its own history.
		s.add(theirs)
		mine := s.firstCheck(theirs)
		if got := readAs[storedCheck](t, read("/domains/"+theirs+"/checks/latest")); got.ID == mine.ID {
			t.Errorf("two teams share the check %s", got.ID)
		}
		s.get("/events").wantBody(t, `{"items":[],"next":null}`)
	})
}

func TestDeletionTakesTheAdditionsAway(t *testing.T) {
	each(t, checkedZone, func(t *testing.T, in *installation) {
		s := in.serve()
		s.add("example.com")
		first := s.firstCheck("example.com")
		in.setZone(rejectZone)
		s.verify("example.com", "conclusive")
		if got := s.happened("example.com"); len(got) != 2 {
			t.Fatalf("events: got %v want two", got)
		}
		s.remove("example.com")
		for i, e := range additions("example.com") {
			want := s.get(additions("unknown.example")[i].path)
			if diff := cmp.Diff(want.comparable(), s.get(e.path).comparable()); diff != "" {
				t.Errorf("%s (-unknown +deleted):\n%s", e, diff)
			}
		}
		s.get("/events?domain=example.com").wantBody(t, `{"items":[],"next":null}`)

		s.add("example.com")
		if got := s.firstCheck("example.com"); got.ID == first.ID || len(got.Changes) != 0 {
			t.Errorf("added again: got %s with %d changes want a new beginning", got.ID, len(got.Changes))
		}
		if got := all[storedCheck](s, "/domains/example.com/checks", 10); len(got) != 1 {
			t.Errorf("added again: got %d entries want 1", len(got))
		}
		s.get("/events").wantBody(t, `{"items":[],"next":null}`)
	})
}
