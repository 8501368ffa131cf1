package web_test

import (
	"flag"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/web"
)

var update = flag.Bool("update", false, "write the golden files anew")

// pages are all pages, with the file that each is held against.
var pages = []struct {
	name, path string
	empty      bool
}{
	{name: "overview", path: "/app/"},
	{name: "overview-empty", path: "/app/", empty: true},
	{name: "domain-new", path: "/app/domains/new"},
	{name: "domain-timeline", path: "/app/domains/example.com?done=domain-checked"},
	{name: "domain-timeline-empty", path: "/app/domains/example.com", empty: true},
	{name: "domain-sources-empty", path: "/app/domains/example.com/sources", empty: true},
	{name: "domain-tls-reports-empty", path: "/app/domains/example.com/reports?kind=tls", empty: true},
	{name: "sources-empty", path: "/app/sources", empty: true},
	{name: "domain-sources", path: "/app/domains/example.com/sources?group=address"},
	{name: "domain-check", path: "/app/domains/example.com/check"},
	{name: "domain-check-empty", path: "/app/domains/example.com/check", empty: true},
	{name: "domain-history", path: "/app/domains/example.com/history"},
	{name: "domain-spf", path: "/app/domains/example.com/spf"},
	{name: "domain-setup", path: "/app/domains/example.com/setup"},
	{name: "domain-setup-steps", path: "/app/domains/example.com/setup/steps"},
	{name: "domain-setup-empty", path: "/app/domains/example.com/setup", empty: true},
	{name: "domain-failure-reports", path: "/app/domains/example.com/reports?kind=failure"},
	{name: "domain-tls-reports", path: "/app/domains/example.com/reports?kind=tls"},
	{name: "domain-settings", path: "/app/domains/example.com/settings"},
	{name: "sources", path: "/app/sources?sort=name"},
	{name: "source", path: "/app/sources/network/AS64501?domain=example.com"},
	{name: "reports", path: "/app/reports"},
	{name: "reports-empty", path: "/app/reports", empty: true},
	{name: "report-aggregate", path: "/app/reports/rep_1"},
	{name: "report-odd", path: "/app/reports/rep_2"},
	{name: "report-failure", path: "/app/reports/rep_3"},
	{name: "report-tls", path: "/app/reports/rep_4"},
	{name: "rejected", path: "/app/reports/rejected"},
	{name: "exclude", path: "/app/reports/exclude?reporter=receiver.example&from=2026-11-01"},
	{name: "upload", path: "/app/reports/upload"},
	{name: "builder", path: "/app/builder?p=reject&sp=quarantine&np=reject&t=y&rua=a@example.com&domain=example.org"},
	{name: "builder-paste", path: "/app/builder?record=v%3DDMARC1%3B+p%3Dreject%3B+pct%3D50%3B+x%3D%3Cscript%3E"},
	{name: "settings-tokens", path: "/app/settings/tokens"},
	{name: "settings-members", path: "/app/settings/members"},
	{name: "settings-mailboxes", path: "/app/settings/mailboxes"},
	{name: "settings-retention", path: "/app/settings/retention"},
	{name: "settings-audit", path: "/app/settings/audit"},
	{name: "account", path: "/app/account"},
	{name: "account-elsewhere", path: "/app/account", empty: true},
	{name: "installation-teams", path: "/app/installation/teams"},
	{name: "installation-users", path: "/app/installation/users"},
	{name: "installation-audit", path: "/app/installation/audit"},
	{name: "sign-in", path: "/app/sign-in?next=%2Fapp%2Fsources"},
	{name: "welcome", path: "/app/welcome/" + goodInvitation},
	{name: "not-found", path: "/app/nothing"},
}

// hashedName is an asset with its hash, which changes with every letter of it.
var hashedName = regexp.MustCompile(`/app/static/([a-z]+)-[0-9a-f]{12}\.`)

// builtParts are what a page has only where the charts were built.
var builtParts = regexp.MustCompile(`\n<script type="module" src="/app/static/charts\.js"></script>|\n<div class="plot".*</div>| · <a href="/app/static/licenses.txt">Licences</a>|(<details class="numbers") open`)

// blankLines are left behind by templates.
var blankLines = regexp.MustCompile(`\n{2,}`)

func TestPages(t *testing.T) {
	t.Parallel()
	handlers := newWebs(t)
	for _, page := range pages {
		t.Run(page.name, func(t *testing.T) {
			t.Parallel()
			body := get(t, handlers[page.empty], page.path).Body.String()
			got := hashedName.ReplaceAllString(body, "/app/static/$1.")
			got = builtParts.ReplaceAllString(got, "$1")
			got = blankLines.ReplaceAllString(got, "\n")
			file := filepath.Join("testdata", page.name+".golden.html")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("got a page that differs from %s (-want +got):\n%s", file, diff)
			}
		})
	}
}

func newWeb(t *testing.T, b *backend) *web.Web {
	t.Helper()
	options := b.options()
	options.Log = slog.New(slog.DiscardHandler)
	pages, err := web.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// newWebs returns the pages of a team with data, and of one without.
func newWebs(t *testing.T) map[bool]*web.Web {
	t.Helper()
	webs := map[bool]*web.Web{}
	for _, empty := range []bool{false, true} {
		webs[empty] = newWeb(t, &backend{viewer: sampleViewer(), empty: empty})
	}
	return webs
}

// get asks for a page as the viewer of the backend.
func get(t *testing.T, handler http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	return send(handler, httptest.NewRequest(http.MethodGet, path, http.NoBody))
}

func send(handler http.Handler, r *http.Request) *httptest.ResponseRecorder {
	r.AddCookie(&http.Cookie{Name: "dmarcd_session", Value: goodSession})
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}
