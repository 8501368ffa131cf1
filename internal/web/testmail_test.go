package web_test

import (
	"html"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
)

var testAddress = regexp.MustCompile(`test-[a-z0-9]+`)

// TestTestMail wants the right conclusion about each mail, and what to change.
func TestTestMail(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	mailbox := testAddress.FindString(s.body(t, viewer, "/app/tools/mail"))
	if mailbox == "" || mailbox == testAddress.FindString(s.body(t, editor, "/app/tools/mail")) {
		t.Fatalf("got the address %q, want one of its own for each user", mailbox)
	}
	for _, row := range []struct {
		name      string
		mail      dmarcd.TestMail
		want, not []string
	}{
		{"both methods", dmarcd.TestMail{
			SPF: "pass", SPFDomain: "example.com", SPFAligned: true, DMARC: "pass", Policy: "reject", RecordDomain: "example.com",
			Signatures: []dmarcd.TestSignature{{Domain: "example.com", Selector: "s1", Result: "pass", Aligned: true}},
		}, []string{"This mail passes DMARC: DKIM passes and is aligned with example.com.", "Nothing to change."}, []string{"What to change"}},
		{"SPF of the service", dmarcd.TestMail{
			SPF: "pass", SPFDomain: "bounce.service.example", DMARC: "fail", Policy: "reject", RecordDomain: "example.com",
			Signatures: []dmarcd.TestSignature{{Domain: "service.example", Result: "pass"}},
		}, []string{
			"This mail fails DMARC", "not aligned", "Ask the service that signs with service.example to sign with example.com instead.",
			"SPF passes, but for bounce.service.example.",
		}, []string{"Nothing to change"}},
		{
			"an unlisted server",
			dmarcd.TestMail{SPF: "softfail", SPFDomain: "example.com", SPFAligned: true, DMARC: "fail", Policy: "none", RecordDomain: "example.com"},
			[]string{"Add 192.0.2.1 to the SPF record of example.com", "Turn on DKIM signing with example.com"},
			nil,
		},
		{
			"behind a relay",
			dmarcd.TestMail{Relayed: true, Policy: "none", RecordDomain: "example.com"},
			[]string{"SPF cannot be judged", "the mail came through a relay"},
			[]string{"to the SPF record of"},
		},
		{
			"no record",
			dmarcd.TestMail{SPF: "none", SPFDomain: "example.com", SPFAligned: true, DMARC: "none"},
			[]string{"example.com has no DMARC record", "Publish a DMARC record for example.com.", "Publish an SPF record for example.com that lists 192.0.2.1."},
			nil,
		},
	} {
		row.mail.ID, row.mail.At, row.mail.From, row.mail.Client = row.name, now, "example.com", netip.MustParseAddr("192.0.2.1")
		musttest.Do(t, s.store.Team(s.team).AddTestMail(t.Context(), mailbox, row.mail))
		body := html.UnescapeString(s.body(t, viewer, "/app/tools/mail/results"))
		newest, _, _ := strings.Cut(body, "</section>")
		for _, want := range row.want {
			if !strings.Contains(newest, want) {
				t.Errorf("%s: got a page without %q, want it:\n%s", row.name, want, newest)
			}
		}
		for _, not := range row.not {
			if strings.Contains(newest, not) {
				t.Errorf("%s: got a page with %q, want none", row.name, not)
			}
		}
	}
	if body := s.body(t, editor, "/app/tools/mail"); !strings.Contains(body, "Waiting for a mail.") {
		t.Error("got the mail of another user")
	}
	silent := newSite(t, func(o *service.Options) { o.ReceivesMail = false })
	if body := silent.body(t, viewer, "/app/tools/mail"); !strings.Contains(body, "DMARCD_SMTP_LISTEN") {
		t.Error("without SMTP: got no word about it")
	}
}
