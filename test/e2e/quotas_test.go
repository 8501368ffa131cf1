package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// wantError compares the status and code of an error.
func (a answer) wantError(t *testing.T, what string, status int, code string) {
	t.Helper()
	if got := a.header.Get("Dmarcd-Error"); a.status != status || got != code {
		t.Errorf("%s: got %d %q want %d %q: %s", what, a.status, got, status, code, a.body)
	}
}

// TestQuotasHoldAtEveryEntrance exhausts the daily reports of a team, and sends another
// one over every transport.
func TestQuotasHoldAtEveryEntrance(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve(receiving()...)
		s.add("example.com")
		address := in.reportAddress("default", "example.com", reporting)
		mailbox, _, _ := strings.Cut(address, "@")
		report := func(id string) string { return about("example.com", id, 1, 1).xml() }
		s.upload(report("1"), http.StatusCreated)
		in.do("team", "quota", "default", "reports=1", "domains=1")

		post := func(body string) answer {
			return s.send(request{method: http.MethodPost, path: "/reports", token: in.token, body: body})
		}
		post(report("2")).wantError(t, "an upload", http.StatusForbidden, "quota_exceeded")
		s.reporter(http.MethodPost, "/tlsrpt/"+mailbox, "application/tlsrpt+json", tlsReport("example.com", "2"), http.StatusTooManyRequests)
		if got := smtpCode(s.tryMail("bounce@reporter.example", address, mailWith(report("2")))); got != 452 {
			t.Errorf("a mail: got %d want 452", got)
		}
		file := filepath.Join(t.TempDir(), "2.xml")
		musttest.Do(t, os.WriteFile(file, []byte(report("2")), 0o600))
		r := in.run(command{args: []string{"import", "--team", "default", file}})
		if r.Status == 0 || !strings.Contains(r.Stderr, "daily quota of reports") {
			t.Errorf("an import: got status %d and %s want the reason", r.Status, r.Stderr)
		}
		s.send(request{
			method: http.MethodPost, path: "/domains", token: in.token, body: `{"domain": "example.org"}`,
			header: map[string]string{"Content-Type": "application/json"},
		}).wantError(t, "a domain", http.StatusForbidden, "quota_exceeded")
		s.wantCounted("after all were refused", "", 1, 1)

		if shown := in.do("team", "quota", "default"); !strings.Contains(strings.Join(strings.Fields(shown), " "), "reports 1 1") {
			t.Errorf("the quotas: got %s want one report of one", shown)
		}
		in.do("team", "quota", "default", "reports=none")
		s.upload(report("2"), http.StatusCreated)
		metrics := s.outside("/metrics").text()
		for _, want := range []string{`dmarcd_reports_total{intake="upload",kind="aggregate",status="stored"} 2`, "dmarcd_stored_bytes "} {
			if !strings.Contains(metrics, want) {
				t.Errorf("the metrics: want %s", want)
			}
		}
	})
}

// TestADeletedDomainLeavesNothing deletes a domain with its reports, and adds it again.
func TestADeletedDomainLeavesNothing(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve(receiving()...)
		s.add("example.com")
		address := in.reportAddress("default", "example.com", reporting)
		mailbox, _, _ := strings.Cut(address, "@")
		s.mail(address, mailWith("no report"))
		daemon.Eventually(t, daemon.StartLimit, "the mail is rejected", func() bool { return len(s.rejected()) == 1 })
		s.reporter(http.MethodPost, "/tlsrpt/"+mailbox, "application/tlsrpt+json", "no report", http.StatusUnprocessableEntity)
		if got := len(s.rejected()); got != 1 {
			t.Errorf("after a TLS report that cannot be read: got %d rejected items want 1", got)
		}
		s.remove("example.com")
		s.reporter(http.MethodPost, "/tlsrpt/"+mailbox, "application/tlsrpt+json", tlsReport("example.com", "1"), http.StatusNotFound)
		if got := smtpCode(s.tryMail("bounce@reporter.example", address, mailWith("no report"))); got != 550 {
			t.Errorf("a mail to the retired address: got %d want 550", got)
		}
		daemon.Eventually(t, daemon.StartLimit, "what was rejected is gone", func() bool { return len(s.rejected()) == 0 })
		daemon.Eventually(t, daemon.StartLimit, "nothing is stored", func() bool {
			return strings.Contains(strings.Join(strings.Fields(in.do("team", "quota", "default")), " "), "stored 0 none unreadable 0 none")
		})
		s.add("example.com")
		if again := in.reportAddress("default", "example.com", reporting); again != address {
			t.Errorf("the domain that was added again: got the address %s want %s", again, address)
		}
	})
}

// TestUnknownParameters checks that unknown parameters are an error on additions, and
// ignored by the seven endpoints.
func TestUnknownParameters(t *testing.T) {
	each(t, checkedZone, func(t *testing.T, in *installation) {
		s := in.serve()
		s.add("example.com")
		s.firstCheck("example.com")
		report, rejection := s.someReport()
		list := append(additions("example.com"),
			endpoint{http.MethodPost, "/reports", true},
			endpoint{http.MethodGet, "/insights/reports/" + report, false},
			endpoint{http.MethodPatch, "/insights/reports/" + report, true},
			endpoint{http.MethodDelete, "/insights/reports/" + report, true},
			endpoint{http.MethodPost, "/insights/reports/exclude", true},
			endpoint{http.MethodDelete, "/insights/rejected/" + rejection, true},
			endpoint{http.MethodGet, "/insights/reports/" + report + "/records", false},
			endpoint{http.MethodGet, "/insights/reports/" + report + "/original", false},
			endpoint{http.MethodGet, "/insights/rejected/" + rejection + "/original", false},
			endpoint{http.MethodPost, "/insights/rejected/" + rejection + "/retry", true},
		)
		for _, e := range list {
			e.path += "?unknown=1"
			a := s.send(e.request(in.token))
			a.wantError(t, e.path, http.StatusUnprocessableEntity, "unknown_parameter")
			if !strings.Contains(string(a.body), `"code":"unknown_parameter"`) {
				t.Errorf("%s: got %s want the code", e.path, a.body)
			}
		}
		for _, path := range []string{"/domains", "/domains/example.com", "/reports", "/reports/example.com"} {
			s.get(path+"?unknown=1").wantStatus(t, http.StatusOK)
		}
	})
}

// TestUploadOfAForm uploads files like a browser or curl -F.
func TestUploadOfAForm(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve()
		s.add("example.com")
		const boundary = "xYzZy"
		form := ""
		for _, id := range []string{"1", "2"} {
			form += "--" + boundary + "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + id + ".xml\"\r\n\r\n" +
				about("example.com", id, 1, 1).xml() + "\r\n"
		}
		post := func(body string) answer {
			return s.send(request{
				method: http.MethodPost, path: "/reports", token: in.token, body: body,
				header: map[string]string{"Content-Type": "multipart/form-data; boundary=" + boundary},
			})
		}
		post(form+"--"+boundary+"--\r\n").wantStatus(t, http.StatusCreated)
		s.wantCounted("two reports in one form", "", 2, 2)
		post(form).wantError(t, "a form without its end", http.StatusBadRequest, "invalid_form")
	})
}
