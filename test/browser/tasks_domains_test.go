package browser_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestTask16 filters 50 of 1,000 domains and tags them, in four clicks: the list, the search, all that
// match, the tag. Exactly those domains have the tag then, and the filter is kept.
func TestTask16(t *testing.T) {
	t.Parallel()
	inBothWays(t, manyDomains, func(t *testing.T, b *task) {
		b.click(`nav.main a[href="/app/domains"]`)
		b.wants("1–50 of 1,000")
		b.mark("#search", kb.Shift)
		b.do(chromedp.KeyEvent("shop"))
		b.becomes("[data-result]", "50 of 1,000 match.")
		if focus, path := read(b.tab, evaluate[string](`document.activeElement.id`)), b.path(); focus != "search" || path != "/app/domains?search=shop" {
			t.Errorf("after typing: got the focus on %q at %s, want it on the search, and the filter in the address", focus, path)
		}
		b.mark(`#bulk input[name="all"]`, " ")
		b.mark("#bulk-tags", kb.Shift)
		b.took(4)
		b.load(chromedp.KeyEvent("shops" + kb.Enter))
		b.wants("The tags were changed.", "50 of 1,000 match.")
		b.inspect("domains-tagged")

		status, body := b.site.api(http.MethodGet, "/insights/domains?tag=shops&limit=1000", b.site.token, "")
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
		if *screenshots != "" && !b.keyboard {
			for _, l := range looks {
				l.wear(b.tab)
				b.visit("/app/domains", http.StatusOK)
				b.draw(*screenshots, "domains-many-"+l.name, l)
			}
		}
	})
}

// manyDomains is a site with 1,000 domains, 50 of them shops.
func manyDomains(t *testing.T) *site {
	t.Helper()
	s := serve(t, "")
	arguments := []string{"domain", "add", "--team", "default"}
	for i := range 950 {
		arguments = append(arguments, fmt.Sprintf("brand%03d.example", i))
	}
	for i := range 50 {
		arguments = append(arguments, fmt.Sprintf("shop%02d.example", i))
	}
	s.run(arguments...)
	return s
}
