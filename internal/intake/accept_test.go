package intake_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/packtest"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/store/shape"
)

// acceptor returns an Acceptor that fails the test if a reader panics.
func acceptor(t *testing.T) *intake.Acceptor {
	t.Helper()
	a := &intake.Acceptor{
		Limits:    intake.DefaultLimits(),
		Encode:    shape.EncodeDetail,
		Recovered: func(e *recovered.Error) { t.Error(e) },
	}
	a.Limits.Containers.Folder = t.TempDir()
	return a
}

// message returns content as an upload.
func message(content []byte) intake.Message {
	return intake.Message{Intake: dmarcd.IntakeUpload, Name: "a file", Content: bytes.NewReader(content), Size: int64(len(content))}
}

// deliver reads a message. The delivery is closed at the end of the test.
func deliver(t *testing.T, a *intake.Acceptor, m intake.Message) *dmarcd.Delivery {
	t.Helper()
	opened, err := a.Read(t.Context(), m)
	if err != nil {
		t.Fatalf("got error %v, want none", err)
	}
	t.Cleanup(opened.Close)
	return opened.Delivery
}

// describeDelivery returns a line for each report, share and rejection.
func describeDelivery(d *dmarcd.Delivery) []string {
	var lines []string
	for i := range d.Reports {
		r := &d.Reports[i]
		lines = append(lines, fmt.Sprintf("%s %q by %q, id %q, of %q, %s to %s: %d records, %d of %d compliant", r.Kind, r.Member,
			r.Organization, r.ExternalID, r.Domain, r.Begin.Format(time.DateTime), r.End.Format(time.DateTime),
			r.Records, r.Compliant, r.Messages))
		for _, s := range r.Shares {
			lines = append(lines, fmt.Sprintf("share %q: %d records, %+v", s.From, s.Records, s.Counts))
		}
		if r.HeldReason != "" {
			lines = append(lines, "held: "+r.HeldReason)
		}
		if r.Damage != "" {
			lines = append(lines, "damage: "+r.Damage)
		}
	}
	for _, r := range d.Rejections {
		lines = append(lines, fmt.Sprintf("refused %s %q: %s", r.Kind, r.Member, r.Reason))
	}
	return lines
}

// recordOf returns a record with all counted fields.
func recordOf(from, disposition, dkim, spf string, count int64) string {
	return fmt.Sprintf(`<record><row><source_ip>192.0.2.1</source_ip><count>%d</count><policy_evaluated><disposition>%s</disposition>`+
		`<dkim>%s</dkim><spf>%s</spf></policy_evaluated></row><identifiers><header_from>%s</header_from></identifiers>`+
		`<auth_results><spf><domain>example.com</domain><scope>mfrom</scope><result>fail</result></spf></auth_results></record>`,
		count, disposition, dkim, spf, from)
}

// tlsReportOf returns a TLS report with these policies.
func tlsReportOf(policies string) []byte {
	return []byte(`{"organization-name":"Receiver","report-id":"t1","contact-info":"tls@receiver.example",` +
		`"date-range":{"start-datetime":"2026-01-01T00:00:00Z","end-datetime":"2026-01-01T23:59:59Z"},"policies":[` + policies + `]}`)
}

