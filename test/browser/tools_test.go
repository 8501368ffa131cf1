package browser_test

import (
	"net/http"
	"net/smtp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
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
	b.visit(s.link, http.StatusOK)
	b.acceptInvitation(s.link, "ada@example.com")
	b.visit("/app/tools", http.StatusOK)
	b.click(`main a[href="/app/tools/spf"]`)
	becomes := func(want string) {
		t.Helper()
		daemon.Eventually(t, guideLimit, "the page says "+want, func() bool { return strings.Contains(b.text("[data-result]"), want) })
	}
	b.write("domain", "example.org")
	b.write("include", "gone.example")
	becomes("Do not publish this yet: 1 problem.")
	b.write("include", "_spf.mailbox.example")
	becomes("Ready to publish.")
	becomes("v=spf1 include:_spf.mailbox.example ~all")
	b.do(chromedp.Reload())
	becomes("Ready to publish.")
	b.inspect("builder-typed")
}

// TestMailIsTested sends a mail over SMTP to the address of the page, and wants its result there,
// two clicks from any page.
func TestMailIsTested(t *testing.T) {
	t.Parallel()
	s := serve(t, `example.org TXT "v=spf1 ip4:127.0.0.1 -all"
_dmarc.example.org TXT "v=DMARC1; p=reject"
other.example TXT "v=spf1 ip4:127.0.0.1 -all"
`, "DMARCD_SMTP_LISTEN=127.0.0.1:0")
	b := s.open(t)
	b.visit(s.link, http.StatusOK)
	b.acceptInvitation(s.link, "ada@example.com")
	b.visit("/app/tools", http.StatusOK)
	b.click(`main a[href="/app/tools/mail"]`)
	address := b.text("main .big code")
	send := func(envelope string) {
		t.Helper()
		musttest.Do(t, smtp.SendMail(s.SMTP, nil, envelope, []string{address}, []byte("From: Ada <ada@example.org>\r\nSubject: test\r\n\r\nhello\r\n")))
	}
	becomes := func(want string) {
		t.Helper()
		daemon.Eventually(t, guideLimit, "the page says "+want, func() bool { return strings.Contains(b.text("main"), want) })
	}
	send("ada@example.org")
	becomes("This mail passes DMARC: SPF passes and is aligned with example.org.")
	becomes("Turn on DKIM signing with example.org")
	send("bounce@other.example")
	becomes("This mail fails DMARC")
	becomes("SPF passes, but for other.example.")
	b.inspect("tools-mail-tested")
	b.visit("/app/reports/rejected", http.StatusOK)
	b.shows("No rejected")
}
