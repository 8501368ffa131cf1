package failure_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/failure"
	"github.com/dmarcd/dmarcd/internal/costtest"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

var compare = cmp.Options{
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmpopts.EquateEmpty(),
}

const original = `Received: from mail.sender.example (mail.sender.example [192.0.2.7])
	by mx.receiver.example for <bob@receiver.example>
Authentication-Results: receiver.example; dmarc=fail header.from=sender.example;
	spf=fail smtp.mailfrom=alice+bob=receiver.example@bounce.example
From: "Alice Ample" <alice@sender.example>
To: Bob <bob@receiver.example>
Subject: hello bob@receiver.example
Date: Mon, 3 Nov 2025 09:59:58 +0100
Message-ID: <1234@sender.example>

Dear Bob, write to alice@sender.example.
`

// complete has every supported field of RFC 5965, RFC 6591 and RFC 9991.
const complete = `Feedback-Type: auth-failure
User-Agent: Example/1.0
Version: 1
Original-Envelope-Id: env-1
Original-Mail-From: <alice@bounce.example>
Original-Rcpt-To: <bob@receiver.example>
Original-Rcpt-To: carol@receiver.example
Arrival-Date: Mon, 3 Nov 2025 10:00:00 +0100 (CET)
Reporting-MTA: dns; mx.receiver.example
Source-IP: 192.0.2.7
Source-Port: 40123
Incidents: 3
Auth-Failure: dmarc
Authentication-Results: receiver.example; dmarc=fail
    header.from=sender.example
Reported-Domain: Sender.Example.
Delivery-Result: reject
Identity-Alignment: dkim, spf (both)
DKIM-Domain: sender.example
DKIM-Identity: alice@sender.example
DKIM-Selector: s1
DKIM-Selector-DNS: "v=DKIM1; p="
SPF-DNS: txt : sender.example : "v=spf1 -all"
`

func TestParseComplete(t *testing.T) {
	t.Parallel()
	want := failure.Report{
		FeedbackType: "auth-failure", UserAgent: "Example/1.0", Version: "1",
		AuthFailure:           failure.FailureDMARC,
		AuthenticationResults: []string{"receiver.example; dmarc=fail header.from=sender.example"},
		Misaligned:            []string{"dkim", "spf"}, AlignmentReported: true,
		SourceIP: netip.MustParseAddr("192.0.2.7"), SourcePort: 40123,
		ReportedDomain: "sender.example", ReportingMTA: "mx.receiver.example",
		ArrivalDate:    time.Date(2025, 11, 3, 9, 0, 0, 0, time.UTC),
		DeliveryResult: failure.Rejected, DeliveryText: "reject", Incidents: 3,
		DKIMDomain: "sender.example", DKIMIdentity: "redacted@sender.example", DKIMSelector: "s1", DKIMSelectorDNS: `"v=DKIM1; p="`,
		SPFDNS:             []string{`txt : sender.example : "v=spf1 -all"`},
		OriginalEnvelopeID: "env-1", OriginalMailFrom: "redacted@bounce.example",
		OriginalRcptTo: []string{"redacted@receiver.example", "redacted@receiver.example"},
		MessageID:      "<1234@sender.example>", From: "redacted@sender.example",
		Date: time.Date(2025, 11, 3, 8, 59, 58, 0, time.UTC),
		Header: `Received: from mail.sender.example (mail.sender.example [192.0.2.7])
	by mx.receiver.example for <redacted@receiver.example>
Authentication-Results: receiver.example; dmarc=fail header.from=sender.example;
	spf=fail smtp.mailfrom=redacted@bounce.example
From: redacted@sender.example
To: redacted@receiver.example
Subject: hello redacted@receiver.example
Date: Mon, 3 Nov 2025 09:59:58 +0100
Message-ID: <1234@sender.example>`,
	}
	for name, message := range map[string]failure.Message{
		"as it is":          {Feedback: []byte(complete), Original: []byte(original)},
		"wire line endings": {Feedback: onTheWire(complete), Original: onTheWire(original)},
		"upper case names":  {Feedback: upperNames(complete), Original: []byte(original)},
		"empty lines":       {Feedback: []byte("\n" + strings.ReplaceAll(complete, "\nSource-IP", "\n\nSource-IP")), Original: []byte("\n" + original)},
	} {
		got, err := failure.Parse(message, failure.Options{})
		if err != nil {
			t.Fatalf("%s: got error %v, want none", name, err)
		}
		if diff := cmp.Diff(want, got, compare); diff != "" {
			t.Errorf("%s: got (+) against want (-):\n%s", name, diff)
		}
	}
}

func onTheWire(text string) []byte { return []byte(strings.ReplaceAll(text, "\n", "\r\n")) }

