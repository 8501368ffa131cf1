package e2e_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/test/daemon"
)

// someReport uploads a report and an unreadable file, and returns their ids.
func (s *server) someReport() (report, rejection string) {
	s.in.t.Helper()
	s.upload(about("example.com", "some", 1, 1).xml(), http.StatusCreated)
	s.upload("no report", http.StatusUnprocessableEntity)
	return s.reports("")[0].ID, s.rejected()[0].ID
}

// storedThings returns the endpoints of a report and of a rejected item, and the upload
// endpoint.
func storedThings(report, rejection string) []endpoint {
	return []endpoint{
		{http.MethodPost, "/reports", true},
		{http.MethodGet, "/insights/reports/" + report, false},
		{http.MethodGet, "/insights/reports/" + report + "/records", false},
		{http.MethodGet, "/insights/reports/" + report + "/original", false},
		{http.MethodGet, "/insights/rejected/" + rejection + "/original", false},
		{http.MethodPost, "/insights/rejected/" + rejection + "/retry", true},
	}
}

func TestReportsAreForTokensOfTheTeam(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve(unscheduled)
		s.add("example.com")
		report, rejection := s.someReport()
		cast := newErrorFixture(in)
		in.do("team", "create", "other", "--api")
		other := in.newToken("other")
		for _, e := range storedThings(report, rejection) {
			wanted := map[string]int{
				"": http.StatusUnauthorized, unknownToken: http.StatusUnauthorized, cast.revoked: http.StatusUnauthorized,
				cast.denied: http.StatusForbidden, cast.read: http.StatusOK, other: http.StatusNotFound,
			}
			if e.writes {
				wanted[cast.read] = http.StatusForbidden
			}
			if e.path == "/reports" { // no body here is a report
				wanted[other] = http.StatusUnprocessableEntity
			}
			for token, want := range wanted {
				s.send(e.request(token)).wantStatus(t, want)
			}
			s.send(request{method: http.MethodPut, path: e.path, token: in.token}).wantStatus(t, http.StatusMethodNotAllowed)
		}

		// An item of another team is like an unknown one.
		of := func(id string) []endpoint { return storedThings(id, id)[1:] }
		for i, e := range storedThings(report, rejection)[1:] {
			unknown := of("rep_zzzzzz")[i]
			if i > 2 {
				unknown = of("rej_zzzzzz")[i]
			}
			want, got := s.send(unknown.request(other)), s.send(e.request(other))
			if diff := cmp.Diff(want.comparable(), got.comparable()); diff != "" {
				t.Errorf("%s (-unknown +of another team):\n%s", e, diff)
			}
		}
	})
}

func TestReportsAreConditional(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve(unscheduled)
		s.add("example.com")
		report, _ := s.someReport()
		// Paths whose answer changes with another report or rejected item.
		changing := map[string]bool{
			"/insights/reports": true, "/insights/reports/" + report: false, "/insights/reports/" + report + "/records": false,
			"/insights/rejected": true, "/insights/daily": true, "/insights/senders": true,
		}
		tags := map[string]string{}
		for path := range changing {
			tags[path] = s.get(path).header.Get("ETag")
			s.ifNoneMatch(path, tags[path]).wantStatus(t, http.StatusNotModified)
			s.ifNoneMatch(path, `"other"`).wantStatus(t, http.StatusOK)
		}
		s.upload(zipped("report.xml", about("example.com", "one more", 1, 1).xml(), "note.txt", "no report"), http.StatusCreated)
		for path, changes := range changing {
			want := http.StatusNotModified
			if changes {
				want = http.StatusOK
			}
			s.ifNoneMatch(path, tags[path]).wantStatus(t, want)
		}
	})
}

