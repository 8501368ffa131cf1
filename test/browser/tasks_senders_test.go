package browser_test

import (
	"net/http"
	"testing"
)

// TestTask15 says that a sender is yours of which nothing was known: its class is another one then, with
// the choice visible, and figures and advice follow.
func TestTask15(t *testing.T) {
	t.Parallel()
	plant := func(t *testing.T) *site {
		t.Helper()
		s := serve(t, zoneOf("example.com", "none"))
		s.plantUnknown("example.com")
		return s
	}
	inBothWays(t, plant, func(t *testing.T, b *task) {
		b.wants("Yours passing 100 % of 1,400", "-messages of yours fail")
		b.click(`nav.main a[href="/app/senders"]`)
		b.wants("Unknown 1 sender 1,000 messages", "Yours 1 sender 1,400 messages")
		b.clicks++ // the choice is one
		b.pick(`#class-unknown select[name^="class:"]`, "yours")
		b.click(`.setclass button.primary`)
		b.took(3)
		b.wants("Yours 2 senders 2,400 messages, 58.3 % pass DMARC", "-Unknown 1 sender")
		if got := read(b.tab, evaluate[string](`[...document.querySelectorAll("#class-yours tbody tr")].find((row) => row.innerText.includes("1,000")).querySelector("select").selectedOptions[0].text`)); got != "Yours" {
			t.Errorf("got the choice %q at the sender, want Yours", got)
		}
		b.visit("/app/", http.StatusOK)
		b.wants("Yours passing 58.3 % of 2,400", "1,000 messages of yours fail")
	})
}
