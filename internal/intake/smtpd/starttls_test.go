package smtpd_test

import (
	"crypto/tls"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/intake/smtpd"
)

// secure changes to TLS after a STARTTLS that may have more behind it.
func (c *client) secure(injected string) *client {
	c.t.Helper()
	c.send("STARTTLS\r\n" + injected)
	c.expect("220 ")
	secured := tls.Client(c.Conn, &tls.Config{InsecureSkipVerify: true})
	return newClient(c.t, secured)
}

func TestSTARTTLS(t *testing.T) {
	t.Parallel()
	s := start(t, withTLS(t))
	plain := s.dial(t)
	plain.expect("220 ")
	plain.send("EHLO mail.reporter.example\r\n")
	if _, message, err := plain.text.ReadResponse(250); err != nil || !strings.Contains(message, "STARTTLS") {
		t.Fatalf("got %q, %v want STARTTLS offered", message, err)
	}
	c := plain.secure("")
	c.say("MAIL FROM:<noreply@reporter.example>", "502 ")
	c.say("EHLO mail.reporter.example", "250 ")
	c.data("abc")
	c.say(report+".", "250 ")
	if diff := cmp.Diff([]string{report}, s.mails(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c.say("QUIT", "221 ")
}

// TestInjectionBeforeTLS sends commands in the clear that must not be taken for
// commands sent under TLS (RFC 3207 §6).
func TestInjectionBeforeTLS(t *testing.T) {
	t.Parallel()
	s := start(t, withTLS(t))
	c := s.greet(t).secure("EHLO injected.example\r\nMAIL FROM:<injected@elsewhere.example>\r\n")
	c.say("EHLO mail.reporter.example", "250 ")
	c.say("RCPT TO:<abc@report.example>", "502 ")
}

func TestBrokenTLSLeavesNothing(t *testing.T) {
	t.Parallel()
	s := start(t, withTLS(t))
	plain := s.greet(t)
	c := plain.secure("")
	c.say("EHLO mail.reporter.example", "250 ")
	c.begin("abc")
	c.send("BDAT 1000 LAST\r\nbody")
	if err := plain.Close(); err != nil { // without the goodbye of TLS
		t.Fatal(err)
	}
	eventually(t, "the server notices", func() bool { return s.count(smtpd.Deferred) == 1 })
	s.wantNothing(t)
}
