package web_test

import (
	"html"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
)

var (
	// aboutMail matches the pages that are about some days and the domains with a tag.
	aboutMail = regexp.MustCompile(`^/app/($|(senders|changes|reports|print|search)$|senders/|reports/rep_\w+$|domains/[^/]+\.[^/]+(/(senders|dns|changes|reports|policy|print|setup|settings))?$)`)
	anchor    = regexp.MustCompile(`(?s)<a [^>]*href="([^"]*)"[^>]*>(.*?)</a>`)
	getForm   = regexp.MustCompile(`(?s)<form[^>]* method="get" action="([^"]*)".*?</form>`)
)

// filters are the filters of the lists of domains and senders. The sample has matches for them.
var filters = map[string]string{"tag": "shop", "sender": "e", "failing": "yes"}

// TestFiltersFollowEveryLink opens every page with a period, a tag, and the filters of the lists:
// the links and forms to pages that are about mail keep all of them.
func TestFiltersFollowEveryLink(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	musttest.Get(s.service.Team(s.team, service.CommandLine()).SetTags(t.Context(), sampleDomain, []string{"shop"}))(t)
	seen := map[string]bool{}
	for _, page := range s.allPages() {
		address := musttest.Get(url.Parse(page.path))(t)
		if page.user != operator || !aboutMail.MatchString(address.Path) {
			continue
		}
		query := address.Query()
		query.Set("from", "2026-11-01")
		query.Set("to", "2026-11-15")
		for name, value := range filters {
			query.Set(name, value)
		}
		body := s.body(t, operator, address.Path+"?"+query.Encode())
		for _, link := range anchor.FindAllStringSubmatch(body, -1) {
			target, err := url.Parse(html.UnescapeString(link[1]))
			if err != nil || !aboutMail.MatchString(target.Path) || target.Query().Has("csv") {
				continue
			}
			seen[target.Path] = true
			got := target.Query()
			cleared := link[2] == "Clear" || strings.HasPrefix(link[2], "Show all")
			for name, value := range filters {
				if got.Get(name) != value && !cleared {
					t.Errorf("%s: the filter %s does not follow the link to %s", page.name, name, target)
				}
			}
			if got.Get("days") == "" && (got.Get("from") == "" || got.Get("to") == "") {
				t.Errorf("%s: the period does not follow the link to %s", page.name, target)
			}
		}
		for _, form := range getForm.FindAllStringSubmatch(body, -1) {
			if !aboutMail.MatchString(form[1]) {
				continue
			}
			for _, name := range append(slices.Collect(maps.Keys(filters)), "from", "to") {
				if !strings.Contains(form[0], ` name="`+name+`"`) {
					t.Errorf("%s: the form for %s does not send %s", page.name, form[1], name)
				}
			}
		}
	}
	const enough = 20
	if len(seen) < enough {
		t.Errorf("got links to %d pages, want at least %d: %v", len(seen), enough, seen)
	}
}

// TestInternationalDomain shows a domain in Unicode, with its A-labels beside it.
func TestInternationalDomain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	musttest.Get(s.service.Team(s.team, service.CommandLine()).AddDomain(t.Context(), "bücher.example"))(t)
	const domain = "/app/domains/xn--bcher-kva.example"
	for _, path := range []string{"/app/", "/app/search?q=xn--b", "/app/print", domain, domain + "/senders", domain + "/dns", domain + "/policy", domain + "/print", domain + "/setup"} {
		if body := s.body(t, operator, path); !strings.Contains(body, "bücher.example (xn--bcher-kva.example)") {
			t.Errorf("%s: the name is not shown in both forms", path)
		}
	}
}
