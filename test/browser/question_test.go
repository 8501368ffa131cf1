package browser_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestQuestionTakesTwoClicks answers a question from the overview: the domain, then the answer.
func TestQuestionTakesTwoClicks(t *testing.T) {
	t.Parallel()
	const domain = "example.com"
	s := serve(t, `_dmarc.example.com. TXT "v=DMARC1; p=none"
example.com. TXT "v=spf1 ip4:192.0.2.10 -all"`)
	s.run("domain", "add", "--team", "default", domain)
	s.run("domain", "verify", "--team", "default", domain)
	for ago := range 20 {
		report := document(sample{org: "Receiver Inc.", id: fmt.Sprint(ago), domain: domain, ago: ago},
			sample{source: "192.0.2.10", headerFrom: domain, selector: "spring", dkimDomain: domain, spfDomain: domain, messages: 70, disposition: "none", dkim: "pass", spf: "pass"},
			sample{source: "198.51.100.66", headerFrom: domain, selector: "autumn", dkimDomain: "letters.example", messages: 50, disposition: "none", dkim: "fail", spf: "fail"},
		)
		// The signature is valid, but not aligned.
		s.deliver(strings.ReplaceAll(report, "<selector>autumn</selector><result>fail", "<selector>autumn</selector><result>pass"))
	}
	b := s.open(t)
	b.acceptInvitation(s.link, "ada@example.com")
	b.visit("/app/", http.StatusOK)
	b.shows("Does your company use letters.example?")
	b.click(`main a[href="/app/domains/example.com"]`)
	b.shows("1,000 messages in 20 days from 1 address")
	b.inspect("a question")
	b.press("No, not ours")
	b.shows("the sender is not yours")
	b.shows("Publish p=quarantine")
	if b.has(`form[action*="/questions/"]`) {
		t.Error("got the question again, want it answered")
	}
}
