package genuine_test

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/intake/genuine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const mail = "From: DMARC Reports <noreply@reporter.example>\r\nSubject: Report\r\n\r\nline one\r\nline two\r\n"

// from returns the sample mail with another From field.
func from(value string) string {
	return strings.Replace(mail, "DMARC Reports <noreply@reporter.example>", value, 1)
}

// withLine returns a mail with lines behind the Subject field, which no signature covers.
func withLine(mail, lines string) string {
	const field = "Subject: Report\r\n"
	return strings.Replace(mail, field, field+lines, 1)
}

// zone is the DNS of the tests.
func zone() *dnstest.Zone {
	return dnstest.New(`
		_dmarc.reporter.example          TXT "v=DMARC1; p=reject"
		reporter.example                 TXT "v=spf1 ip4:192.0.2.1 -all"
		bounces.reporter.example         TXT "v=spf1 ip4:192.0.2.1 -all"
		slow.reporter.example            INCONCLUSIVE
		mail.reporter.example            TXT "v=spf1 ip4:192.0.2.1 -all"
		rsa._domainkey.reporter.example  TXT ` + published(rsaKey(), "") + `
		ed._domainkey.reporter.example   TXT ` + published(edKey(), "") + `
		tls._domainkey.reporter.example  TXT ` + published(rsaKey(), "s=tlsrpt; ") + `
		own._domainkey.reporter.example  TXT ` + published(rsaKey(), "t=s; ") + `
		chat._domainkey.reporter.example TXT ` + published(rsaKey(), "s=chat; ") + `
		old._domainkey.reporter.example  TXT "v=DKIM1; p="
		two._domainkey.reporter.example  TXT ` + published(rsaKey(), "") + `
		two._domainkey.reporter.example  TXT ` + published(edKey(), "") + `
		slow._domainkey.reporter.example INCONCLUSIVE
		rsa._domainkey.eu.reporter.example TXT ` + published(rsaKey(), "") + `

		_dmarc.strict.example            TXT "v=DMARC1; p=reject; adkim=s; aspf=s"
		rsa._domainkey.eu.strict.example TXT ` + published(rsaKey(), "") + `

		_dmarc.sender.example            TXT "v=DMARC1; p=none"
		sender.example                   TXT "v=spf1 ip4:192.0.2.1 -all"
		rsa._domainkey.sender.example    TXT ` + published(rsaKey(), "") + `
		slow._domainkey.sender.example   INCONCLUSIVE

		bare.example                     TXT "v=spf1 ip4:192.0.2.1 -all"
		rsa._domainkey.xn--bcher-kva.example TXT ` + published(rsaKey(), "") + `
		_dmarc.dark.example              INCONCLUSIVE
		rsa._domainkey.eu.dark.example   TXT ` + published(rsaKey(), "") + `
	`)
}

func verifier() *genuine.Verifier {
	return &genuine.Verifier{Resolver: zone(), Hostname: "mx.report.example", Now: time.Now}
}

// honest is the envelope of a mail from the reporter, forged that of a spoofed one.
var (
	honest = genuine.Envelope{RemoteIP: netip.MustParseAddr("192.0.2.1"), Helo: "mail.reporter.example", MailFrom: "bounce@bounces.reporter.example"}
	forged = genuine.Envelope{RemoteIP: netip.MustParseAddr("203.0.113.9"), Helo: "elsewhere.example", MailFrom: "bounce@bounces.reporter.example"}
)

// withMailFrom returns the honest envelope with another reverse-path.
func withMailFrom(mailFrom string) genuine.Envelope {
	e := honest
	e.MailFrom = mailFrom
	return e
}

// compareAuthentication ignores the reason and the domain, which other tests check.
var compareAuthentication = cmpopts.IgnoreFields(dmarcd.Authentication{}, "Reason", "Domain")

// wantDomain checks that a genuine mail is authenticated as the domain that the reason names,
// and any other mail as none.
func wantDomain(t *testing.T, got dmarcd.Authentication) {
	t.Helper()
	if (got.Domain != "") != (got.Genuine == dmarcd.GenuineYes) || !strings.Contains(got.Reason, got.Domain) {
		t.Errorf("got the domain %q of a mail with %q: %s", got.Domain, got.Genuine, got.Reason)
	}
}

