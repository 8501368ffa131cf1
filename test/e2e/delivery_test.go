package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/smtp"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// receiving returns the settings of an installation that receives mail for
// reports.example.
func receiving(more ...string) []string {
	return slices.Concat([]string{reporting, "DMARCD_SMTP_LISTEN=127.0.0.1:0", "DMARCD_SMTP_RATE=0", unscheduled}, more)
}

// seenLimit is how long a report over SMTP may take until it counts. An idle machine
// needs at most 2 s; this one may be busy.
const seenLimit = 10 * time.Minute

// receipt is the result for one item of an upload.
type receipt struct {
	Kind     *string `json:"kind"`
	Status   string  `json:"status"`
	Reason   *string `json:"reason"`
	ReportID *string `json:"report_id"`
	Domain   *string `json:"domain"`
	Records  int     `json:"records"`
	Messages int64   `json:"messages"`
	ID       *string `json:"id"`
}

// listedReport is an element of the list of reports.
type listedReport struct {
	ID             string  `json:"id"`
	Kind           string  `json:"kind"`
	ReportID       *string `json:"report_id"`
	Domain         *string `json:"domain"`
	Messages       int64   `json:"messages"`
	Compliant      int64   `json:"compliant"`
	Sessions       int64   `json:"sessions"`
	FailedSessions int64   `json:"failed_sessions"`
	Intake         string  `json:"intake"`
	Genuine        string  `json:"genuine"`
	Replaced       bool    `json:"replaced"`
}

// listedRejection is an element of the list of rejected items.
type listedRejection struct {
	ID      string `json:"id"`
	Reason  string `json:"reason"`
	Intake  string `json:"intake"`
	Genuine string `json:"genuine"`
	Size    int64  `json:"size"`
}

func uploading(token, content string) request {
	return request{
		method: http.MethodPost, path: "/reports", token: token, body: content,
		header: map[string]string{"Content-Type": "application/octet-stream"},
	}
}

// upload uploads content, checks the status, and returns the receipts.
func (s *server) upload(content string, want int) []receipt {
	s.in.t.Helper()
	a := s.send(uploading(s.in.token, content))
	a.wantStatus(s.in.t, want)
	var receipts struct {
		Items []receipt `json:"items"`
	}
	if err := json.Unmarshal(a.body, &receipts); err != nil {
		s.in.t.Fatalf("%v in %s", err, a.body)
	}
	return receipts.Items
}

// statuses returns the distinct statuses of receipts, in order.
func statuses(receipts []receipt) string {
	var words []string
	for _, r := range receipts {
		words = append(words, r.Status)
	}
	slices.Sort(words)
	return strings.Join(slices.Compact(words), " ")
}

// mail sends a message from reporter.example, which must be accepted.
func (s *server) mail(to, content string) {
	s.in.t.Helper()
	s.mailFrom("bounce@reporter.example", to, content)
}

// mailFrom is mail with another envelope sender.
func (s *server) mailFrom(from, to, content string) {
	s.in.t.Helper()
	if err := s.tryMail(from, to, content); err != nil {
		s.in.t.Fatalf("a mail to the server: %v", err)
	}
}

// tryMail is mailFrom for messages that may be rejected. It may be called from any
// goroutine.
func (s *server) tryMail(from, to, content string) error {
	return smtp.SendMail(s.SMTP, nil, from, []string{to}, []byte(content))
}

// smtpCode returns the SMTP code of an error, 0 for an error of another kind, and 250 for
// nil.
func smtpCode(err error) int {
	var rejection *textproto.Error
	switch {
	case err == nil:
		return 250
	case errors.As(err, &rejection):
		return rejection.Code
	}
	return 0
}

// importCounts is the summary of an import.
type importCounts struct {
	Files     int   `json:"files"`
	Stored    int   `json:"stored"`
	Replaced  int   `json:"replaced"`
	Duplicate int   `json:"duplicate"`
	Unclaimed int   `json:"unclaimed"`
	Rejected  int   `json:"rejected"`
	Records   int   `json:"records"`
	Messages  int64 `json:"messages"`
}

