package tlsrpt_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// FuzzParseRecord checks that limits hold, that validity follows from the problems, and
// that a valid record and its canonical form are equivalent.
func FuzzParseRecord(f *testing.F) {
	for _, seed := range []string{
		"v=TLSRPTv1;rua=mailto:reports@example.com", "v=TLSRPTv1 ;; rua=https://a.example/x?y=z , mailto:a%2Cb@c ;x=y; X==; RUA=b ",
		"v=TLSRPTv1", "v=tlsrptv1; rua=mailto:a@b", "v=TLSRPTv1;rua=http://a;rua=mailto:,",
	} {
		f.Add(seed)
	}
	const most = 100
	f.Fuzz(func(t *testing.T, txt string) {
		r, ok := tlsrpt.ParseRecord(txt)
		if !ok {
			return
		}
		if r.Text != txt || len(r.Fields) > most || len(r.RUA) > most || len(r.Problems) > most {
			t.Errorf("got text %q, %d fields, %d URIs, %d problems", r.Text, len(r.Fields), len(r.RUA), len(r.Problems))
		}
		if fatal := anyFatal(r.Problems); r.Valid && (fatal || len(r.RUA) == 0) || !r.Valid && !fatal && len(r.Problems) < most {
			t.Errorf("got valid %v with %v and %v", r.Valid, r.RUA, r.Problems)
		}
		if !r.Valid {
			return
		}
		again, ok := tlsrpt.ParseRecord(r.String())
		if !ok || !again.Valid {
			t.Fatalf("canonical form %q: got %+v, want a valid record", r.String(), again)
		}
		if diff := cmp.Diff(r.RUA, again.RUA); diff != "" {
			t.Errorf("the canonical form %q states something else (-record +canonical):\n%s", r.String(), diff)
		}
	})
}

// FuzzReadReport checks that there are no panics, that limits hold, that counts are in
// range, that valid JSON is not damaged, and that a report and its canonical form are
// equal.
func FuzzReadReport(f *testing.F) {
	files := musttest.Get(filepath.Glob("testdata/report/*.json"))(f)
	for _, file := range files {
		content := musttest.Get(os.ReadFile(file))(f)
		f.Add(string(content))
	}
	f.Add(full)
	f.Add(head + `[{"policy":{"mx-host":"[\"mx: [\\\"A.\\\"]\"]","policy-string":"[\"[\\\"x\\\"]\"]"}},` + entry)
	limits := tlsrpt.Limits{TextBytes: 2000, TotalBytes: 10_000, Depth: 20, Policies: 5, Failures: 10, Values: 6}
	f.Fuzz(func(t *testing.T, document string) {
		report, err := tlsrpt.ReadReport(strings.NewReader(document), limits)
		var rejected *tlsrpt.RejectedError
		if err != nil && !errors.As(err, &rejected) {
			t.Fatalf("got %v, want a rejection or none", err)
		}
		if json.Valid([]byte(document)) {
			names := quirkNames(report)
			if rejected != nil && rejected.Why == tlsrpt.RejectedDamaged || names["malformed"]+names["truncated"] > 0 {
				t.Errorf("got %v and the quirks %v, want JSON to be read", err, names)
			}
		}
		if err != nil {
			return
		}
		checkWithin(t, report, limits)
		checkRoundTrip(t, report)
	})
}

// checkWithin checks that a report is within the limits.
func checkWithin(t *testing.T, report tlsrpt.Report, limits tlsrpt.Limits) {
	t.Helper()
	failures := 0
	successful, failed := report.Sessions()
	checkCounts(t, report.Begin, report.End, successful, failed)
	for _, p := range report.Policies {
		failures += len(p.Failures)
		checkCounts(t, p.Successful, p.Failed)
		for _, f := range p.Failures {
			checkCounts(t, f.FailedSessions)
		}
		if len(p.Strings) > limits.Values || len(p.MXHosts) > limits.Values {
			t.Errorf("got %d strings and %d hosts, want at most %d", len(p.Strings), len(p.MXHosts), limits.Values)
		}
	}
	if len(report.Policies) > limits.Policies || failures > limits.Failures {
		t.Errorf("got %d policies and %d failures, want at most %d and %d",
			len(report.Policies), failures, limits.Policies, limits.Failures)
	}
}

func checkCounts(t *testing.T, counts ...int64) {
	t.Helper()
	for _, n := range counts {
		if n < 0 || n >= 1<<53 {
			t.Errorf("got the count %d, want it from 0 to 2^53-1", n)
		}
	}
}
