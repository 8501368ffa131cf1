package adversary_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net/http"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestAnonymousPostsLeaveNothing posts what is no TLS report, as large as
// uploads may be.
func TestAnonymousPostsLeaveNothing(t *testing.T) {
	const posts, size, growth = 8, 30 * mega, 16 * mega
	onEach(t, func(t *testing.T, a *arena) {
		garbage := make([]byte, size)
		musttest.Get(rand.Read(garbage))(t)
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
		eventually(t, patience, "the mail is listed as rejected", func() bool { return rejected() == 1 })
		if got := a.victim.send(http.MethodDelete, "/domains/victim.test", "", nil); got.status != http.StatusNoContent {
			t.Fatalf("delete the domain: got %v want 204", got)
		}
		eventually(t, patience, "it goes with the domain", func() bool { return rejected() == 0 })
		a.d.Stop()
	})
}

// TestQuotas fills a team up to its quota by every entrance. Other teams notice
// nothing.
func TestQuotas(t *testing.T) {
	onEach(t, func(t *testing.T, a *arena) {
		box, to := a.mailbox("mallory", "mallory.test"), a.address("mallory", "mallory.test")
		a.in.Do(t, "team", "quota", "mallory", "reports=2", "domains=1", "mailboxes=1")
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
		if r := read(t, a.in, "mallory", "imap1.mallory.test", 993); r.Status != 0 {
			t.Errorf("the first mailbox: got status %d want 0: %s", r.Status, r.Stderr)
		}
		if r := read(t, a.in, "mallory", "imap2.mallory.test", 993); r.Status == 0 || r.Stderr == "" {
			t.Errorf("a mailbox over quota: got status %d and %q want the reason", r.Status, r.Stderr)
		}
		if got := a.mallory.counted("").Total; got != 2 {
			t.Errorf("got %d messages counted want 2", got)
		}
		a.d.Stop()
	})
}

// TestByteQuotas fills a team up to its quotas of bytes by every entrance. What is
// removed makes room again.
func TestByteQuotas(t *testing.T) {
	onEach(t, func(t *testing.T, a *arena) {
		to := a.address("mallory", "mallory.test")
		entrances := a.entrances(a.mallory, "mallory.test")
		a.mallory.upload([]byte(about("mallory.test", "first", 1, 0).xml()))
		a.in.Do(t, "team", "quota", "mallory", "stored=1")
		a.watch("over the quota of stored bytes", func() {
			for name, send := range entrances {
				want, wantCode := http.StatusForbidden, "quota_exceeded"
				switch name {
				case "SMTP":
					want, wantCode = 452, ""
				case "TLS intake":
					want = http.StatusTooManyRequests
				}
				if status, code := send("over quota by " + name); status != want || code != wantCode {
					t.Errorf("%s: got %d %q want %d %q", name, status, code, want, wantCode)
				}
			}
		})
		a.mallory.wantCounts("over quota", "mallory.test", 1, 0)
		first := a.mallory.report("first")
		if got := a.mallory.send(http.MethodDelete, "/insights/reports/"+first.ID, "", nil); got.status != http.StatusNoContent {
			t.Fatalf("DELETE: got %v want 204", got)
		}
		eventually(t, patience, "a deletion makes room", func() bool {
			status, _ := entrances["API"]("after the deletion")
			return status == http.StatusCreated
		})

		// What nothing can read has a quota of its own. It keeps no report out.
		a.in.Do(t, "team", "quota", "mallory", "stored=none", "unreadable=20000")
		garbage := func(id string) []byte { return append([]byte("no report "+id), noise(t, 30_000)...) }
		if got := a.mallory.send(http.MethodPost, "/reports", "application/octet-stream", garbage("1")); got.status != http.StatusUnprocessableEntity {
			t.Errorf("what cannot be read: got %v want 422", got)
		}
		got := a.mallory.send(http.MethodPost, "/reports", "application/octet-stream", garbage("2"))
		if got.status != http.StatusForbidden || got.header.Get("Dmarcd-Error") != "quota_exceeded" {
			t.Errorf("more that cannot be read: got %v want 403 quota_exceeded", got)
		}
		a.watch("over the quota of unreadable bytes", func() {
			for i := range 5 {
				a.mail("127.1.0.1", "x@evil.test", to, mailFrom("evil.test", string(garbage(fmt.Sprint("mailed ", i)))))
			}
			for name, send := range entrances {
				if status, code := send("beside unreadable ones by " + name); status >= 300 {
					t.Errorf("a report by %s: got %d %q want it taken", name, status, code)
				}
			}
		})
		eventually(t, patience, "the mails are done", func() bool {
			return len(list[listedReport](a.mallory, "/insights/rejected")) == 6 && a.mallory.counted("").Total == 4
		})
		if got := a.quotaUsed("mallory", "unreadable"); got > 2*30_000 {
			t.Errorf("got %d unreadable bytes stored want at most the quota and one item", got)
		}
		a.d.Stop()
	})
}

// quotaUsed returns how much of a quota a team uses.
func (a *arena) quotaUsed(team, quota string) int64 {
	a.t.Helper()
	var rows []struct {
		Quota string
		Used  int64
	}
	a.in.List(a.t, &rows, "team", "quota", team)
	for _, row := range rows {
		if row.Quota == quota {
			return row.Used
		}
	}
	a.t.Fatalf("team quota %s: got %v want %s among them", team, rows, quota)
	return 0
}

// noise returns bytes that do not compress.
func noise(t testing.TB, n int) []byte {
	t.Helper()
	bytes := make([]byte, n)
	musttest.Get(rand.Read(bytes))(t)
	return bytes
}

// tlsReport returns a TLS report (RFC 8460 §4) about a domain.
func tlsReport(domain, id string) string {
	return `{"organization-name": "Reporter Inc.", "contact-info": "tls@reporter.test", "report-id": "` + id + `",
		"date-range": {"start-datetime": "2026-11-14T00:00:00Z", "end-datetime": "2026-11-14T23:59:59Z"},
		"policies": [{"policy": {"policy-type": "no-policy-found", "policy-domain": "` + domain + `"},
			"summary": {"total-successful-session-count": 40, "total-failure-session-count": 2}}]}`
}