// outcome returns the expected authentication result for a mail from the reporter.
func outcome(g dmarcd.Genuine, dkim, spf, dmarc string) dmarcd.Authentication {
	return dmarcd.Authentication{Genuine: g, From: "reporter.example", DKIM: dkim, SPF: spf, DMARC: dmarc}
}

func TestSMTP(t *testing.T) {
	t.Parallel()
	const yes, no, unknown = dmarcd.GenuineYes, dmarcd.GenuineNo, dmarcd.GenuineUnknown
	reporter := signing{domain: "reporter.example"}
	signed := sign(t, mail, reporter)
	blank := mail + strings.Repeat("\r\n", 1<<16)
	typed := sign(t, "Content-Type: text/plain\r\nContent-Transfer-Encoding: 7bit\r\n"+mail, reporter)
	tests := []struct {
		name     string
		mail     string
		envelope genuine.Envelope
		want     dmarcd.Authentication
		reason   string
	}{
		{"RSA", sign(t, mail, reporter), forged, outcome(yes, "pass", "fail", "pass"), "valid signature of reporter.example"},
		{"Ed25519", sign(t, mail, signing{domain: "reporter.example", selector: "ed", key: edKey()}), forged, outcome(yes, "pass", "fail", "pass"), "valid signature"},
		{"subdomain signs", sign(t, mail, signing{domain: "eu.reporter.example"}), forged, outcome(yes, "pass", "fail", "pass"), "eu.reporter.example"},
		{"key for TLS reports", sign(t, mail, signing{domain: "reporter.example", selector: "tls"}), forged, outcome(yes, "pass", "fail", "pass"), "valid signature"},
		{"lines end in LF", strings.ReplaceAll(sign(t, mail, reporter), "\r\n", "\n"), forged, outcome(yes, "pass", "fail", "pass"), "valid signature"},
		{"identity in a subdomain", sign(t, mail, signing{domain: "reporter.example", identity: "@eu.reporter.example"}), forged, outcome(yes, "pass", "fail", "pass"), "valid signature"},
		{"key for its own domain", sign(t, mail, signing{domain: "reporter.example", selector: "own"}), forged, outcome(yes, "pass", "fail", "pass"), "valid signature"},
		{"SPF", mail, honest, outcome(yes, "none", "pass", "pass"), "SPF passes for bounces.reporter.example"},
		{"SPF of the greeting", mail, withMailFrom(""), outcome(yes, "none", "pass", "pass"), "mail.reporter.example"},
		{"the second signature counts", sign(t, sign(t, mail, reporter), signing{domain: "sender.example"}), forged, outcome(yes, "pass", "fail", "pass"), "reporter.example"},
		{"no DNS for SPF, but signed", sign(t, mail, reporter), withMailFrom("a@slow.reporter.example"), outcome(yes, "pass", "temperror", "pass"), "valid signature"},

		{"nothing", mail, forged, outcome(no, "none", "fail", "fail"), "there is no signature, SPF for bounces.reporter.example is fail"},
		{"another domain signs", sign(t, mail, signing{domain: "sender.example"}), withMailFrom("a@sender.example"), outcome(no, "pass", "pass", "fail"), "only a signature of sender.example"},
		{"body was changed", sign(t, mail, reporter) + "more\r\n", forged, outcome(no, "fail", "fail", "fail"), "body hash did not verify"},
		{"header was changed", strings.Replace(sign(t, mail, reporter), "Subject: Report", "Subject: Other", 1), forged, outcome(no, "fail", "fail", "fail"), "signature did not verify"},
		{"other key", sign(t, mail, signing{domain: "reporter.example", key: otherKey()}), forged, outcome(no, "fail", "fail", "fail"), "signature did not verify"},
		{"expired", sign(t, mail, signing{domain: "reporter.example", expires: time.Now().Add(-time.Hour)}), forged, outcome(no, "permerror", "fail", "fail"), "expired"},
		{"no key", sign(t, mail, signing{domain: "reporter.example", selector: "none"}), forged, outcome(no, "permerror", "fail", "fail"), "no usable key"},
		{"revoked key", sign(t, mail, signing{domain: "reporter.example", selector: "old"}), forged, outcome(no, "permerror", "fail", "fail"), "no usable key"},
		{"two keys", sign(t, mail, signing{domain: "reporter.example", selector: "two"}), forged, outcome(no, "permerror", "fail", "fail"), "no usable key"},
		{"key for something else", sign(t, mail, signing{domain: "reporter.example", selector: "chat"}), forged, outcome(no, "permerror", "fail", "fail"), "no usable key"},
		{"key is not for the subdomain", sign(t, mail, signing{domain: "reporter.example", selector: "own", identity: "@eu.reporter.example"}), forged, outcome(no, "permerror", "fail", "fail"), "does not allow subdomains"},
		{"part of the body is signed", signPartly(t, mail, "reporter.example", 10) + "more\r\n", forged, outcome(no, "policy", "fail", "fail"), "body length"},
		{"client without a name", mail, genuine.Envelope{RemoteIP: forged.RemoteIP, Helo: "[203.0.113.9]"}, outcome(no, "none", "none", "fail"), "is none"},

		{"no DNS for the key", sign(t, mail, signing{domain: "reporter.example", selector: "slow"}), forged, outcome(unknown, "temperror", "fail", "temperror"), "DNS query needed"},
		{"no DNS for the key of another domain", sign(t, mail, signing{domain: "sender.example", selector: "slow"}), forged, outcome(no, "temperror", "fail", "fail"), "sender.example"},
		{"no DNS for SPF", mail, withMailFrom("a@slow.reporter.example"), outcome(unknown, "none", "temperror", "temperror"), "DNS query needed"},

		{
			"strict alignment is for DMARC", sign(t, from("a@strict.example"), signing{domain: "eu.strict.example"}), forged,
			dmarcd.Authentication{Genuine: yes, From: "strict.example", DKIM: "pass", SPF: "fail", DMARC: "fail"},
			"eu.strict.example",
		},
		{
			"no DMARC record", from("a@bare.example"), withMailFrom("b@bare.example"),
			dmarcd.Authentication{Genuine: yes, From: "bare.example", DKIM: "none", SPF: "pass", DMARC: "none"},
			"SPF passes",
		},
		{
			"no DNS for the organization", sign(t, from("a@dark.example"), signing{domain: "eu.dark.example"}), forged,
			dmarcd.Authentication{Genuine: unknown, From: "dark.example", DKIM: "pass", SPF: "fail", DMARC: "temperror"},
			"DNS query needed",
		},
		{
			"domain in other letters", sign(t, from("a@bücher.example"), signing{domain: "xn--bcher-kva.example"}), forged,
			dmarcd.Authentication{Genuine: yes, From: "xn--bcher-kva.example", DKIM: "pass", SPF: "fail", DMARC: "none"},
			"xn--bcher-kva.example",
		},

		{"no From", strings.Replace(mail, "From:", "To:", 1), honest, dmarcd.Authentication{Genuine: no}, "no From field"},
		{"two From fields", "From: a@sender.example\r\n" + sign(t, mail, reporter), honest, dmarcd.Authentication{Genuine: no}, "more than one From field"},
		{"two authors", sign(t, from("a@reporter.example, b@elsewhere.example"), reporter), honest, dmarcd.Authentication{Genuine: no}, "more than one address"},
		{"unreadable From", from("a@b@c"), honest, dmarcd.Authentication{Genuine: no}, "cannot be read"},
		{"author without a domain", from("<a@>"), honest, dmarcd.Authentication{Genuine: no}, "no domain"},
		{"unquoted name", from("Reports [EU] <a@Reporter.Example>"), honest, outcome(yes, "none", "pass", "pass"), "SPF passes"},
		{"endless header", strings.Repeat("X: y\r\n", 40_000), honest, dmarcd.Authentication{Genuine: no}, "too long"},
		{"many fields", strings.Repeat("X: y\r\n", 501) + mail, honest, dmarcd.Authentication{Genuine: no}, "too many fields"},
		{"long field", "X:" + strings.Repeat(" \r\n", 15_000) + mail, honest, dmarcd.Authentication{Genuine: no}, "a field that is too long"},

		{"nothing at all", "", honest, dmarcd.Authentication{Genuine: no}, "no header"},
		{"XML after an empty line", "\r\n<feedback></feedback>\r\n", honest, dmarcd.Authentication{Genuine: no}, "no header"},
		{"mailbox", "From x Thu Jan  1 00:00:00 1970\r\n" + sign(t, mail, reporter), honest, dmarcd.Authentication{Genuine: no}, "no header"},
		{"empty lines without end", sign(t, blank, reporter), forged, outcome(no, "policy", "fail", "fail"), "too long a run of white space"},
		{"empty lines without end, but SPF passes", sign(t, blank, reporter), honest, outcome(yes, "policy", "pass", "pass"), "SPF passes"},
		{"empty lines without end, no DNS for SPF", sign(t, blank, reporter), withMailFrom("a@slow.reporter.example"), outcome(unknown, "policy", "temperror", "temperror"), "DNS query needed"},
		{"signature field with a long s", withLine(mail, "DKIM-ſignature: v=1\r\n"), forged, outcome(no, "permerror", "fail", "fail"), "is not valid"},

		{"XML in the header", withLine(signed, "<feedback></feedback>\r\n"), honest, dmarcd.Authentication{Genuine: no}, "its body could begin"},
		{"JSON in the header", withLine(signed, "{\"policies\":[]}\r\n"), honest, dmarcd.Authentication{Genuine: no}, "its body could begin"},
		{"line of CRs", withLine(signed, "\r\r\n<feedback/>\r\n"), honest, dmarcd.Authentication{Genuine: no}, "its body could begin"},
		{"folded line of CRs", withLine(signed, "\r\r\n <feedback/>\r\n"), honest, dmarcd.Authentication{Genuine: no}, "its body could begin"},
		{"XML in a folded field", withLine(signed, "X: y\r\n <feedback/>\r\n"), forged, outcome(yes, "pass", "fail", "pass"), "valid signature"},
		{"failure report in the header", withLine(signed, "Feedback-Type: auth-failure\r\n"), honest, dmarcd.Authentication{Genuine: no}, "another format"},
		{"result of a failure report in the header", withLine(signed, "Auth-Failure : spf\r\n"), honest, dmarcd.Authentication{Genuine: no}, "another format"},
		{"XML before the fields of a mail", "X: <feedback>" + strings.Repeat("x", 4096) + "\r\n" + signed, honest, dmarcd.Authentication{Genuine: no}, "another format"},
		{"field like zlib", "XG: \x01\r\n" + signed, honest, dmarcd.Authentication{Genuine: no}, "another format"},
		{"signed Content-Type", typed, forged, outcome(yes, "pass", "fail", "pass"), "valid signature"},
		{"second Content-Type", "Content-Type: application/xml\r\n" + typed, honest, dmarcd.Authentication{Genuine: no}, "more than one Content-Type"},
		{"second Content-Type in another spelling", "Content_Type: application/xml\r\n" + typed, honest, dmarcd.Authentication{Genuine: no}, "more than one Content-Type"},
		{"second Content-Type before a folded one", "Content-Type: application/xml\r\n" + strings.Replace(typed, "Content-Type:", "Content-Type\r\n :", 1), honest, dmarcd.Authentication{Genuine: no}, "more than one Content-Type"},
		{"second encoding", "ContentTransferEncoding: base64\r\n" + typed, honest, dmarcd.Authentication{Genuine: no}, "more than one Content-Type or Content-Transfer-Encoding"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := verifier().SMTP(t.Context(), strings.NewReader(test.mail), test.envelope)
			wantDomain(t, got)
			if diff := cmp.Diff(test.want, got, compareAuthentication); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !strings.Contains(got.Reason, test.reason) {
				t.Errorf("got reason %q want %q in it", got.Reason, test.reason)
			}
		})
	}
}