func upperNames(text string) []byte {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(line, ":"); found && name[0] != ' ' {
			line = strings.ToUpper(name) + ":" + value
		}
		b.WriteString(line)
	}
	return []byte(b.String())
}

func TestOptions(t *testing.T) {
	t.Parallel()
	message := failure.Message{Feedback: []byte(complete), Original: []byte(original)}
	got := musttest.Get(failure.Parse(message, failure.Options{Unredacted: true}))(t)
	header, _, _ := strings.Cut(original, "\n\n")
	if got.Header != header || got.From != `"Alice Ample" <alice@sender.example>` ||
		got.OriginalMailFrom != "alice@bounce.example" || got.DKIMIdentity != "alice@sender.example" {
		t.Errorf("got %+v, want everything as it was sent", got)
	}
}

// TestQuirks has a row for every quirk: fields that cause it, and the result.
func TestQuirks(t *testing.T) {
	t.Parallel()
	const base = "Feedback-Type: auth-failure\nVersion: 1\nAuth-Failure: dmarc\nIdentity-Alignment: none\n" +
		"Arrival-Date: Mon, 3 Nov 2025 10:00:00 +0000\nSource-IP: 192.0.2.7\nReported-Domain: sender.example\n"
	const header = "From: a@author.example\n"
	day := time.Date(2025, 11, 3, 10, 0, 0, 0, time.UTC)
	ip := netip.MustParseAddr("192.0.2.7")
	met := make(map[failure.Quirk]bool)
	for _, test := range []struct {
		name    string
		message failure.Message
		quirks  []failure.Quirk
		check   func(failure.Report) bool
	}{
		{
			"none",
			failure.Message{Feedback: []byte(base), Original: []byte(header)},
			nil,
			func(r failure.Report) bool { return r.AlignmentReported && len(r.Misaligned) == 0 && r.Incidents == 1 },
		},
		{
			"no type", feedback(base, "Feedback-Type: auth-failure\n", ""),
			[]failure.Quirk{failure.FeedbackTypeMissing},
			func(r failure.Report) bool { return r.FeedbackType == "auth-failure" },
		},
		{"no version", feedback(base, "Version: 1\n", ""), []failure.Quirk{failure.VersionMissing}, nil},
		{"another version", feedback(base, "Version: 1", "Version: 1.0"), []failure.Quirk{failure.VersionUnusual}, nil},
		{"a line that is no field", feedback(base, "Version", "what is this\nVersion"), []failure.Quirk{failure.FieldMalformed}, nil},
		{
			"a repeated field", feedback(base, "Source-IP", "Source-IP: 192.0.2.7\nSource-IP"),
			[]failure.Quirk{failure.FieldRepeated},
			func(r failure.Report) bool { return r.SourceIP == ip },
		},
		{"no failure", feedback(base, "Auth-Failure: dmarc\n", ""), []failure.Quirk{failure.AuthFailureMissing}, nil},
		{
			"an unknown failure", feedback(base, "dmarc", "Karma (bad)"),
			[]failure.Quirk{failure.AuthFailureUnknown},
			func(r failure.Report) bool { return r.AuthFailure == "karma" },
		},
		{
			"no alignment", feedback(base, "Identity-Alignment: none\n", ""),
			[]failure.Quirk{failure.AlignmentMissing},
			func(r failure.Report) bool { return !r.AlignmentReported },
		},
		{
			"an unknown alignment", feedback(base, "none", "dkim,arc"),
			[]failure.Quirk{failure.AlignmentUnknown},
			func(r failure.Report) bool {
				return r.AlignmentReported && len(r.Misaligned) == 1 && r.Misaligned[0] == "dkim"
			},
		},
		{
			"no arrival date", feedback(base, "Arrival-Date", "X"),
			[]failure.Quirk{failure.ArrivalDateMissing},
			func(r failure.Report) bool { return r.ArrivalDate.Equal(day.Add(time.Hour)) },
		},
		{
			"an old name of the arrival date", feedback(base, "Arrival-Date", "Received-Date"),
			[]failure.Quirk{failure.ArrivalDateAlias},
			func(r failure.Report) bool { return r.ArrivalDate.Equal(day) },
		},
		{
			"a date that is none", feedback(base, "Mon, 3 Nov 2025 10:00:00 +0000", "yesterday"),
			[]failure.Quirk{failure.DateUnreadable},
			func(r failure.Report) bool { return r.ArrivalDate.Equal(day.Add(time.Hour)) },
		},
		{
			"a date that cannot be", feedback(base, "3 Nov 2025", "3 Nov 2008"),
			[]failure.Quirk{failure.DateImplausible},
			func(r failure.Report) bool { return r.ArrivalDate.Year() == 2008 },
		},
		{
			"a domain in U-labels", feedback(base, "Reported-Domain: sender.example", "Reported-Domain: Bücher.example"), nil,
			func(r failure.Report) bool { return r.ReportedDomain == "xn--bcher-kva.example" },
		},
		{
			"a source with a port", feedback(base, "192.0.2.7", "192.0.2.7:25"),
			[]failure.Quirk{failure.SourceIPForm},
			func(r failure.Report) bool { return r.SourceIP == ip },
		},
		{
			"no domain", feedback(base, "Reported-Domain: sender.example\n", ""),
			[]failure.Quirk{failure.ReportedDomainMissing},
			func(r failure.Report) bool { return r.ReportedDomain == "author.example" },
		},
		{
			"no source", feedback(base, "Source-IP: 192.0.2.7\n", ""),
			[]failure.Quirk{failure.SourceIPMissing},
			func(r failure.Report) bool { return !r.SourceIP.IsValid() },
		},
		{
			"a source with more behind it", feedback(base, "192.0.2.7", "[192.0.2.7] (mail.example)"),
			[]failure.Quirk{failure.SourceIPForm},
			func(r failure.Report) bool { return r.SourceIP == ip },
		},
		{
			"a mapped source", feedback(base, "192.0.2.7", "IPv6:::ffff:192.0.2.7"),
			[]failure.Quirk{failure.SourceIPForm},
			func(r failure.Report) bool { return r.SourceIP == ip },
		},
		{
			"a source that is none", feedback(base, "192.0.2.7", "somewhere"),
			[]failure.Quirk{failure.SourceIPUnreadable},
			func(r failure.Report) bool { return !r.SourceIP.IsValid() && r.SourceText == "somewhere" },
		},
		{
			"a delivery result of its own", feedback(base, "Version", "Delivery-Result: smg-policy-action\nVersion"),
			[]failure.Quirk{failure.DeliveryResultUnknown},
			func(r failure.Report) bool {
				return r.DeliveryResult == failure.Other && r.DeliveryText == "smg-policy-action"
			},
		},
		{"no header", failure.Message{Feedback: []byte(base)}, []failure.Quirk{failure.OriginalMissing}, nil},
		{"text only", failure.Message{Text: []byte(textReport)}, []failure.Quirk{failure.TextOnly}, func(r failure.Report) bool {
			return r.SourceIP == ip && r.ReportedDomain == "sender.example" && r.ArrivalDate.Equal(day) && r.MessageID == "<1@sender.example>" &&
				cmp.Equal(r.Misaligned, []string{"spf"}) && r.Header == "From: redacted@sender.example\nMessage-ID: <1@sender.example>"
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := failure.Parse(test.message, failure.Options{})
			if err != nil {
				t.Fatalf("got error %v, want none", err)
			}
			if diff := cmp.Diff(test.quirks, got.Quirks, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("got quirks (+) against want (-):\n%s", diff)
			}
			if test.check != nil && !test.check(got) {
				t.Errorf("got %+v, which is not what this row wants", got)
			}
			for _, q := range got.Quirks {
				met[q] = true
			}
		})
	}
	for _, q := range failure.Quirks() {
		if !met[q] {
			t.Errorf("got no row that has the quirk %v, want one", q)
		}
		if q.String() == "" || !strings.HasSuffix(q.Meaning(), ".") {
			t.Errorf("got quirk %q meaning %q, want a name and a sentence", q, q.Meaning())
		}
	}
}