func TestDelivery(t *testing.T) {
	t.Parallel()
	const about = `by "receiver.example", id "1", of "example.com", 2026-01-01 00:00:00 to 2026-01-01 23:59:59: `
	const tlsAbout = `tls "" by "Receiver", id "t1", of "a.example", 2026-01-01 00:00:00 to 2026-01-01 23:59:59: `
	whole := packtest.Zip("a.xml", opening+record("192.0.2.1", 2, "pass")+closing)
	for _, tt := range []struct {
		name  string
		input []byte
		want  []string
	}{
		{
			"shares by From domain",
			[]byte(opening +
				recordOf("example.com", "none", "pass", "pass", 1) + recordOf("news.example.com", "quarantine", "fail", "fail", 2) +
				recordOf("example.com", "reject", "fail", "fail", 4) + recordOf("example.com", "none", "fail", "pass", 8) +
				recordOf("Example.COM.", "none", "pass", "fail", 16) + closing),
			[]string{
				`aggregate "" ` + about + `5 records, 25 of 31 compliant`,
				`share "example.com": 4 records, {Summary:{Compliant:25 NonCompliant:4} Quarantined:0 Rejected:4 DKIM:17 SPF:9 Unverified:0}`,
				`share "news.example.com": 1 records, {Summary:{Compliant:0 NonCompliant:2} Quarantined:2 Rejected:0 DKIM:0 SPF:0 Unverified:0}`,
			},
		},
		{
			"sums stay where numbers are exact",
			[]byte(opening + recordOf("example.com", "reject", "fail", "fail", biggest) + recordOf("example.com", "reject", "fail", "fail", 1) + closing),
			[]string{
				`aggregate "" ` + about + `2 records, 0 of 4503599627370495 compliant`,
				`share "example.com": 2 records, {Summary:{Compliant:0 NonCompliant:4503599627370495} Quarantined:0 Rejected:4503599627370495 DKIM:0 SPF:0 Unverified:0}`,
				"held: " + dmarcd.Implausible(biggest, 4503599627370495),
			},
		},
		{
			"an implausible record is held for itself",
			[]byte(opening + recordOf("example.com", "reject", "fail", "fail", 1_000_000_001) + closing),
			[]string{
				`aggregate "" ` + about + `1 records, 0 of 1000000001 compliant`,
				`share "example.com": 1 records, {Summary:{Compliant:0 NonCompliant:1000000001} Quarantined:0 Rejected:1000000001 DKIM:0 SPF:0 Unverified:0}`,
				"held: " + dmarcd.Implausible(1_000_000_001, 1_000_000_001),
			},
		},
		{
			"a report without records",
			[]byte(opening + closing),
			[]string{
				`aggregate "" ` + about + `0 records, 0 of 0 compliant`,
				`share "": 0 records, {Summary:{Compliant:0 NonCompliant:0} Quarantined:0 Rejected:0 DKIM:0 SPF:0 Unverified:0}`,
			},
		},
		{
			"a From domain that is none",
			[]byte(opening + recordOf(strings.Repeat("x", 600), "none", "fail", "fail", 1) + closing),
			[]string{
				`aggregate "" ` + about + `1 records, 0 of 1 compliant`,
				`share "` + strings.Repeat("x", 500) + `": 1 records, {Summary:{Compliant:0 NonCompliant:1} Quarantined:0 Rejected:0 DKIM:0 SPF:0 Unverified:0}`,
			},
		},
		{
			"a TLS report",
			tlsReportOf(tlsPolicy("b.example", 5, 1) + "," + tlsPolicy("a.example", 7, 0) + "," + tlsPolicy("b.example", 1, 0)),
			[]string{
				tlsAbout + `3 records, 13 of 14 compliant`,
				`share "b.example": 2 records, {Summary:{Compliant:0 NonCompliant:0} Quarantined:0 Rejected:0 DKIM:0 SPF:0 Unverified:0}`,
				`share "a.example": 1 records, {Summary:{Compliant:0 NonCompliant:0} Quarantined:0 Rejected:0 DKIM:0 SPF:0 Unverified:0}`,
			},
		},
		{
			"a failure report",
			[]byte(failureMail("jane")),
			[]string{
				`failure "" by "mx.receiver.example", id "<1@example.com>", of "example.com", 2026-01-02 10:00:00 to 2026-01-02 10:00:00: 1 records, 0 of 3 compliant`,
				`share "example.com": 1 records, {Summary:{Compliant:0 NonCompliant:0} Quarantined:0 Rejected:0 DKIM:0 SPF:0 Unverified:0}`,
			},
		},
		{
			"a TLS report with an implausible policy is held",
			tlsReportOf(tlsPolicy("a.example", 1, 1_000_000_001)),
			[]string{
				tlsAbout + `1 records, 1 of 1000000002 compliant`,
				`share "a.example": 1 records, {Summary:{Compliant:0 NonCompliant:0} Quarantined:0 Rejected:0 DKIM:0 SPF:0 Unverified:0}`,
				"held: " + dmarcd.Implausible(1_000_000_001, 1_000_000_002),
			},
		},
		{
			"a TLS report with an implausible sum is held",
			tlsReportOf(strings.Repeat(tlsPolicy("a.example", 1_000_000_000, 0)+",", 10) + tlsPolicy("a.example", 1, 0)),
			[]string{
				tlsAbout + `11 records, 10000000001 of 10000000001 compliant`,
				`share "a.example": 11 records, {Summary:{Compliant:0 NonCompliant:0} Quarantined:0 Rejected:0 DKIM:0 SPF:0 Unverified:0}`,
				"held: " + dmarcd.Implausible(1_000_000_000, 10_000_000_001),
			},
		},
		{
			"a failure report with implausible incidents is held",
			[]byte(strings.Replace(failureMail("jane"), "Incidents: 3", "Incidents: 1000000001", 1)),
			[]string{
				`failure "" by "mx.receiver.example", id "<1@example.com>", of "example.com", 2026-01-02 10:00:00 to 2026-01-02 10:00:00: 1 records, 0 of 1000000001 compliant`,
				`share "example.com": 1 records, {Summary:{Compliant:0 NonCompliant:0} Quarantined:0 Rejected:0 DKIM:0 SPF:0 Unverified:0}`,
				"held: " + dmarcd.Implausible(1_000_000_001, 1_000_000_001),
			},
		},
		{
			"a long name is cut between characters",
			[]byte(strings.Replace(opening, "receiver.example</org", "x"+strings.Repeat("é", 300)+"</org", 1) + closing),
			[]string{
				strings.Replace(`aggregate "" `+about, "receiver.example", "x"+strings.Repeat("é", 249), 1) + `0 records, 0 of 0 compliant`,
				`share "": 0 records, {Summary:{Compliant:0 NonCompliant:0} Quarantined:0 Rejected:0 DKIM:0 SPF:0 Unverified:0}`,
			},
		},
		{
			"a TLS report without policies or times",
			[]byte(`{"organization-name":"Receiver","report-id":"t1","policies":[]}`),
			[]string{
				`tls "" by "Receiver", id "t1", of "", 0001-01-01 00:00:00 to 0001-01-01 00:00:00: 0 records, 0 of 0 compliant`,
				`share "": 0 records, {Summary:{Compliant:0 NonCompliant:0} Quarantined:0 Rejected:0 DKIM:0 SPF:0 Unverified:0}`,
			},
		},
		{
			"a failure report with bytes that are no text",
			[]byte(strings.Replace(failureMail("jane"), "mx.receiver.example", "mx\xff\x00.receiver.example", 1)),
			[]string{
				`failure "" by "mx��.receiver.example", id "<1@example.com>", of "example.com", 2026-01-02 10:00:00 to 2026-01-02 10:00:00: 1 records, 0 of 3 compliant`,
				`share "example.com": 1 records, {Summary:{Compliant:0 NonCompliant:0} Quarantined:0 Rejected:0 DKIM:0 SPF:0 Unverified:0}`,
			},
		},
		{
			"one odd member does not stop the rest",
			packtest.Zip("a.xml", "<feedback/>", "b.txt", "hello", "c.xml", opening+closing),
			[]string{
				`aggregate "c.xml" ` + about + `0 records, 0 of 0 compliant`,
				`share "": 0 records, {Summary:{Compliant:0 NonCompliant:0} Quarantined:0 Rejected:0 DKIM:0 SPF:0 Unverified:0}`,
				`refused aggregate "a.xml": aggregate report rejected: the report has no time range`,
				`refused  "b.txt": this is text, not a report`,
			},
		},
		{
			"a damaged archive",
			whole[:len(whole)-40],
			[]string{
				`aggregate "a.xml" ` + about + `1 records, 2 of 2 compliant`,
				`share "example.com": 1 records, {Summary:{Compliant:2 NonCompliant:0} Quarantined:0 Rejected:0 DKIM:2 SPF:0 Unverified:0}`,
				`damage: the container is damaged: the archive has no directory, it is truncated`,
			},
		},
		{"nothing", nil, []string{`refused  "": the content is empty`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := message(tt.input)
			m.Authentication = dmarcd.Authentication{Genuine: dmarcd.GenuineNo, From: "receiver.example"}
			d := deliver(t, acceptor(t), m)
			if diff := cmp.Diff(tt.want, describeDelivery(d)); diff != "" {
				t.Errorf("delivery (-want +got):\n%s", diff)
			}
			if d.Intake != dmarcd.IntakeUpload || d.Name != "a file" || d.Authentication != m.Authentication {
				t.Errorf("got %q, %q and %v, want what the message says", d.Intake, d.Name, d.Authentication)
			}
			if len(d.Reports) > 0 && d.Reports[0].Kind == dmarcd.KindFailure {
				return // its original is redacted, see TestFailureReportsAreRedacted
			}
			if want := dmarcd.Hash(sha256.Sum256(tt.input)); d.Original.Hash != want || d.Original.Size != int64(len(tt.input)) {
				t.Errorf("got %x of %d bytes, want %x of %d", d.Original.Hash, d.Original.Size, want, len(tt.input))
			}
		})
	}
}

