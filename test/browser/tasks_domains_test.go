package browser_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// TestTask16TagFilteredDomains filters 50 of 1,000 domains and tags them, in 4 clicks: the list, the
// search, all that match, the tag. Exactly those domains have the tag then, and the filter is kept.
func TestTask16TagFilteredDomains(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	arguments := []string{"domain", "add", "--team", "default"}
	for i := range 950 {
		arguments = append(arguments, fmt.Sprintf("brand%03d.example", i))
	}
	for i := range 50 {
		arguments = append(arguments, fmt.Sprintf("shop%02d.example", i))
	}
	s.run(arguments...)
	b := s.open(t)
	b.visit(s.link, http.StatusOK)
	b.acceptInvitation(s.link, "ada@example.com")
	becomes := func(want string) {
		t.Helper()
		daemon.Eventually(t, guideLimit, "the list says "+want, func() bool { return strings.Contains(b.text("[data-result]"), want) })
	}

	b.click(`nav.main a[href="/app/domains"]`)
	b.shows("1–50 of 1,000")
	b.do(chromedp.Click(chromedp.CSS("#search")), chromedp.KeyEvent("shop"))
	becomes("50 of 1,000 match.")
	if focus, path := read(b, evaluate[string](`document.activeElement.id`)), b.path(); focus != "search" || path != "/app/domains?search=shop" {
		t.Errorf("after typing: got the focus on %q at %s, want it on the search, and the filter in the address", focus, path)
	}
	b.do(chromedp.Click(chromedp.CSS(`#bulk input[name="all"]`)), chromedp.Click(chromedp.CSS("#bulk-tags")))
	b.load(chromedp.KeyEvent("shops" + kb.Enter))
	b.shows("The tags were changed.")
	b.shows("50 of 1,000 match.")
	b.inspect("domains-tagged")

	status, body := s.api(http.MethodGet, "/insights/domains?tag=shops&limit=1000", s.token, "")
	var page struct{ Items []struct{ Domain string } }
	musttest.Do(t, json.Unmarshal([]byte(body), &page))
	if status != http.StatusOK || len(page.Items) != 50 {
		t.Fatalf("got %d domains with the tag (status %d), want 50", len(page.Items), status)
	}
	for i, item := range page.Items {
		if want := fmt.Sprintf("shop%02d.example", i); item.Domain != want {
			t.Errorf("got the tag on %s, want %s", item.Domain, want)
		}
	}
	if *screenshots != "" {
		for _, l := range looks {
			l.wear(b)
			b.visit("/app/domains", http.StatusOK)
			b.draw("domains-many-"+l.name, l)
		}
	}
}
