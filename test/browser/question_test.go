package browser_test

import (
	"net/http"
	"testing"
)

// TestQuestionTakesTwoClicks answers a question from the overview: the domain, then the answer.
func TestQuestionTakesTwoClicks(t *testing.T) {
	t.Parallel()
	const domain = "example.com"
	s := serve(t, zoneOf(domain, "none"))
	s.plantUnknown(domain)
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
