package wire_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store/shape"
	"github.com/dmarcd/dmarcd/internal/wire"
)

const (
	aggregateReport = `<feedback><report_metadata><org_name>A &amp; B &lt;x&gt;</org_name><report_id>1</report_id>` +
		`<date_range><begin>1767225600</begin><end>1767311999</end></date_range></report_metadata>` +
		`<policy_published><domain>example.com</domain><p>none</p></policy_published>` +
		`<record><row><source_ip>192.0.2.1</source_ip><count>7</count></row></record></feedback>`
	tlsReport = `{"organization-name":"A & B <x>","report-id":"1","policies":[{"policy":{"policy-type":"sts","policy-domain":"example.com"},` +
		`"summary":{"total-successful-session-count":1,"total-failure-session-count":2}}]}`
	failureReport = "From: a@example.com\nContent-Type: multipart/report; boundary=b; report-type=feedback-report\n\n--b\n" +
		"Content-Type: message/feedback-report\n\nFeedback-Type: auth-failure\nUser-Agent: A & B <x>\nReported-Domain: example.com\n\n--b--\n"
)

// TestReport checks the shape of reports without records, before and after they are stored.
func TestReport(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, input string
		want        map[string]any // some of the members
	}{
		{"aggregate", aggregateReport, map[string]any{"kind": "aggregate", "org_name": "A & B <x>", "domain": "example.com", "sum_count": 7.0, "version": nil}},
		{"tls", tlsReport, map[string]any{"kind": "tls", "organization_name": "A & B <x>", "total_failure": 2.0, "start": nil}},
		{"failure", failureReport, map[string]any{"kind": "failure", "user_agent": "A & B <x>", "reported_domain": "example.com", "from": nil}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var document string
			err := intake.NewReader(intake.DefaultLimits()).Read(t.Context(), strings.NewReader(tt.input), func(item *intake.Item) error {
				if item.Err != nil {
					return item.Err
				}
				report := item.Report()
				document = marshal(t, wire.NewReport("", report))
				var err error
				report.Detail, err = shape.DecodeDetail(report.Kind, shape.EncodeDetail(report.Detail))
				if diff := cmp.Diff(document, marshal(t, wire.NewReport("", report))); diff != "" {
					t.Errorf("read back (-want +got):\n%s", diff)
				}
				return err
			})
			musttest.Do(t, err)
			var got map[string]any
			if err := json.Unmarshal([]byte(document), &got); err != nil {
				t.Fatalf("got %s and error %v, want JSON", document, err)
			}
			for name, want := range tt.want {
				if value, there := got[name]; !there || value != want {
					t.Errorf("%s: got %v, want %v", name, value, want)
				}
			}
			if _, there := got["record_list"]; there {
				t.Error("got the records, want them left out")
			}
		})
	}
}

// TestRecordListsAreNeverNull checks that missing lists are empty lists, not null.
func TestRecordListsAreNeverNull(t *testing.T) {
	t.Parallel()
	err := intake.NewReader(intake.DefaultLimits()).Read(t.Context(), strings.NewReader(aggregateReport), func(item *intake.Item) error {
		for record, err := range item.Aggregate.Records(t.Context()) {
			if err != nil {
				return err
			}
			got := wire.NewAggregateRecord(record)
			if got.SourceIP != "192.0.2.1" || got.Count != 7 || got.Reasons == nil || got.DKIMResults == nil || got.SPFResults == nil {
				t.Errorf("got %+v, want the record with empty lists", got)
			}
		}
		if quirks := wire.NewQuirks(item.Report()); slices.ContainsFunc(quirks, func(q wire.Quirk) bool { return q.Meaning == "" }) || len(quirks) == 0 {
			t.Errorf("got %v, want quirks with what they mean", quirks)
		}
		return nil
	})
	musttest.Do(t, err)
}
