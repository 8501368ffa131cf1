package shape_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/shape"
)

var update = flag.Bool("update", false, "rewrite the golden files of the current versions")

// golden compares the document of the current version with its golden file, and reads the
// golden files of all versions.
//
// A document that differs from its golden file could not be told from those that
// databases hold: where the version was released, write a new one beside it.
func golden[T any](t *testing.T, kind string, current int, sample T, encode func(T) string, decode func(string) (T, error)) {
	t.Helper()
	document := encode(sample)
	file := goldenFile(kind, current)
	if *update {
		if err := os.WriteFile(file, []byte(document+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(readGolden(t, file), document); diff != "" {
		t.Errorf("%s is not what version %d of it looks like (-want +got):\n%s", kind, current, diff)
	}
	for v := 1; v <= current; v++ {
		got, err := decode(readGolden(t, goldenFile(kind, v)))
		if err != nil {
			t.Errorf("version %d: %v", v, err)
		}
		if diff := cmp.Diff(sample, got); diff != "" {
			t.Errorf("version %d (-want +got):\n%s", v, diff)
		}
	}
	_, err := decode(strings.Replace(document, `{"v":1`, `{"v":9`, 1))
	if err == nil || !strings.Contains(err.Error(), "version 9") || !strings.Contains(err.Error(), "run the dmarcd that wrote it") {
		t.Errorf("a later version: got %v, want an error that says what to do", err)
	}
	for _, broken := range []string{"{", "null", `{"v":0}`, `{"v":-1}`, `{"v":1`, `{"v":1,"domain":7,"changes":7}`, `{"domain":"example.com"}`} {
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

// TestCheckOfNothing wants a check without anything to be short, and to be read as such.
func TestCheckOfNothing(t *testing.T) {
	t.Parallel()
	empty := dmarcd.Check{Facts: &dmarcd.Facts{}}
	document := shape.EncodeCheck(empty)
	got, err := shape.DecodeCheck(document)
	if diff := cmp.Diff(empty, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if len(document) > 200 {
		t.Errorf("got %d bytes for nothing: %s", len(document), document)
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	golden(t, "changes", 1, []dmarcd.Change{
		{Fact: dmarcd.FactDKIMBits, Of: "google", Before: "1024", After: "2048"},
		{Fact: dmarcd.FactDMARCRecord, Before: "v=DMARC1; p=none", After: "v=DMARC1; p=reject"},
		{Fact: dmarcd.FactFinding, Of: "spf.ptr", Before: "warning"},
	}, shape.EncodeChanges, shape.DecodeChanges)

	if got := shape.EncodeChanges(nil); got != "" {
		t.Errorf("no changes: got %q, want none", got)
	}
	if got, err := shape.DecodeChanges(""); err != nil || got != nil {
		t.Errorf("no document: got %v, %v, want none", got, err)
	}
}

// sampleCheck has something in every field that is stored.
func sampleCheck() dmarcd.Check {
	check := dmarcd.Check{
		Grade: "B",
		Facts: &dmarcd.Facts{
			Domain: "example.com",
			DMARC: dmarcd.DMARCFacts{
				Status: "ok", Reason: "a reason", Record: "v=DMARC1; p=quarantine; rua=mailto:a@example.net", RecordDomain: "example.com",
				OrganizationalDomain: "example.com", Policy: "quarantine", Applied: "quarantine", Queries: []string{"example.com", "com"},
				Legacy:       dmarcd.LegacyFacts{RecordDomain: "example.com", OrganizationalDomain: "example.com", Policy: "quarantine"},
				Destinations: []dmarcd.DestinationFacts{{Tag: "rua", URI: "mailto:a@example.net", Consent: "authorized"}},
			},
			SPF: dmarcd.SPFFacts{
				Status: "ok", Reason: "a reason", Record: "v=spf1 include:_spf.example.net <&> -all", Lookups: 3, VoidLookups: 1,
				Tree: []dmarcd.SPFTerm{
					{
						Term: "include:_spf.example.net", Target: "_spf.example.net", Provider: "Example", Cost: 3, Lookups: 3, Note: "a note",
						Record: "v=spf1 a mx -all", Terms: []dmarcd.SPFTerm{{Term: "a", Target: "_spf.example.net", Cost: 1, Lookups: 2}},
					},
					{Term: "-all", Lookups: 3},
				},
			},
			DKIM: dmarcd.DKIMFacts{Keys: []dmarcd.DKIMKey{{
				Selector: "s1", From: "report", Status: "found", Reason: "a reason", Record: "v=DKIM1; p=AAAA", Algorithm: "rsa", Bits: 2048,
				Testing: true, Aliases: []string{"s1.example.net"},
			}}},
			MX: dmarcd.MXFacts{Status: "ok", Reason: "a reason", Hosts: []dmarcd.MXHost{{
				Name: "mx.example.com", Preference: 10, Status: "ok", Addresses: []string{"192.0.2.1", "2001:db8::1"},
			}}},
			MTASTS: dmarcd.MTASTSFacts{
				Status: "ok", Reason: "a reason", Record: "v=STSv1; id=1", Fetch: "ok", Mode: "enforce", MaxAge: 7 * 24 * time.Hour,
				MX: []string{"*.example.com"},
			},
			TLSRPT: dmarcd.TLSRPTFacts{
				Status: "ok", Reason: "a reason", Record: "v=TLSRPTv1; rua=mailto:t@example.com", Destinations: []string{"mailto:t@example.com"},
			},
			BIMI: dmarcd.BIMIFacts{
				Status: "ok", Reason: "a reason", Record: "v=BIMI1; l=https://example.com/l.svg", RecordDomain: "example.com",
				Location: "https://example.com/l.svg", Evidence: "https://example.com/e.pem",
			},
			DANE: dmarcd.DANEFacts{Status: "ok", Reason: "a reason", Hosts: []dmarcd.DANEHost{{
				Name: "mx.example.com", Status: "ok", Records: []string{"3 1 1 00ff"},
			}}},
			DNSSEC: dmarcd.DNSSECFacts{Status: "signed", Reason: "a reason", Zone: "example.com"},
		},
		Findings: []dmarcd.Finding{
			{ID: "dnssec.signed", Level: dmarcd.LevelGood, What: "What is so.", Why: "Why it matters.", RFC: "RFC 4035"},
			{
				ID: "dmarc.policy-quarantine", Level: dmarcd.LevelInfo, What: "What is so.", Why: "Why it matters.", Fix: "Publish:",
				Record: `_dmarc.example.com. TXT "v=DMARC1; p=reject"`, RFC: "RFC 9989 §4.7", Points: 5,
			},
		},
	}
	check.Next = &check.Findings[1]
	return check
}
