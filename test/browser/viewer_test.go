package browser_test

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestViewer searches the page of the API for an operation, and tries it with a token.
func TestViewer(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	b := s.open(t)
	b.visit("/api/docs", http.StatusOK)
	b.do(chromedp.Click(`//button[contains(., "Search")]`))
	b.do(chromedp.SendKeys(chromedp.CSS(`[role="dialog"] input`), "quotas"))
	b.do(chromedp.Click(`//*[@role="dialog"]//a[contains(., "/me")]`))
	b.do(chromedp.SendKeys(chromedp.CSS(`input[placeholder="Token"]`), s.token))
	b.do(chromedp.Click(chromedp.CSS(`[id$="GET/me"] .show-api-client-button`)))
	b.do(chromedp.Click(chromedp.CSS(`[data-addressbar-action="send"]`)))
	b.becomes("body", `"name": "default"`)
}
