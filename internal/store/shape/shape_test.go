package shape_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/failure"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/goldentest"
	"github.com/dmarcd/dmarcd/internal/store/shape"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// golden compares the document of the current version with its golden file, and reads the golden
// files of all versions.
//
// If the document of a released version would differ from its golden file, add a new version:
// databases have documents of the old one.
func golden[T any](t *testing.T, kind string, current int, sample T, encode func(T) string, decode func(string) (T, error)) {
	t.Helper()
	document := encode(sample)
	goldentest.Check(t, goldenFile(kind, current), document+"\n")
	for v := 1; v <= current; v++ {
		got, err := decode(readGolden(t, goldenFile(kind, v)))
		if err != nil {
			t.Errorf("version %d: %v", v, err)
		}
		if diff := cmp.Diff(sample, got, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
			t.Errorf("version %d (-want +got):\n%s", v, diff)
		}
	}
	_, err := decode(strings.Replace(document, `{"v":1`, `{"v":9`, 1))
	if err == nil || !strings.Contains(err.Error(), "version 9") || !strings.Contains(err.Error(), "run the dmarcd that wrote it") {
		t.Errorf("a later version: got %v, want an error that says what to do", err)
	}
	for _, broken := range []string{"{", "null", `{"v":0}`, `{"v":-1}`, `{"v":1`, `{"v":1,"domain":7,"changes":7,"findings":7,"org_name":7,"from":7,"before":7,"senders":7,"kinds":7}`, `{"domain":"example.com"}`} {
		if _, err := decode(broken); err == nil {
			t.Errorf("%s: got no error", broken)
		}
	}
}

func goldenFile(kind string, version int) string {
	return filepath.Join("testdata", kind+"-v"+string(rune('0'+version))+".json")
}

func readGolden(t *testing.T, file string) string {
	t.Helper()
	document, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(document), "\n")
}

func TestCheck(t *testing.T) {
	t.Parallel()
	golden(t, "check", 1, sampleCheck(), shape.EncodeCheck, shape.DecodeCheck)
}

// TestCheckOfNothing checks that an empty check has a short document, and is read back as empty.
func TestCheckOfNothing(t *testing.T) {
	t.Parallel()
	empty := facts.Check{Facts: &facts.Facts{}}
	document := shape.EncodeCheck(empty)
	got, err := shape.DecodeCheck(document)
	if diff := cmp.Diff(empty, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if len(document) > 200 {
		t.Errorf("got %d bytes for nothing: %s", len(document), document)
	}
}

func TestFindings(t *testing.T) {
	t.Parallel()
	golden(t, "findings", 1, []dmarcd.Finding{
		{ID: "starttls.certificate_expired", Level: dmarcd.LevelWarning, What: "What is so.", Host: "mx.example.com"},
		{ID: "spf.ptr", Level: dmarcd.LevelWarning, What: "What is so."},
	}, shape.EncodeFindings, shape.DecodeFindings)
	if got, err := shape.DecodeFindings(shape.EncodeFindings(nil)); err != nil || got != nil {
		t.Errorf("no findings: got %v, %v, want none", got, err)
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	golden(t, "changes", 1, []facts.Change{
		{Fact: "dkim.{of}.bits", Of: "google", Before: "1024", After: "2048"},
		{Fact: facts.NameDMARCRecord, Before: "v=DMARC1; p=none", After: "v=DMARC1; p=reject"},
		{Fact: facts.NameFinding, Of: "spf.ptr", Before: "warning"},
	}, shape.EncodeChanges, shape.DecodeChanges)

	if got := shape.EncodeChanges(nil); got != "" {
		t.Errorf("no changes: got %q, want none", got)
	}
	if got, err := shape.DecodeChanges(""); err != nil || got != nil {
		t.Errorf("no document: got %v, %v, want none", got, err)
	}
}

func TestDetail(t *testing.T) {
	t.Parallel()
	for kind, sample := range map[dmarcd.ReportKind]dmarcd.Detail{
		dmarcd.KindAggregate: {Aggregate: &dmarcd.AggregateDetail{
			Bytes: 1234, Sources: 5,
			Report: aggregate.Report{
				Namespace: "urn:ietf:params:xml:ns:dmarc-2.0", Version: "1.0", Dialect: aggregate.DialectRFC9990,
				Metadata: aggregate.Metadata{
					OrgName: "A & B <x>", Email: "a@example.net", ExtraContact: "https://example.net", ReportID: "1",
					Begin: 1767225600, End: 1767311999, Errors: []string{"an error"}, Generator: "g",
				},
				Policy: aggregate.PublishedPolicy{
					Domain: "example.com", P: "none", SP: "quarantine", NP: "reject", ADKIM: "r", ASPF: "s", Percent: "50",
					FailureOptions: "1", Testing: "y", DiscoveryMethod: "treewalk", PSD: "n",
				},
			},
		}},
		dmarcd.KindFailure: {Failure: &failure.Report{
			FeedbackType: "auth-failure", UserAgent: "u", Version: "1", AuthFailure: failure.FailureDMARC,
			AuthenticationResults: []string{"example.net; dmarc=fail"}, Misaligned: []string{"dkim", "spf"}, AlignmentReported: true,
			SourceIP: netip.MustParseAddr("192.0.2.1"), ReportedDomain: "example.com", ReportingMTA: "mx.example.net",
			ArrivalDate: time.Unix(1767225600, 0).UTC(), DeliveryResult: failure.Delivered, Incidents: 2,
			DKIMDomain: "example.com", DKIMIdentity: "@example.com", DKIMSelector: "s1", SPFDNS: []string{"txt : example.com"},
			OriginalMailFrom: "@example.com", OriginalRcptTo: []string{"@example.net"}, MessageID: "<1@example.com>", From: "@example.com",
		}},
		dmarcd.KindTLS: {TLS: &tlsrpt.Report{
			OrgName: "A & B <x>", ContactInfo: "t@example.net", ReportID: "1", Begin: 1767225600, End: 1767311999,
			Policies: []tlsrpt.Policy{{
				Type: tlsrpt.PolicySTS, Domain: "example.com", Strings: []string{"version: STSv1"}, MXHosts: []string{"*.example.com"},
				Successful: 7, Failed: 3,
				Failures: []tlsrpt.Failure{{
					ResultType: tlsrpt.CertificateExpired, SendingMTAIP: "192.0.2.1", ReceivingMXHostname: "mx.example.com",
					ReceivingMXHelo: "mx", ReceivingIP: "192.0.2.2", FailedSessions: 3, AdditionalInformation: "https://example.net/1",
					ReasonCode: "X509",
				}},
			}},
		}},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			golden(t, string(kind), 1, sample, shape.EncodeDetail, func(document string) (dmarcd.Detail, error) {
				return shape.DecodeDetail(kind, document)
			})
			if got, err := shape.DecodeDetail(kind, ""); err != nil || got != (dmarcd.Detail{}) {
				t.Errorf("no document: got %+v, %v, want none", got, err)
			}
		})
	}
	if got := shape.EncodeDetail(dmarcd.Detail{}); got != "" {
		t.Errorf("no detail: got %q, want no document", got)
	}
}

