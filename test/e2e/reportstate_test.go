package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func changing(method, path, token, body string) request {
	r := request{method: method, path: path, token: token, body: body}
	if body != "" {
		r.header = jsonType()
	}
	return r
}

// stateRequests returns the requests that change a report and a rejected item. The deletions
// are last.
func stateRequests(report, rejection, token string) []request {
	return []request{
		changing(http.MethodPatch, "/insights/reports/"+report, token, `{"counted":false}`),
		changing(http.MethodPost, "/insights/reports/exclude", token, `{"reporter":"Reporter Inc."}`),
		changing(http.MethodDelete, "/insights/reports/"+report, token, ""),
		changing(http.MethodDelete, "/insights/rejected/"+rejection, token, ""),
	}
}

func TestStatesAreForEditorsOfTheTeam(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve(unscheduled)
		s.add("example.com")
		report, rejection := s.someReport()
		cast := newErrorFixture(in)
		in.do("team", "create", "other", "--api")
		for token, want := range map[string]int{
			"": http.StatusUnauthorized, cast.denied: http.StatusForbidden, cast.read: http.StatusForbidden, in.newToken("other"): http.StatusNotFound,
		} {
			for _, r := range stateRequests(report, rejection, token) {
				if strings.HasSuffix(r.path, "/exclude") && want == http.StatusNotFound {
					s.send(r).wantBody(t, `{"changed":0}`)
					continue
				}
				s.send(r).wantStatus(t, want)
			}
		}
		s.wantCounted("after what others tried", "example.com", 1, 1)
		for _, r := range stateRequests("nonsense", "nonsense", in.token) {
			if a := s.send(r); a.status != http.StatusNotFound && !strings.HasSuffix(r.path, "/exclude") {
				t.Errorf("%s %s: got status %d want 404: %s", r.method, r.path, a.status, a.body)
			}
		}
	})
}

func TestStatesWithBadBodies(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve(unscheduled)
		s.add("example.com")
		report, _ := s.someReport()
		for _, method := range []string{http.MethodPatch, http.MethodPost} {
			path := map[string]string{http.MethodPatch: "/insights/reports/" + report, http.MethodPost: "/insights/reports/exclude"}[method]
			for body, want := range map[string]int{
				"": http.StatusBadRequest, "{": http.StatusBadRequest, "{} more": http.StatusBadRequest, tooLarge: http.StatusRequestEntityTooLarge,
				"[]": http.StatusUnprocessableEntity, "{}": http.StatusUnprocessableEntity, `{"counted":1}`: http.StatusUnprocessableEntity,
				`{"counted":null}`: http.StatusUnprocessableEntity, `{"counted":"false"}`: http.StatusUnprocessableEntity,
			} {
				s.send(request{method: method, path: path, token: in.token, header: jsonType(), body: body}).wantStatus(t, want)
			}
			text := request{method: method, path: path, token: in.token, header: map[string]string{"Content-Type": "text/plain"}, body: "{}"}
			s.send(text).wantStatus(t, http.StatusUnsupportedMediaType)
		}
		for _, body := range []string{
			`{"counted":false}`, `{"reporter":"","counted":false}`, `{"reporter":5}`, `{"from":"yesterday"}`, `{"to":1}`,
			`{"from":"2026-11-02","to":"2026-11-01"}`,
		} {
			s.send(changing(http.MethodPost, "/insights/reports/exclude", in.token, body)).wantStatus(t, http.StatusUnprocessableEntity)
		}
		s.wantCounted("after bad requests", "example.com", 1, 1)
	})
}

// reportState is the part of a report that shows whether it counts.
type reportState struct {
	ID         string  `json:"id"`
	Counted    *bool   `json:"counted"`
	HeldReason *string `json:"held_reason"`
	Replaced   bool    `json:"replaced"`
}

func (v reportState) String() string {
	if v.Counted == nil {
		return "not told"
	}
	return fmt.Sprintf("counted %t, held %t, replaced %t", *v.Counted, v.HeldReason != nil, v.Replaced)
}

// setCounted includes or excludes a report, and checks the answer and the list.
func (s *server) setCounted(id string, counted bool, want string) {
	s.in.t.Helper()
	a := s.send(changing(http.MethodPatch, "/insights/reports/"+id, s.in.token, fmt.Sprintf(`{"counted":%t}`, counted)))
	if got := readAs[reportState](s.in.t, a).String(); got != want {
		s.in.t.Errorf("counted %t: got %s want %s", counted, got, want)
	}
	if got := readAs[reportState](s.in.t, s.get("/insights/reports/"+id)).String(); got != want {
		s.in.t.Errorf("counted %t: read %s want %s", counted, got, want)
	}
}

// wantEverywhere checks all figures about example.com.
func (s *server) wantEverywhere(what string, compliant, nonCompliant int64) {
	s.in.t.Helper()
	s.wantCounted(what, "example.com", compliant, nonCompliant)
	summary := fmt.Sprintf(`{"total":%d,"compliant":%d,"non_compliant":%d}`, compliant+nonCompliant, compliant, nonCompliant)
	s.get("/reports").wantBody(s.in.t, summary)
	s.get("/reports?from=2000-01-01").wantBody(s.in.t, summary)
	for _, path := range []string{"/insights/daily", "/insights/daily?by=domain", "/insights/senders", "/insights/senders?by=address&domain=example.com"} {
		var sum [2]int64
		for _, item := range readAs[page[struct {
			Compliant    int64 `json:"compliant"`
			NonCompliant int64 `json:"non_compliant"`
		}]](s.in.t, s.get(path)).Items {
			sum[0] += item.Compliant
			sum[1] += item.NonCompliant
		}
		if sum != [2]int64{compliant, nonCompliant} {
			s.in.t.Errorf("%s: %s: got %v want %d and %d", what, path, sum, compliant, nonCompliant)
		}
	}
}

