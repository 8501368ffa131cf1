package e2e_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// passing are the parts of what commands print that differ from one run to the next: times, numbers of
// events and ids of messages.
var passing = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[Z+0-9:]*|\bevent \d+|\b\d+ ms|"duration_ms": \d+|http://127\.0\.0\.1:\d+`)

// remote runs a command with the API of the server, in an environment with nothing else.
func (s *server) remote(token, stdin string, args ...string) daemon.Result {
	s.in.t.Helper()
	return daemon.Installation{Program: s.in.program, Settings: []string{
		"DMARCD_SERVER=" + s.baseURL, "DMARCD_API_TOKEN=" + token, "GORACE=atexit_sleep_ms=0",
	}}.Run(s.in.t, stdin, args...)
}

// TestCommandsPrintTheSameFromTheDatabaseAndFromAServer runs each command that has --server with both,
// and compares output, errors and exit status. A line that begins with "undo" is run on the database in
// between.
func TestCommandsPrintTheSameFromTheDatabaseAndFromAServer(t *testing.T) {
	each(t, checkedZone, func(t *testing.T, in *installation) {
		s := in.serve("DMARCD_REPORT_DOMAIN=reports.example")
		s.add("example.com")
		s.firstCheck("example.com")
		question := s.ask("example.com")
		s.upload(about("elsewhere.example", "unclaimed", 1, 1).xml(), http.StatusCreated)
		report, rejected := s.someReport()
		in.do("domain", "tags", "--team", "default", "example.com", "shop")
		folder := t.TempDir()
		lines := strings.NewReplacer("REPORT", report, "REJECTED", rejected, "QUESTION", question, "FOLDER", folder).Replace(`
domain list
domain list --tag shop
domain list --tag none
domain list --tag b@d
domain add example.net
undo domain delete --team default example.net
domain add example.com EXAMPLE.com. bad_name
domain add -
domain verify example.com
domain verify other.example
domain purpose example.com business
domain purpose example.com none
domain purpose example.com persnal
domain purpose other.example none
domain tags example.com eu shop
domain setup example.com
domain setup --format bind example.com
domain setup --format terraform-hashicorp --origin reports.example example.com
domain setup --format bind
domain parked example.com yes
domain parked example.com no
domain parked example.com yess
domain forwarding example.com 290
domain forwarding example.com 0
domain forwarding example.com many
domain sender example.com AS64496:others yours
domain sender example.com AS64496:others automatic
domain sender example.com nosuch yours
domain sender example.com bad_key yours
domain sender example.com 10.0.0.0/7 yours
check example.com
check --verbose example.com other.example
check --format bind example.com
check --selector s1 example.com
check bad_name example.com
advise
advise --tag shop --limit 1
advise example.com
advise other.example
advise --format bind example.com
domain answer -- example.com QUESTION yours
undo domain sender --team default -- example.com QUESTION automatic
domain answer example.com nosuch yours
report list
report list --kind aggregate --limit 3
report list --domain example.com --state counted --tag shop
report list --unclaimed
report list --state foo
report rejected
report rejected --limit 0
report retry
report retry REJECTED rej_1
report exclude REPORT
report include REPORT rep_1
report exclude --org Reporter
report exclude nonsense
report delete rep_1 rej_1
event list --limit 2
event list --kind domain.added --domain EXAMPLE.com.
event list --domain other.example
event list --kind foo
alert list
alert list --open --limit 1
alert list --domain other.example
alert test
sender add our-crm CRM --network 192.0.2.128/25 --class yours
sender list
sender remove our-crm
undo sender add --team default our-crm CRM --network 192.0.2.128/25
sender remove nosuch
sender add nosuch Name
export
export --domain example.com --from 2026-11-14 --to 2026-11-14
export --domain other.example
export --format csv --all
export --format xlsx
export --output FOLDER/records.csv
selftest other.example
domain delete example.com
undo domain add --team default example.com
domain delete other.example
`)
		withJSON := []string{
			"domain list", "domain verify example.com", "domain setup example.com", "check example.com", "advise", "advise example.com", "report list", "report rejected",
			"event list --limit 2", "alert list", "sender add", "sender list",
		}
		both := func(line string) {
			before, after, ended := strings.Cut(line, " -- ")
			args := append(strings.Fields(before), "--team", "default")
			if ended { // a key may begin with a hyphen
				args = append(append(args, "--"), strings.Fields(after)...)
			}
			stdin := "a.example\nb.example # comment\n"
			undo := func() {
				if _, rest, found := strings.Cut(lines, "\n"+line+"\nundo "); found {
					undone, _, _ := strings.Cut(rest, "\n")
					in.do(strings.Fields(undone)...)
				}
				if line == "domain add -" {
					in.do("domain", "delete", "--team", "default", "a.example")
					in.do("domain", "delete", "--team", "default", "b.example")
				}
			}
			var diff string
			for end := time.Now().Add(time.Minute); ; { // the server works on new domains meanwhile
				local := in.run(command{args: args, stdin: stdin})
				undo()
				remote := s.remote(in.token, stdin, args...)
				undo()
				for _, r := range []*daemon.Result{&local, &remote} {
					r.Stdout, r.Stderr = passing.ReplaceAllString(r.Stdout, "…"), passing.ReplaceAllString(r.Stderr, "…")
				}
				if diff = cmp.Diff(local, remote); diff == "" || time.Now().After(end) {
					break
				}
			}
			if diff != "" {
				t.Errorf("dmarcd %s (-database +server):\n%s", line, diff)
			}
		}
		for line := range strings.Lines(strings.TrimSpace(lines)) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "undo ") {
				continue
			}
			both(line)
			for _, begin := range withJSON {
				if strings.HasPrefix(line, begin) {
					both(line + " --json")
					break
				}
			}
		}
		if content := musttest.Get(os.ReadFile(filepath.Join(folder, "records.csv")))(t); !strings.Contains(string(content), "example.com") {
			t.Errorf("got %q, want records", content)
		}
	})
}

