package browser_test

import (
	"net/http"
	"net/smtp"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestTask17 sends mails over SMTP to the address of the page, and reads there whether each passes,
// why, and what to change. Nothing else is done with them.
func TestTask17(t *testing.T) {
	t.Parallel()
	s := serve(t, `example.org TXT "v=spf1 ip4:127.0.0.1 -all"
_dmarc.example.org TXT "v=DMARC1; p=reject"
other.example TXT "v=spf1 ip4:127.0.0.1 -all"
`, "DMARCD_SMTP_LISTEN=127.0.0.1:0")
	inBothWays(t, s.shared, func(t *testing.T, b *task) {
		b.click(`nav.main a[href="/app/tools"]`)
		b.click(`main a[href="/app/tools/mail"]`)
		b.took(2)
		b.wants("for up to 10 mails")
		address := b.text("main .big code")
		send := func(envelope string) {
			t.Helper()
			musttest.Do(t, smtp.SendMail(s.SMTP, nil, envelope, []string{address}, []byte("From: Ada <ada@example.org>\r\nSubject: test\r\n\r\nhello\r\n")))
		}
		send("ada@example.org")
		b.becomes("main", "This mail passes DMARC: SPF passes and is aligned with example.org.")
		b.wants("Turn on DKIM signing with example.org", "-not aligned")
		send("bounce@other.example")
		b.becomes("main", "This mail fails DMARC")
		b.wants("SPF passes, but for other.example.", "pass other.example not aligned")
		b.inspect("tools-mail-tested")
		b.visit("/app/reports/rejected", http.StatusOK)
		b.wants("No rejected")
	})
}