func TestMail(t *testing.T) {
	t.Parallel()
	const yes, no, unknown = dmarcd.GenuineYes, dmarcd.GenuineNo, dmarcd.GenuineUnknown
	reporter := signing{domain: "reporter.example"}
	tests := []struct {
		name   string
		mail   string
		want   dmarcd.Authentication
		reason string
	}{
		{"signed", sign(t, mail, reporter), outcome(yes, "pass", "", "pass"), "valid signature"},
		{"body was changed", sign(t, mail, reporter) + "more\r\n", outcome(no, "fail", "", ""), "is invalid: body hash"},
		{"changed, and signed again by another domain", sign(t, sign(t, mail, reporter)+"more\r\n", signing{domain: "sender.example"}), outcome(no, "fail", "", ""), "is invalid"},
		{"changed, but another signature fits", sign(t, sign(t, mail, signing{domain: "reporter.example", key: otherKey()}), reporter), outcome(yes, "pass", "", "pass"), "valid signature"},
		{"signature of another domain was broken", sign(t, mail, signing{domain: "sender.example"}) + "more\r\n", outcome(unknown, "fail", "", ""), "sender.example"},
		{"no signature", mail, outcome(unknown, "none", "", ""), "there is no signature"},
		{"key is gone", sign(t, mail, signing{domain: "reporter.example", selector: "none"}), outcome(unknown, "permerror", "", ""), "no usable key"},
		{"expired", sign(t, mail, signing{domain: "reporter.example", expires: time.Now().Add(-time.Hour)}), outcome(unknown, "permerror", "", ""), "expired"},
		{"part of the body is signed", signPartly(t, mail, "reporter.example", 10), outcome(unknown, "policy", "", ""), "body length"},
		{"no DNS", sign(t, mail, signing{domain: "reporter.example", selector: "slow"}), outcome(unknown, "temperror", "", ""), "DNS query needed"},
		{"no From", strings.Replace(mail, "From:", "To:", 1), dmarcd.Authentication{Genuine: unknown}, "no From field"},
		{"empty lines without end", sign(t, mail+strings.Repeat("\r\n", 1<<16), reporter), outcome(unknown, "policy", "", ""), "too long a run of white space"},
		{"XML in the header", withLine(sign(t, mail, reporter), "<feedback></feedback>\r\n"), dmarcd.Authentication{Genuine: unknown}, "its body could begin"},

		{"nothing", "", dmarcd.Authentication{}, ""},
		{"mailbox", "From x Thu Jan  1 00:00:00 1970\r\n" + mail, dmarcd.Authentication{}, ""},
		{"XML", "<?xml version=\"1.0\"?>\n<feedback>\n\n</feedback>\n", dmarcd.Authentication{}, ""},
		{"JSON", "{\"organization-name\":\"a\",\n\n\"date-range\":{}}\n", dmarcd.Authentication{}, ""},
		{"gzip", "\x1f\x8b\x08\x00\x00\x00\n\n", dmarcd.Authentication{}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := verifier().Mail(t.Context(), strings.NewReader(test.mail))
			wantDomain(t, got)
			if diff := cmp.Diff(test.want, got, compareAuthentication); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !strings.Contains(got.Reason, test.reason) {
				t.Errorf("got reason %q want %q in it", got.Reason, test.reason)
			}
		})
	}
}