func TestQuirks(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a.", 400)
	for _, tt := range []struct {
		name, input string
		want        dmarcd.Quirk
	}{
		{"aggregate", opening + strings.Repeat(recordOf("Example.com", "none", "fail", "fail", 1), 3) + closing, dmarcd.Quirk{Name: "domain_case", Count: 3}},
		{"failure", strings.Replace(failureMail("jane"), "Auth-Failure: dmarc\n", "", 1), dmarcd.Quirk{Name: "auth_failure_missing", Count: 1}},
		{"tls", `{"report-id":"1\u0000","policies":[` + tlsPolicy("a.example", 1, 0) + `]}`, dmarcd.Quirk{Name: "control_characters", Count: 1}},
		{"aggregate with long texts", opening + strings.Repeat(recordOf(long, "none", "fail", "fail", 1), 3) + closing, dmarcd.Quirk{Name: dmarcd.QuirkCut, Count: 3}},
		{"aggregate with a long name", strings.Replace(opening, "receiver.example", long, 1) + recordOf("example.com", "none", "fail", "fail", 1) + closing, dmarcd.Quirk{Name: dmarcd.QuirkCut, Count: 1}},
		{"failure with long texts", strings.NewReplacer("Reported-Domain: ", "Reported-Domain: "+long, "<1@", "<"+long+"@").Replace(failureMail("jane")), dmarcd.Quirk{Name: dmarcd.QuirkCut, Count: 2}},
		{"tls with long texts", `{"report-id":"` + long + `","policies":[` + tlsPolicy(long, 1, 0) + `]}`, dmarcd.Quirk{Name: dmarcd.QuirkCut, Count: 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := deliver(t, acceptor(t), message([]byte(tt.input)))
			if len(d.Reports) != 1 || !slices.Contains(d.Reports[0].Quirks, tt.want) {
				t.Errorf("got %v, want %v among the quirks", d.Reports, tt.want)
			}
		})
	}
}