func TestReportIsExcludedAndIncluded(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve(unscheduled)
		s.add("example.com")
		s.upload(about("example.com", "1", 1, 2).xml(), http.StatusCreated)
		other := about("example.com", "2", 10, 20)
		other.org = "other.example"
		id := *s.upload(other.xml(), http.StatusCreated)[0].ID
		s.wantEverywhere("both", 11, 22)
		for range 2 {
			s.setCounted(id, false, "counted false, held false, replaced false")
			s.wantEverywhere("one is excluded", 1, 2)
		}
		other.rows[0].count = 100 // a later version
		if got := statuses(s.upload(other.xml(), http.StatusCreated)); got != "replaced" {
			t.Errorf("a later version: got %s", got)
		}
		s.wantEverywhere("the later version too", 1, 2)
		later := s.reports("?state=excluded")[0].ID
		s.setCounted(later, true, "counted true, held false, replaced false")
		s.wantEverywhere("the later version counts", 101, 22)

		// The same for all reports of a reporter.
		for _, step := range []struct {
			body, want string
			compliant  int64
		}{
			{`{"reporter":"OTHER.example","from":"2001-01-01","to":"2001-01-02","counted":false}`, `{"changed":0}`, 101},
			{`{"reporter":"OTHER.example","counted":false}`, `{"changed":1}`, 1},
			{`{"reporter":"other.example","from":null,"counted":true}`, `{"changed":1}`, 101},
			{`{"reporter":null,"from":"2001-01-01","to":null,"counted":false}`, `{"changed":2}`, 0},
			{`{"from":"2001-01-01","counted":true}`, `{"changed":2}`, 101},
		} {
			a := s.send(changing(http.MethodPost, "/insights/reports/exclude", in.token, step.body))
			a.wantStatus(t, http.StatusOK)
			a.wantBody(t, step.want)
			nonCompliant := map[int64]int64{0: 0, 1: 2, 101: 22}[step.compliant]
			s.wantEverywhere(step.body, step.compliant, nonCompliant)
		}
	})
}

func TestReportIsDeleted(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve(unscheduled)
		s.add("example.com")
		report, rejection := s.someReport()
		for range 2 {
			for _, path := range []string{"/insights/reports/" + report, "/insights/rejected/" + rejection} {
				deleted := s.send(changing(http.MethodDelete, path, in.token, ""))
				deleted.wantStatus(t, http.StatusNoContent)
				if len(deleted.body) > 0 {
					t.Errorf("%s: got the body %q want none", path, deleted.body)
				}
				s.send(changing(http.MethodDelete, path, in.token, "")).wantStatus(t, http.StatusNotFound)
				s.get(path+"/original").wantStatus(t, http.StatusNotFound)
			}
			s.get("/insights/reports/"+report).wantStatus(t, http.StatusNotFound)
			s.wantEverywhere("deleted", 0, 0)
			if len(s.reports("")) != 0 || len(s.rejected()) != 0 {
				t.Error("what was deleted is listed")
			}
			again, other := s.someReport()
			if again == report {
				t.Error("the report that was deleted is back")
			}
			s.wantEverywhere("sent again", 1, 1)
			report, rejection = again, other
		}
	})
}

// TestImplausibleReportIsHeld checks that a forged count does not affect the counters of
// a domain.
func TestImplausibleReportIsHeld(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve(unscheduled)
		s.add("example.com")
		forged := s.upload(about("example.com", "forged", 9007199254740991, 0).xml(), http.StatusCreated)
		if got := statuses(forged); got != "held" || forged[0].Reason == nil {
			t.Fatalf("got %s want held with the reason", got)
		}
		s.upload(about("example.com", "forged", 9007199254740991, 0).xml(), http.StatusOK) // a duplicate
		s.upload(about("example.com", "1", 3, 4).xml(), http.StatusCreated)
		s.wantEverywhere("held", 3, 4)
		held := s.reports("?state=held")
		if len(held) != 1 {
			t.Fatalf("got %d reports held want 1", len(held))
		}
		s.setCounted(held[0].ID, false, "counted false, held true, replaced false")
		s.send(changing(http.MethodPatch, "/insights/reports/"+held[0].ID, in.token, `{"counted":true}`)).
			wantError(t, "released", http.StatusUnprocessableEntity, "count_too_large")
		s.wantEverywhere("refused", 3, 4)
		large := s.upload(about("example.com", "large", 1_000_000_000_000, 0).xml(), http.StatusCreated)[0].ID
		s.setCounted(*large, true, "counted true, held false, replaced false")
		s.wantCounted("released", "example.com", 1_000_000_000_003, 4)
		s.setCounted(*large, false, "counted false, held false, replaced false")
		s.wantEverywhere("excluded", 3, 4)
	})
}