// bringIn imports files, checks the exit status, and returns the summary.
func (in *installation) bringIn(status int, paths ...string) importCounts {
	in.t.Helper()
	r := in.run(command{args: append([]string{"import", "--team", "default", "--json"}, paths...)})
	if r.Status != status {
		in.t.Errorf("dmarcd import: got status %d want %d; it said: %s", r.Status, status, r.Stderr)
	}
	var counts importCounts
	if err := json.Unmarshal([]byte(r.Stdout), &counts); err != nil {
		in.t.Fatalf("%v in %s%s", err, r.Stdout, r.Stderr)
	}
	return counts
}

// writeFiles writes pairs of name and content to a folder.
func writeFiles(t *testing.T, folder string, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		musttest.Do(t, os.WriteFile(filepath.Join(folder, pairs[i]), []byte(pairs[i+1]), 0o600))
	}
}

// counted returns the summary of a domain, or of the team for "".
func (s *server) counted(name string) string {
	s.in.t.Helper()
	path := "/reports"
	if name != "" {
		path += "/" + name
	}
	a := s.get(path)
	a.wantStatus(s.in.t, http.StatusOK)
	return strings.TrimSpace(a.text())
}

// wantCounted checks the summary of a domain, or of the team for "".
func (s *server) wantCounted(what, name string, compliant, nonCompliant int64) {
	s.in.t.Helper()
	if got, want := s.counted(name), summary(compliant, nonCompliant); got != want {
		s.in.t.Errorf("%s: got %s want %s", what, got, want)
	}
}

func (s *server) awaitCounted(name string, limit time.Duration, compliant, nonCompliant int64) {
	s.in.t.Helper()
	daemon.Eventually(s.in.t, limit, fmt.Sprintf("%d and %d messages are counted", compliant, nonCompliant), func() bool {
		return s.counted(name) == summary(compliant, nonCompliant)
	})
}

// reports lists the stored reports, newest first.
func (s *server) reports(query string) []listedReport {
	s.in.t.Helper()
	return all[listedReport](s, "/insights/reports"+query, 100)
}

// rejected lists the rejected items, newest first.
func (s *server) rejected() []listedRejection {
	s.in.t.Helper()
	return all[listedRejection](s, "/insights/rejected", 100)
}

// TestSelfTest sends a synthetic report through the daemon. The mail servers of the
// report domain cannot be reached in the test, so it goes to the local listener.
func TestSelfTest(t *testing.T) {
	each(t, checkedZone, func(t *testing.T, in *installation) {
		s := in.serve(receiving()...)
		s.add("example.com")
		type test struct {
			Passed bool
			Stages []struct {
				Name, Detail string
				Passed       bool
			}
		}
		before := s.get("/reports").text()
		got := readAs[test](t, s.post("/domains/example.com/selftest", ""))
		var names []string
		for _, stage := range got.Stages {
			names = append(names, stage.Name)
			if passed := stage.Name != "mx" && stage.Name != "smtp"; stage.Passed != passed {
				t.Errorf("%s: got %+v", stage.Name, stage)
			}
		}
		if strings.Join(names, " ") != "mx smtp spool verification store" || got.Passed {
			t.Errorf("got %+v", got)
		}
		if after := s.get("/reports").text(); after != before {
			t.Errorf("it was counted: got %s, want %s", after, before)
		}
		if list := s.get("/insights/reports").text(); strings.Contains(list, "self-test") {
			t.Errorf("it is listed: %s", list)
		}
		s.post("/domains/unknown.example/selftest", "").wantStatus(t, http.StatusNotFound)
		s.post("/domains/example.com/selftest?x=1", "").wantStatus(t, http.StatusUnprocessableEntity)
	})
}