func tlsPolicy(domain string, successful, failed int) string {
	return fmt.Sprintf(`{"policy":{"policy-type":"no-policy-found","policy-domain":%q},"summary":`+
		`{"total-successful-session-count":%d,"total-failure-session-count":%d}}`, domain, successful, failed)
}

// failureMail returns a failure report about a mail to an address.
func failureMail(to string) string {
	return "From: dmarc@receiver.example\nDate: Fri, 02 Jan 2026 10:00:01 +0000\n" +
		"Content-Type: multipart/report; report-type=feedback-report; boundary=b\n\n--b\n" +
		"Content-Type: message/feedback-report\n\nFeedback-Type: auth-failure\nVersion: 1\nUser-Agent: r/1\nAuth-Failure: dmarc\n" +
		"Identity-Alignment: none\nIncidents: 3\nArrival-Date: Fri, 02 Jan 2026 10:00:00 +0000\nSource-IP: 192.0.2.7\n" +
		"Reported-Domain: example.com\nReporting-MTA: dns; mx.receiver.example\nDelivery-Result: reject\n" +
		"Original-Rcpt-To: <" + to + "@receiver.example>\n\n--b\n" +
		"Content-Type: message/rfc822\n\nFrom: Bob <bob@example.com>\nMessage-ID: <1@example.com>\nSubject: hello\n\nDear all,\n\n--b--\n"
}