// TestFailureWithoutAddress checks that the text that replaces an address is stored, and no header of
// the mail.
func TestFailureWithoutAddress(t *testing.T) {
	t.Parallel()
	document := shape.EncodeDetail(dmarcd.Detail{Failure: &failure.Report{SourceText: "unknown", Header: "Subject: Offer"}})
	got, err := shape.DecodeDetail(dmarcd.KindFailure, document)
	if diff := cmp.Diff(&failure.Report{SourceText: "unknown"}, got.Failure, cmpopts.EquateComparable(netip.Addr{})); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestEvent(t *testing.T) {
	t.Parallel()
	golden(t, "event", 1, dmarcd.EventData{
		Before: "v=DMARC1; p=none", After: "v=DMARC1; p=reject", Finding: "spf.multiple_records",
		Report: 4711, Organization: "receiver.example", Webhook: 4712, Reason: "a reason",
		Level: dmarcd.LevelWarning, Day: 20000, Subject: "AS64500", SubjectName: "Example Networks", SubjectClass: dmarcd.ClassYours,
		Measured: dmarcd.Measured{Messages: 4713, Observed: 0.25, Usual: 0.75},
	}, shape.EncodeEvent, shape.DecodeEvent)
}

func TestMailDay(t *testing.T) {
	t.Parallel()
	golden(t, "mailday", 1, dmarcd.MailDay{
		Messages: 10, Passes: 9, Unverified: 8,
		Senders:   []dmarcd.MailPart{{Key: "AS64500", Name: "Example Networks", Messages: 7, Passes: 6, Class: dmarcd.ClassYours}},
		Selectors: []dmarcd.MailPart{{Key: "s1._domainkey.example.com", Name: "s1._domainkey.example.com", Messages: 5, Passes: 4}},
		Receivers: []dmarcd.MailPart{{Key: "receiver.example", Name: "receiver.example", Messages: 3, Passes: 2}},
	}, shape.EncodeMailDay, shape.DecodeMailDay)
}

func TestAlertRules(t *testing.T) {
	t.Parallel()
	golden(t, "alertrules", 1, dmarcd.AlertRules{
		Kinds: []dmarcd.EventKind{dmarcd.PolicyWeakened}, Domains: []string{"example.com"}, Tags: []string{"shop"}, MinLevel: dmarcd.LevelWarning,
		Quiet: &dmarcd.QuietHours{From: 22 * 60, To: 7 * 60, Zone: "Europe/Berlin"}, Group: 10 * time.Minute, CoolDown: time.Hour,
		Mutes: []dmarcd.Mute{{Kind: dmarcd.SenderNew, Domain: "example.com", Until: time.Unix(1794909761, 0).UTC()}},
	}, shape.EncodeAlertRules, shape.DecodeAlertRules)
}

// sampleCheck has something in every field that is stored.
func sampleCheck() facts.Check {
	check := facts.Check{
		Grade: "B",
		Facts: &facts.Facts{
			Domain: "example.com", Missing: true,
			DMARC: facts.DMARC{
				Status: "ok", Reason: "a reason", Record: "v=DMARC1; p=quarantine; rua=mailto:a@example.net", RecordDomain: "example.com",
				OrganizationalDomain: "example.com", Policy: "quarantine", Applied: "quarantine", Queries: []string{"example.com", "com"},
				Legacy:       facts.Legacy{RecordDomain: "example.com", OrganizationalDomain: "example.com", Policy: "quarantine"},
				Destinations: []facts.Destination{{Tag: "rua", URI: "mailto:a@example.net", Consent: "authorized"}},
			},
			SPF: facts.SPF{
				Status: "ok", Reason: "a reason", Record: "v=spf1 include:_spf.example.net <&> -all", Lookups: 3, VoidLookups: 1,
				Records: []string{"v=spf1 include:_spf.example.net <&> -all", "v=spf1 -all"},
				Tree: []facts.SPFTerm{
					{
						Term: "include:_spf.example.net", Target: "_spf.example.net", Provider: "Example", Cost: 3, Lookups: 3, Note: "a note",
						Record: "v=spf1 a mx -all", Terms: []facts.SPFTerm{{
							Term: "a/28", Target: "_spf.example.net", Cost: 1, Lookups: 2, Complete: true,
							Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/28"), netip.MustParsePrefix("2001:db8::1/128")},
						}},
					},
					{Term: "-all", Lookups: 3},
				},
			},
			DKIM: facts.DKIM{Keys: []facts.DKIMKey{{
				Selector: "s1", From: "report", Status: "found", Reason: "a reason", Record: "v=DKIM1; p=AAAA", Algorithm: "rsa", Bits: 2048,
				Testing: true, Aliases: []string{"s1.example.net"},
			}}},
			MX: facts.MX{Status: "ok", Reason: "a reason", Hosts: []facts.MXHost{{
				Name: "mx.example.com", Preference: 10, Status: "ok", Addresses: []string{"192.0.2.1", "2001:db8::1"},
			}}},
			MTASTS: facts.MTASTS{
				Status: "ok", Reason: "a reason", Record: "v=STSv1; id=1", Fetch: "ok", Mode: "enforce", MaxAge: 7 * 24 * 60 * 60,
				MX: []string{"*.example.com"},
			},
			TLSRPT: facts.TLSRPT{
				Status: "ok", Reason: "a reason", Record: "v=TLSRPTv1; rua=mailto:t@example.com", Destinations: []string{"mailto:t@example.com"},
			},
			BIMI: facts.BIMI{
				Status: "ok", Reason: "a reason", Record: "v=BIMI1; l=https://example.com/l.svg", RecordDomain: "example.com",
				Location: "https://example.com/l.svg", Evidence: "https://example.com/e.pem",
			},
			STARTTLS: facts.STARTTLS{Status: "ok"},
			DANE: facts.DANE{Status: "ok", Reason: "a reason", Hosts: []facts.DANEHost{{
				Name: "mx.example.com", Status: "ok", Records: []string{"3 1 1 00ff"},
			}}},
			DNSSEC: facts.DNSSEC{Status: "signed", Reason: "a reason", Zone: "example.com"},
		},
		Findings: []dmarcd.Finding{
			{ID: "dnssec.signed", Level: dmarcd.LevelGood, What: "What is so.", Why: "Why it matters.", RFC: "RFC 4035"},
			{
				ID: "dmarc.policy_quarantine", Level: dmarcd.LevelInfo, What: "What is so.", Why: "Why it matters.", Fix: "Publish:",
				Record: dmarcd.DNSRecord{Name: "_dmarc.example.com", Type: "TXT", Data: "v=DMARC1; p=reject"}, Host: "mx.example.com", RFC: "RFC 9989 §4.7", Points: 5,
			},
		},
	}
	check.Next = &check.Findings[1]
	return check
}
