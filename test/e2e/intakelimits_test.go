package e2e_test

import (
	"net/http"
	"net/smtp"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestIntakeLimits sends messages at the limits and above.
func TestIntakeLimits(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		const limit = 8 << 10
		s := in.serve(receiving("DMARCD_LIMIT_UPLOAD=8192", "DMARCD_LIMIT_MAIL=8192")...)
		s.add("example.com")
		address := in.reportAddress("default", "example.com", reporting)

		report := about("example.com", "1", 1, 0).xml()
		s.upload(report+strings.Repeat(" ", limit-len(report)), http.StatusCreated)
		for _, chunked := range []bool{false, true} {
			r := uploading(in.token, about("example.com", "2", 1, 0).xml()+strings.Repeat(" ", limit))
			r.chunked = chunked
			s.send(r).wantStatus(t, http.StatusRequestEntityTooLarge)
		}
		s.send(uploading(in.token, "")).wantStatus(t, http.StatusBadRequest)
		encoded := uploading(in.token, gzipped(report))
		encoded.header["Content-Encoding"] = "gzip"
		s.send(encoded).wantStatus(t, http.StatusUnsupportedMediaType)

		mail := mailWith(about("example.com", "3", 1, 0).xml())
		s.mail(address, mail)
		err := s.tryMail("bounce@reporter.example", address, mail+strings.Repeat("more than may be sent\r\n", limit/20))
		if got := smtpCode(err); got != 552 {
			t.Errorf("a mail that is too large: got %v want 552", err)
		}
		err = s.tryMail("bounce@reporter.example", "unknown@reports.example", mail)
		if got := smtpCode(err); got != 550 {
			t.Errorf("an unknown recipient: got %v want 550", err)
		}
		err = s.tryMail("bounce@reporter.example", "someone@example.net", mail)
		if got := smtpCode(err); got != 550 {
			t.Errorf("a recipient elsewhere: got %v want 550", err)
		}
		s.awaitCounted("example.com", seenLimit, 2, 0)
	})
}

// TestMailLimitIsAnnounced checks that a mail is rejected by its declared size.
func TestMailLimitIsAnnounced(t *testing.T) {
	t.Parallel()
	onSQLite(t, "", func(t *testing.T, in *installation) {
		s := in.serve(receiving("DMARCD_LIMIT_MAIL=8192")...)
		c := musttest.Get(smtp.Dial(s.SMTP))(t)
		defer func() { _ = c.Close() }() // at its end
		if _, size := c.Extension("SIZE"); size != "8192" {
			t.Errorf("SIZE: got %q want 8192", size)
		}
		musttest.Do(t, c.Text.PrintfLine("MAIL FROM:<bounce@reporter.example> SIZE=8193"))
		if _, _, err := c.Text.ReadResponse(250); smtpCode(err) != 552 {
			t.Errorf("a mail that is told to be too large: got %v want 552", err)
		}
	})
}
