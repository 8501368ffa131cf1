package adversary_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// signIn begins a session of the user.
func (v *tenant) signIn() {
	v.t.Helper()
	if got := v.post("/app/sign-in", url.Values{"email": {v.email}, "password": {password}}); got.status != http.StatusSeeOther {
		v.t.Fatalf("%s: sign in: got %v want 303", v.name, got)
	}
}

// uploadOnPage uploads a file with the form of the page.
func (v *tenant) uploadOnPage(content []byte) answer {
	v.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part := musttest.Get(form.CreateFormFile("file", "report.xml"))(v.t)
	_, _ = part.Write(content) // a buffer takes all
	musttest.Do(v.t, form.Close())
	return v.send(http.MethodPost, "/app/reports/upload", form.FormDataContentType(), body.Bytes())
}

// entrances are the ways in which a report reaches a team. Each returns the status, of
// HTTP or SMTP, and the error code, where the entrance has one.
func (a *arena) entrances(v *tenant, domain string) map[string]func(id string) (status int, code string) {
	a.t.Helper()
	box, to := a.mailbox(v.name, domain), a.address(v.name, domain)
	v.signIn()
	of := func(got answer) (int, string) { return got.status, got.header.Get("Dmarcd-Error") }
	return map[string]func(string) (int, string){
		"API": func(id string) (int, string) {
			return of(v.send(http.MethodPost, "/reports", "application/octet-stream", []byte(about(domain, id, 1, 0).xml())))
		},
		"page": func(id string) (int, string) { return of(v.uploadOnPage([]byte(about(domain, id, 1, 0).xml()))) },
		"TLS intake": func(id string) (int, string) {
			return of(v.send(http.MethodPost, "/tlsrpt/"+box, "application/tlsrpt+json", []byte(tlsReport(domain, id))))
		},
		"SMTP": func(id string) (int, string) {
			return smtpCode(a.tryMail("127.2.0.1", "x@reporter.test", to, mailFrom("reporter.test", about(domain, id, 1, 0).xml()))), ""
		},
	}
}

// TestLowDisk runs the daemon where too little of the disk is left. Every entrance
// refuses for the time being, nothing is stored, and what is stored can be read.
func TestLowDisk(t *testing.T) {
	onSQLite(t, func(t *testing.T, a *arena) {
		a.victim.upload([]byte(about("victim.test", "before", 1, 0).xml()))
		ample := a.in
		a.in = a.in.With(fmt.Sprintf("DMARCD_LIMIT_FREE_DISK=%d", 1<<50))
		a.restart()
		before := a.used()
		for name, send := range a.entrances(a.victim, "victim.test") {
			want, wantCode := http.StatusServiceUnavailable, "low_disk"
			switch name {
			case "SMTP":
				want, wantCode = 452, ""
			case "page": // its words say the same of the database and the disk
				wantCode = "temporarily_unavailable"
			}
			if status, code := send("on a full disk by " + name); status != want || code != wantCode {
				t.Errorf("%s: got %d %q want %d %q", name, status, code, want, wantCode)
			}
		}
		rejected := a.victim.send(http.MethodPost, "/reports", "application/octet-stream", []byte(about("victim.test", "once more", 1, 0).xml()))
		if rejected.header.Get("Retry-After") == "" {
			t.Errorf("API: got %v without Retry-After", rejected)
		}
		a.victim.wantCounts("on a full disk", "victim.test", 1, 0)
		if rejected := list[listedReport](a.victim, "/insights/rejected"); len(rejected) != 0 {
			t.Errorf("got %d rejected items want none", len(rejected))
		}
		if got := a.used() - before; got > mega {
			t.Errorf("the files grew by %d bytes want next to nothing", got)
		}
		a.in = ample
		a.restart()
		for name, send := range a.entrances(a.victim, "victim.test") {
			if status, code := send("on an ample disk by " + name); status >= 300 {
				t.Errorf("%s: got %d %q want it taken again", name, status, code)
			}
		}
		eventually(t, patience, "the reports of three entrances count", func() bool { return a.victim.counted("").Total == 4 })
		a.d.Stop()
	})
}
