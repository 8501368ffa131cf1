package browser_test

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestBuilderWhileTyping wants the conclusion about a record to follow what is typed, in an address
// that can be shared, and two clicks from any page to a builder.
func TestBuilderWhileTyping(t *testing.T) {
	t.Parallel()
	s := serve(t, `_spf.mailbox.example TXT "v=spf1 ip4:192.0.2.0/24 ~all"
example.org MX 10 mx1.example.org
mx1.example.org A 192.0.2.25
`)
	b := s.open(t)
	b.acceptInvitation(s.link, "ada@example.com")
	b.visit("/app/tools", http.StatusOK)
	b.click(`main a[href="/app/tools/spf"]`)
	b.write("domain", "example.org")
	b.write("include", "gone.example")
	b.becomes("[data-result]", "Do not publish this yet: 1 problem.")
	b.write("include", "_spf.mailbox.example")
	b.becomes("[data-result]", "Ready to publish.")
	b.becomes("[data-result]", "v=spf1 include:_spf.mailbox.example ~all")
	b.do(chromedp.Reload())
	b.becomes("[data-result]", "Ready to publish.")
	b.inspect("builder-typed")
}