const textReport = `A message claiming to be from you has failed the published DMARC policy for your domain.

  Sender Domain: sender.example
  Sender IP Address: 192.0.2.7
  Received Date: Mon, 03 Nov 2025 10:00:00 +0000
  SPF Alignment: no
  DKIM Alignment: yes
  DMARC Results: None, Accept

------ This is a copy of the headers that were received before the error was detected.

From: <a@sender.example>
Message-ID: <1@sender.example>
`

// feedback returns a message with one text replaced.
func feedback(base, old, replacement string) failure.Message {
	return failure.Message{
		Date:     "Mon, 3 Nov 2025 11:00:00 +0000",
		Feedback: []byte(strings.Replace(base, old, replacement, 1)),
		Original: []byte("From: a@author.example\n"),
	}
}

func TestRejected(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		message failure.Message
		want    failure.RejectedError
		words   string
	}{
		{"nothing", failure.Message{}, failure.RejectedError{Why: failure.RejectedNone}, "no feedback report"},
		{"words", failure.Message{Text: []byte("Hello")}, failure.RejectedError{Why: failure.RejectedNone}, "no feedback report"},
		{"fields of something else", failure.Message{Feedback: []byte("Subject: hello\n")}, failure.RejectedError{Why: failure.RejectedNone}, "no feedback report"},
		{"a complaint", failure.Message{Feedback: []byte("Feedback-Type: Abuse\nVersion: 1\n")}, failure.RejectedError{Why: failure.RejectedOther, FeedbackType: "abuse"}, "other feedback report: abuse"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := failure.Parse(test.message, failure.Options{})
			var got *failure.RejectedError
			if !errors.As(err, &got) || *got != test.want || err.Error() != test.words {
				t.Errorf("got error %v, want %v", err, test.words)
			}
		})
	}
}