func TestManySignatures(t *testing.T) {
	t.Parallel()
	signed := sign(t, mail, signing{domain: "reporter.example"})
	other := strings.TrimSuffix(sign(t, mail, signing{domain: "sender.example"}), mail)
	tests := []struct {
		name   string
		before int
		want   dmarcd.Genuine
	}{
		{"the last that is verified", 9, dmarcd.GenuineYes},
		{"one behind it", 10, dmarcd.GenuineUnknown},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := verifier().Mail(t.Context(), strings.NewReader(strings.Repeat(other, test.before)+signed))
			if got.Genuine != test.want {
				t.Errorf("got %q (%s) want %q", got.Genuine, got.Reason, test.want)
			}
		})
	}
}

// brokenMail fails after some bytes.
type brokenMail struct {
	*strings.Reader
	after int64
}

func (b brokenMail) Read(p []byte) (int, error) {
	at := b.Size() - int64(b.Len())
	if at >= b.after {
		return 0, errors.New("the disk is broken")
	}
	return b.Reader.Read(p[:min(int64(len(p)), b.after-at)])
}

// TestUnreadable checks that a mail that was not read completely has no authentication result, and that no
// goroutine leaks.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	long := mail + strings.Repeat("a line of text\r\n", 20_000)
	signed := sign(t, sign(t, long, signing{domain: "reporter.example"}), signing{domain: "sender.example"})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name string
		ctx  context.Context
		mail io.ReadSeeker
	}{
		{"broken header", t.Context(), brokenMail{strings.NewReader(signed), 20}},
		{"broken body", t.Context(), brokenMail{strings.NewReader(signed), 200_000}},
		{"time is up", ended, strings.NewReader(signed)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := verifier().SMTP(test.ctx, test.mail, forged)
			if got.Genuine != dmarcd.GenuineUnknown || got.Reason == "" {
				t.Errorf("got %+v want unknown, with a reason", got)
			}
		})
	}
}

