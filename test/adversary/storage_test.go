package adversary_test

import (
	"bytes"
	"crypto/rand"
	"net/http"
	"testing"
)

// TestAnonymousPostsLeaveNothing posts what is no TLS report, as large as
// uploads may be.
func TestAnonymousPostsLeaveNothing(t *testing.T) {
	const posts, size, growth = 16, 30 * mega, 16 * mega
	onEach(t, func(t *testing.T, a *arena) {
		garbage := make([]byte, size)
		if _, err := rand.Read(garbage); err != nil {
			t.Fatal(err)
		}
		path := "/tlsrpt/" + a.mailbox("victim", "victim.test")
		before := a.used()
		a.watch("anonymous posts", func() {
			for i := range posts {
				body := garbage
				if i%2 == 1 { // what is JSON, and no report
					body = append([]byte(`{"policies": "`), bytes.Repeat([]byte("a"), size)...)
					body = append(body, `"}`...)
				}
				got, err := a.mallory.try(t.Context(), http.MethodPost, path, "application/tlsrpt+json", body)
				if err == nil && got.status != http.StatusUnprocessableEntity && got.status != http.StatusTooManyRequests {
					t.Errorf("post %d: got %v want 422 or 429", i, got)
				}
			}
		})
		if rejected := list[listedReport](a.victim, "/insights/rejected"); len(rejected) != 0 {
			t.Errorf("got %d rejected items want none", len(rejected))
		}
		if got := a.used() - before; got > growth {
			t.Errorf("%d posts: the files grew by %d MiB want at most %d", posts, got>>20, growth>>20)
		}
		a.d.Stop()
	})
}

// TestUnreadableItemsGoWithTheirDomain deletes the domain to whose address
// something was sent that nothing can read.
func TestUnreadableItemsGoWithTheirDomain(t *testing.T) {
	onEach(t, func(t *testing.T, a *arena) {
		a.mail("127.1.0.1", "x@evil.test", a.address("victim", "victim.test"), mailFrom("evil.test", "nothing that can be read"))
		rejected := func() int { return len(list[listedReport](a.victim, "/insights/rejected")) }
		eventually(t, 2*answerLimit, "the mail is listed as rejected", func() bool { return rejected() == 1 })
		if got := a.victim.send(http.MethodDelete, "/domains/victim.test", "", nil); got.status != http.StatusNoContent {
			t.Fatalf("delete the domain: got %v want 204", got)
		}
		eventually(t, 2*answerLimit, "it goes with the domain", func() bool { return rejected() == 0 })
		a.d.Stop()
	})
}

// TestQuotas fills a team up to its quota by every entrance. Other teams notice
// nothing.
func TestQuotas(t *testing.T) {
	onEach(t, func(t *testing.T, a *arena) {
		box, to := a.mailbox("mallory", "mallory.test"), a.address("mallory", "mallory.test")
		a.in.Do(t, "team", "quota", "mallory", "reports=2", "domains=1")
		a.mallory.upload([]byte(about("mallory.test", "1", 1, 0).xml()))
		a.mallory.upload([]byte(about("mallory.test", "2", 1, 0).xml()))
		a.watch("over quota", func() {
			for name, got := range map[string]answer{
				"a report": a.mallory.send(http.MethodPost, "/reports", "application/octet-stream", []byte(about("mallory.test", "3", 1, 0).xml())),
				"a domain": a.mallory.send(http.MethodPost, "/domains", "application/json", []byte(`{"domain": "one.more.test"}`)),
			} {
				if got.status != http.StatusForbidden || got.header.Get("Dmarcd-Error") != "quota_exceeded" {
					t.Errorf("%s over quota: got %v with Dmarcd-Error %q want 403 quota_exceeded", name, got, got.header.Get("Dmarcd-Error"))
				}
			}
			if err := a.tryMail("127.1.0.1", "x@evil.test", to, mailFrom("evil.test", about("mallory.test", "4", 1, 0).xml())); smtpCode(err) != 452 {
				t.Errorf("a mail over quota: got %v want 452", err)
			}
			got := a.mallory.send(http.MethodPost, "/tlsrpt/"+box, "application/tlsrpt+json", []byte(tlsReport("mallory.test", "5")))
			if got.status != http.StatusTooManyRequests {
				t.Errorf("a TLS report over quota: got %v want 429", got)
			}
		})
		if got := a.mallory.counted("").Total; got != 2 {
			t.Errorf("got %d messages counted want 2", got)
		}
		a.d.Stop()
	})
}

// tlsReport returns a TLS report (RFC 8460 §4) about a domain.
func tlsReport(domain, id string) string {
	return `{"organization-name": "Reporter Inc.", "contact-info": "tls@reporter.test", "report-id": "` + id + `",
		"date-range": {"start-datetime": "2026-11-14T00:00:00Z", "end-datetime": "2026-11-14T23:59:59Z"},
		"policies": [{"policy": {"policy-type": "no-policy-found", "policy-domain": "` + domain + `"},
			"summary": {"total-successful-session-count": 40, "total-failure-session-count": 2}}]}`
}