func TestForged(t *testing.T) {
	t.Parallel()
	reports := packtest.Zip("a.xml", opening+closing, "b.txt", "hello", "c.json", `{"report-id":"1","policies":[`+tlsPolicy("a.example", 1, 0)+`]}`)
	const reason = "the sender of the message is spoofed: no signature verifies"
	rejected := []string{
		`refused aggregate "a.xml": ` + reason,
		`refused  "b.txt": this is text, not a report`,
		`refused tls "c.json": ` + reason,
	}
	for _, tt := range []struct {
		name    string
		reject  bool
		genuine dmarcd.Genuine
		want    bool // rejected
	}{
		{"marked", false, dmarcd.GenuineNo, false},
		{"refused", true, dmarcd.GenuineNo, true},
		{"genuine", true, dmarcd.GenuineYes, false},
		{"unknown", true, dmarcd.GenuineUnknown, false},
		{"a bare file", true, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := acceptor(t)
			a.RejectForged = tt.reject
			m := message(reports)
			m.Authentication = dmarcd.Authentication{Genuine: tt.genuine, Reason: "no signature verifies"}
			d := deliver(t, a, m)
			if !tt.want {
				if len(d.Reports) != 2 || len(d.Rejections) != 1 {
					t.Errorf("got %q, want two reports and a refusal", describeDelivery(d))
				}
				for _, r := range d.Reports {
					if (r.Standing == dmarcd.VerifiedDomain) != (tt.genuine == dmarcd.GenuineYes) {
						t.Errorf("got the standing %d of a mail that is %q", r.Standing, tt.genuine)
					}
				}
				return
			}
			if diff := cmp.Diff(rejected, describeDelivery(d)); diff != "" {
				t.Errorf("delivery (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOverALimit checks that a message over a limit is rejected as a whole, and that its bytes
// are stored.
func TestOverALimit(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	good := opening + record("192.0.2.1", 1, "pass") + closing
	three := packtest.Zip("a.xml", good, "b.xml", good, "c.xml", good)
	bigTLS := `{"report-id":"1","policies":[` + strings.TrimSuffix(strings.Repeat(
		`{"policy":{"policy-type":"sts","policy-domain":"a.example","mx-host":"`+strings.Repeat("m", 60<<10)+`"}},`, 100), ",") + `]}`
	for _, tt := range []struct {
		name   string
		input  []byte
		change func(*intake.Limits)
		want   string
	}{
		{"input", three, func(l *intake.Limits) { l.Containers.Input = 10 }, "over the limit of 10 for input bytes"},
		{"members", three, func(l *intake.Limits) { l.Containers.Members = 2 }, "over the limit of 2 for members"},
		{"expanded", three, func(l *intake.Limits) { l.Containers.Expanded = int64(len(good)) + 1 }, fmt.Sprintf("over the limit of %d for expanded bytes", len(good)+1)},
		{"time", three, func(l *intake.Limits) { l.Time = 0 }, "the parsing time limit of 0s was exceeded"},
		{
			"documents",
			stored(t, bigTLS, bigTLS, bigTLS, bigTLS, bigTLS, bigTLS),
			func(l *intake.Limits) { l.Containers.Input = 64 << 20 },
			"over the limit of 33554432 for bytes of report content",
		},
		{"From domains", stored(t, spread(60_000), spread(60_000)), func(*intake.Limits) {}, "over the limit of 100000 for From domains"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := acceptor(t)
			tt.change(&a.Limits)
			d := deliver(t, a, message(tt.input))
			if diff := cmp.Diff([]string{`refused  "": ` + tt.want}, describeDelivery(d)); diff != "" {
				t.Errorf("delivery (-want +got):\n%s", diff)
			}
			retained, err := io.ReadAll(intake.Unpack(d.Original.Packed()))
			if err != nil || !bytes.Equal(retained, tt.input) {
				t.Errorf("got %d bytes and error %v, want the %d that were sent", len(retained), err, len(tt.input))
			}
		})
	}
}

// spread returns a report of messages from so many From domains.
func spread(domains int) string {
	var report strings.Builder
	report.WriteString(opening)
	for i := range domains {
		fmt.Fprintf(&report, `<record><row><count>1</count></row><identifiers><header_from>%d.example</header_from></identifiers></record>`, i)
	}
	report.WriteString(closing)
	return report.String()
}

func TestTooManyFromDomains(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	d := deliver(t, acceptor(t), message([]byte(spread(100_001))))
	want := []string{`refused aggregate "": aggregate report rejected: the report has more than 100000 From domains`}
	if diff := cmp.Diff(want, describeDelivery(d)); diff != "" {
		t.Errorf("delivery (-want +got):\n%s", diff)
	}
}

// TestNotEvaluated separates errors that can be retried from rejections.
func TestNotEvaluated(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is gone")
	long := []byte(opening + strings.Repeat(record("192.0.2.1", 1, "pass"), 5000) + closing)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	unreadable := intake.Message{Content: readerAt{iotest.ErrReader(broken)}, Size: 100}
	for _, tt := range []struct {
		name      string
		ctx       context.Context
		folder    string
		message   intake.Message
		want      error
		temporary bool
	}{
		{"no room for temporary files", t.Context(), filepath.Join(t.TempDir(), "missing"), message(long), os.ErrNotExist, true},
		{"the content cannot be read", t.Context(), "", unreadable, broken, true},
		{"the caller has enough", cancelled, "", message(long), context.Canceled, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := acceptor(t)
			if tt.folder != "" {
				a.Limits.Containers.Folder = tt.folder
			}
			opened, err := a.Read(tt.ctx, tt.message)
			if opened != nil || !errors.Is(err, tt.want) || errors.Is(err, dmarcd.ErrTemporary) != tt.temporary {
				t.Errorf("got error %v, want %v, temporary %v", err, tt.want, tt.temporary)
			}
		})
	}
}

// readerAt makes an io.ReaderAt of a stream.
type readerAt struct{ r io.Reader }

func (r readerAt) ReadAt(p []byte, _ int64) (int, error) { return r.r.Read(p) }

func TestPanicOfAParser(t *testing.T) {
	t.Parallel()
	var panics []*recovered.Error
	a := acceptor(t)
	a.Encode = func(dmarcd.Detail) string { panic("an odd report") }
	a.Recovered = func(e *recovered.Error) { panics = append(panics, e) }
	d := deliver(t, a, message([]byte(opening+closing)))
	want := []string{`refused  "": the parser failed; the original is stored and can be retried after an upgrade`}
	if diff := cmp.Diff(want, describeDelivery(d)); diff != "" {
		t.Errorf("delivery (-want +got):\n%s", diff)
	}
	if len(panics) != 1 || panics[0].Value != "an odd report" || !strings.Contains(string(panics[0].Stack), "accept_test.go") {
		t.Errorf("got panics %v, want one with the stack", panics)
	}
}

// fakeStore is a DeliveryStore that counts or fails.
type fakeStore struct {
	got []*dmarcd.Delivery
	err error
}

func (k *fakeStore) Receive(_ context.Context, deliveries []*dmarcd.Delivery) ([][]dmarcd.Receipt, error) {
	if k.err != nil {
		return nil, k.err
	}
	k.got = append(k.got, deliveries...)
	receipts := make([][]dmarcd.Receipt, len(deliveries))
	for i, d := range deliveries {
		for _, r := range d.Reports {
			records := 0
			for _, err := range r.EachRecord {
				if err != nil {
					return nil, err
				}
				records++
			}
			receipts[i] = append(receipts[i], dmarcd.Receipt{Kind: r.Kind, Status: dmarcd.Stored, Records: records})
		}
	}
	return receipts, nil
}

func TestAccept(t *testing.T) {
	t.Parallel()
	short := opening + record("192.0.2.1", 1, "pass") + closing
	long := opening + strings.Repeat(record("192.0.2.1", 1, "pass"), 5000) + closing
	k := &fakeStore{}
	var reported []string
	taking := acceptor(t)
	taking.Received = func(way dmarcd.Intake, receipts []dmarcd.Receipt) {
		reported = append(reported, fmt.Sprint(way, len(receipts)))
	}
	for _, tt := range []struct {
		content string
		want    []dmarcd.Receipt
	}{
		{short, []dmarcd.Receipt{{Kind: dmarcd.KindAggregate, Status: dmarcd.Stored, Records: 1}}},
		{"hello", nil},
		{long, []dmarcd.Receipt{{Kind: dmarcd.KindAggregate, Status: dmarcd.Stored, Records: 5000}}},
	} {
		got, err := taking.Accept(t.Context(), k, message([]byte(tt.content)))
		if err != nil {
			t.Fatalf("got error %v, want none", err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("receipts (-want +got):\n%s", diff)
		}
	}
	if len(k.got) != 3 || len(k.got[1].Rejections) != 1 {
		t.Errorf("got %d deliveries, want three with a refusal in the second", len(k.got))
	}
	if want := []string{"upload1", "upload0", "upload1"}; !slices.Equal(reported, want) {
		t.Errorf("got %v, want the receipts of each delivery: %v", reported, want)
	}

	missing := acceptor(t)
	missing.Limits.Containers.Folder = filepath.Join(t.TempDir(), "missing")
	if _, err := missing.Accept(t.Context(), k, message([]byte(long))); !errors.Is(err, dmarcd.ErrTemporary) || len(k.got) != 3 {
		t.Errorf("got error %v and %d deliveries, want nothing stored of what cannot be read", err, len(k.got))
	}

	k.err = dmarcd.ErrTemporary
	if _, err := acceptor(t).Accept(t.Context(), k, message([]byte(short))); !errors.Is(err, dmarcd.ErrTemporary) {
		t.Errorf("got error %v, want that of the store", err)
	}
}