// countedMail counts the bytes that are read.
type countedMail struct {
	*strings.Reader
	read int
}

func (c *countedMail) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read += n
	return n, err
}

// TestTheHeaderEndsAsInTheLibrary hides fields behind a line of CRs, which does not end a header
// for the library. The limits apply before the library reads them.
func TestTheHeaderEndsAsInTheLibrary(t *testing.T) {
	t.Parallel()
	const maxHeader = 128 << 10
	content := &countedMail{Reader: strings.NewReader("From: a@sender.example\r\nDKIM-Signature: v=1; a=rsa-sha256; d=sender.example; s=rsa; h=from; bh=; b=\r\n" +
		"\r\r\n" + strings.Repeat("a\n", 1_000_000) + "\r\nbody")}
	got := verifier().SMTP(t.Context(), content, honest)
	if got.Genuine != dmarcd.GenuineNo || !strings.Contains(got.Reason, "too long") {
		t.Errorf("got %+v, want a header that is too long", got)
	}
	if content.read > maxHeader {
		t.Errorf("got %d bytes read, want at most %d", content.read, maxHeader)
	}
}

// FuzzMail checks that no mail causes a panic, and that none is genuine that the reporter did
// not sign.
func FuzzMail(f *testing.F) {
	f.Add([]byte(mail))
	f.Add([]byte("DKIM-Signature: v=1; a=rsa-sha256; d=reporter.example; s=rsa; h=from; bh=; b=\r\n" + mail))
	f.Add([]byte("DKIM-Signature: v=1; l=; d=; s=;\r\nDKIM-Signature:\r\n" + mail))
	f.Add([]byte("From: <@>\n\n"))
	for _, lines := range []string{"<feedback></feedback>\r\n", "\r\r\n<feedback/>\r\n", "Feedback-Type: auth-failure\r\n", "{}\r\n"} {
		f.Add([]byte(withLine(mail, lines)))
	}
	f.Add([]byte("Content-Type: text/plain\nContentType: text/xml\n" + mail))
	f.Add([]byte("From:\xff\xfe@\xc3\xbc\n \n\n"))
	v := verifier()
	f.Fuzz(func(t *testing.T, data []byte) {
		got := v.Mail(t.Context(), strings.NewReader(string(data)))
		if got.Genuine == dmarcd.GenuineYes {
			t.Errorf("got %+v for a mail without a signature", got)
		}
		if (got.Genuine == "") != (got.Reason == "") {
			t.Errorf("got %+v want a reason for every authentication result and no other", got)
		}
		v.SMTP(t.Context(), strings.NewReader(string(data)), forged)
	})
}