func TestLocalPartsAreHidden(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"alice@sender.example":                     "redacted@sender.example",
		"<alice@sender.example>":                   "<redacted@sender.example>",
		`"alice ample"@sender.example`:             "redacted@sender.example",
		`alice."ample"@sender.example`:             "redacted@sender.example",
		"alice@[192.0.2.7]":                        "redacted@[192.0.2.7]",
		"@sender.example":                          "@sender.example",
		"bounce+bob=receiver.example@list.example": "redacted@list.example",
		"alice@old.example@sender.example":         "redacted@sender.example",
		"mailto:alice@sender.example?subject=x":    "mailto:redacted@sender.example?subject=x",
		"smtp.mailfrom=alice@sender.example":       "smtp.mailfrom=redacted@sender.example",
		"header.i=@sender.example":                 "header.i=redacted@sender.example",
		"header.id=no-reply@sender.example":        "header.id=redacted@sender.example",
		"policy.iprev=a@sender.example":            "policy.iprev=redacted@sender.example",
		"alïce@sender.example":                     "redacted@sender.example",
	} {
		message := failure.Message{Feedback: []byte("Auth-Failure: spf\n"), Original: []byte("\nX: " + text + "\n\n" + text)}
		got := musttest.Get(failure.Parse(message, failure.Options{}))(t)
		if got.Header != "X: "+want {
			t.Errorf("%q: got %q, want %q", text, got.Header, want)
		}
	}
}

func TestDates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Mon, 3 Nov 2025 10:00:00 +0100":     "2025-11-03T09:00:00Z",
		"3 Nov 2025 10:00:00 +0000 (GMT)":    "2025-11-03T10:00:00Z",
		"Thu, 8 Mar 2005 14:00:00 EDT":       "2005-03-08T18:00:00Z",
		"Thu, 29 Apr 2013 23:45:50 PST":      "2013-04-30T07:45:50Z",
		"2025-11-03T10:00:00.5+01:00":        "2025-11-03T09:00:00Z",
		"Mon, 3 Nov 2025 10:00:00 +0000 UTC": "2025-11-03T10:00:00Z",
		"Mon, 3 Nov 0025 10:00:00 +0000":     "0001-01-01T00:00:00Z",
		"in the morning":                     "0001-01-01T00:00:00Z",
		"1 Jan 1970 00:00:00 +0000":          "1970-01-01T00:00:00Z",
		"31 Dec 1969 23:59:59 +0000":         "0001-01-01T00:00:00Z",
		"9999-12-31T23:59:59Z":               "9999-12-31T23:59:59Z",
	} {
		got := musttest.Get(failure.Parse(failure.Message{Feedback: []byte("Auth-Failure: spf\nArrival-Date: " + text)}, failure.Options{}))(t)
		if when := got.ArrivalDate.Format(time.RFC3339); when != want {
			t.Errorf("%q: got %s, want %s", text, when, want)
		}
	}
}

// TestCost checks that the time for a report depends only on its length.
func TestCost(t *testing.T) {
	const (
		length  = 256 << 10
		factor  = 30
		opening = "Feedback-Type: auth-failure\n"
	)
	fill := func(part string) []byte { return []byte(opening + strings.Repeat(part, length/len(part))) }
	plain := fill("Authentication-Results: a.example; dkim=fail header.d=b.example\n")
	for _, test := range []struct{ name, part string }{
		{"folded lines", "Authentication-Results:\n" + strings.Repeat(" a\n", 7<<10)},
		{"comments", "Auth-Failure: " + strings.Repeat("(", 8<<10) + "\n"},
		{"addresses", "Authentication-Results: " + strings.Repeat(`a@b"c `, 2<<10) + "\n"},
		{"open quotes", "Authentication-Results: " + strings.Repeat(`"a`, 6<<10) + "\n"},
		{"at signs", "Authentication-Results: " + strings.Repeat(`a@`, 6<<10) + "\n"},
		{"lines that are no fields", "a\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			hostile := fill(test.part)
			costtest.AtMost(t, factor, parsing(plain, plain), parsing(hostile, hostile))
		})
	}
}

func parsing(feedback, original []byte) func() {
	return func() {
		_, _ = failure.Parse(failure.Message{Feedback: feedback, Original: original}, failure.Options{})
	}
}