func TestReportsWithBadQueries(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve(unscheduled)
		s.add("example.com")
		report, _ := s.someReport()
		for _, path := range []string{
			"/insights/reports?kind=other", "/insights/reports?genuine=maybe", "/insights/reports?limit=0", "/insights/reports?after=x",
			"/insights/reports?from=x", "/insights/reports?domain=bad_name", "/insights/reports?unclaimed=yes",
			"/insights/reports/" + report + "/records?limit=1001", "/insights/reports/" + report + "/records?after=x",
			"/insights/rejected?limit=-1", "/insights/rejected?after=x",
			"/insights/senders?by=x", "/insights/daily?by=week", "/insights/daily?from=2026-11-02&to=2026-11-01", "/insights/daily?domain=-",
		} {
			s.get(path).wantStatus(t, http.StatusUnprocessableEntity)
		}
	})
}

// TestRejectedIsReadAgain rejects forged mail, and retries it after the operator accepts
// such mail.
func TestRejectedIsReadAgain(t *testing.T) {
	each(t, reporterZone(), func(t *testing.T, in *installation) {
		s := in.serve(receiving("DMARCD_INTAKE_FORGED=refuse")...)
		s.add("example.com")
		address := in.reportAddress("default", "example.com", reporting)
		for i := range int64(3) {
			s.mail(address, mailWith(about("example.com", fmt.Sprint(i), 1<<i, 0).xml()))
			daemon.Eventually(t, seenLimit, "the mail is kept aside", func() bool { return len(s.rejected()) == int(i)+1 })
		}
		s.upload(about("example.com", "2", 4, 0).xml(), http.StatusCreated)
		refusals := s.rejected()
		s.Stop()

		s = in.serve(receiving()...)
		retry := func(id string) answer {
			return s.send(request{method: http.MethodPost, path: "/insights/rejected/" + id + "/retry", token: in.token})
		}
		retry(refusals[0].ID).wantStatus(t, http.StatusOK) // its report arrived another way
		retry(refusals[1].ID).wantStatus(t, http.StatusCreated)
		retry(refusals[1].ID).wantStatus(t, http.StatusNotFound)
		in.do("report", "retry", "--team", "default", refusals[2].ID)
		s.wantCounted("read again", "example.com", 7, 0)
		if got := s.rejected(); len(got) != 0 {
			t.Errorf("got %v still rejected want nothing", got)
		}
	})
}

func TestReportCommandsShowWhatTheAPIReturns(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve(unscheduled)
		s.add("example.com")
		s.someReport()
		if diff := cmp.Diff(s.reports(""), listed[listedReport](in, "report", "list", "--team", "default")); diff != "" {
			t.Errorf("the reports (-API +command):\n%s", diff)
		}
		if diff := cmp.Diff(s.rejected(), listed[listedRejection](in, "report", "rejected", "--team", "default")); diff != "" {
			t.Errorf("what was rejected (-API +command):\n%s", diff)
		}
		for name, args := range map[string][]string{
			"another domain": {"--domain", "other.example"}, "another kind": {"--kind", "tls"}, "unclaimed": {"--unclaimed"},
		} {
			if got := listed[listedReport](in, append([]string{"report", "list", "--team", "default"}, args...)...); len(got) != 0 {
				t.Errorf("%s: got %v want none", name, got)
			}
		}
		if got := listed[listedReport](in, "report", "list", "--team", "default", "--domain", "EXAMPLE.com."); len(got) != 1 {
			t.Errorf("the domain in another form: got %d reports want 1", len(got))
		}
		for _, row := range []struct {
			name string
			args []string
			want int
		}{
			{"a kind that does not exist", []string{"report", "list", "--team", "default", "--kind", "other"}, 2},
			{"a retry of what is still no report", []string{"report", "retry", "--team", "default"}, 1},
		} {
			if r := in.run(command{args: row.args}); r.Status != row.want {
				t.Errorf("%s: got status %d want %d: %s", row.name, r.Status, row.want, r.Stderr)
			}
		}
		if got := s.rejected(); len(got) != 1 {
			t.Errorf("after a retry: got %d rejected want 1", len(got))
		}
	})
}