// TestErrorsOfAServer has each end in one line with the next step, without the token.
func TestErrorsOfAServer(t *testing.T) {
	onSQLite(t, checkedZone, func(t *testing.T, in *installation) {
		s := in.serve()
		reading := in.newToken("default", "--scope", "read")
		in.do("team", "create", "denied")
		denied := in.newToken("denied")
		other := httptest.NewServer(http.NotFoundHandler())
		t.Cleanup(other.Close)
		page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
		t.Cleanup(page.Close)
		away := httptest.NewServer(http.RedirectHandler("http://192.0.2.1/", http.StatusFound))
		t.Cleanup(away.Close)
		for _, tt := range []struct {
			line, server, token string
			status              int
			want                string
		}{
			{"domain list", s.baseURL, "", 2, "set DMARCD_API_TOKEN to a token"},
			{"domain list", s.baseURL, "dmd_wrong", 2, "rejects the token; set DMARCD_API_TOKEN"},
			{"domain list", s.baseURL, denied, 1, "`dmarcd team allow`"},
			{"domain add a.example", s.baseURL, reading, 1, "This token does not have the scope write."},
			{"domain list --team other", s.baseURL, in.token, 2, `has a token of the team "default"; leave out --team`},
			{"domain list", strings.TrimSuffix(s.baseURL, "/api"), in.token, 2, "The API begins at "},
			{"domain list", "http://127.0.0.1:1/api", in.token, 2, "cannot be reached: dial tcp 127.0.0.1:1"},
			{"domain list", other.URL, in.token, 2, "is not the API of dmarcd"},
			{"domain list", page.URL, in.token, 2, "is not the API of dmarcd"},
			{"domain list", away.URL, in.token, 2, "is not the API of dmarcd"},
			{"domain list", "http://dmarc.example.com/api", in.token, 2, "would send the token unencrypted; use https"},
			{"domain list", "dmarc.example.com", in.token, 2, "must be the base URL of the API, such as https://"},
			{"domain list --server " + s.baseURL + " --database x.db", "", in.token, 2, "not both"},
			{"domain list", "", in.token, 2, `required flag(s) "team" not set; or use the API of a server`},
			{"domain list --server " + s.baseURL, "", in.token, 0, ""},
			{"report delete rep_1", s.baseURL, in.token, 1, "rep_1: report not found"},
			{"domain verify a.example", s.baseURL, in.token, 1, "the team has no domain a.example; `dmarcd domain list` lists its domains"},
		} {
			r := daemon.Installation{Program: in.program, Settings: []string{
				"DMARCD_SERVER=" + tt.server, "DMARCD_API_TOKEN=" + tt.token, "GORACE=atexit_sleep_ms=0",
			}}.Run(t, "", strings.Fields(tt.line)...)
			if lines := strings.Count(r.Stderr, "\n"); r.Status != tt.status || !strings.Contains(r.Stderr, tt.want) || lines > 1 || strings.Contains(r.Stderr, "dmd_") {
				t.Errorf("%s with %q: got status %d and %q, want %d and one line with %q", tt.line, tt.server, r.Status, r.Stderr, tt.status, tt.want)
			}
		}
	})
}
