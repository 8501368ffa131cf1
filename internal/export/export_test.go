package export_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/export"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// sample returns a report with a record that has a value in every field.
func sample() (*dmarcd.Report, aggregate.Record) {
	report := &dmarcd.Report{
		ID: 4711, Kind: dmarcd.KindAggregate, Organization: "=cmd|' /C calc'!A0", ExternalID: "r-1", Domain: "example.com",
		Begin: time.Unix(1793491200, 0).UTC(), End: time.Unix(1793577599, 0).UTC(), ReceivedAt: time.Unix(1793580000, 0).UTC(),
		Intake: dmarcd.IntakeSMTP, State: dmarcd.ReportCounted, Authentication: dmarcd.Authentication{Genuine: dmarcd.GenuineYes, Domain: "receiver.example"},
	}
	report.Detail.Aggregate = &dmarcd.AggregateDetail{Report: aggregate.Report{
		Metadata: aggregate.Metadata{Email: "dmarc@receiver.example", ExtraContact: "https://receiver.example", Generator: "reporter 1"},
		Policy: aggregate.PublishedPolicy{
			P: "none", SP: "quarantine", NP: "reject", ADKIM: "s", ASPF: "r", Percent: "100", FailureOptions: "1", Testing: "y", DiscoveryMethod: "treewalk", PSD: "n",
		},
	}}
	return report, aggregate.Record{
		Source: "192.0.2.1", Count: 1 << 40, Disposition: "quarantine", DKIM: "pass", SPF: "fail",
		HeaderFrom: "example.com", EnvelopeFrom: "bounce.example", EnvelopeTo: "receiver.example", Disagrees: true,
		Reasons:     []aggregate.Reason{{Type: "forwarded", Comment: "a\nlist"}, {Type: "other"}},
		DKIMResults: []aggregate.DKIMResult{{Domain: "example.com", Selector: "s1", Result: "pass", HumanResult: "good"}},
		SPFResults:  []aggregate.SPFResult{{Domain: "bounce.example", Scope: "mfrom", Result: "fail"}},
	}
}

// exported returns n rows in a format. Every second record has empty lists.
func exported(t *testing.T, format export.Format, n int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := musttest.Get(export.NewWriter(format, &out))(t)
	report, record := sample()
	for i := range n {
		r := record
		if i%2 == 1 {
			r.Reasons, r.DKIMResults, r.SPFResults = nil, nil, nil
		}
		columns := wire.NewExportedColumns(wire.FormatRecordID(report.ID, 0, i), "example.com", report, r)
		musttest.Do(t, w.Write(musttest.Get(json.Marshal(wire.NewExportedRecord(columns, report)))(t)))
	}
	musttest.Do(t, w.Close())
	return out.Bytes()
}

// want is the first row of exported, by column name.
var want = map[string]any{
	"id": "rep_3mv.0.0", "domain": "example.com", "day": "2026-11-01", "source_ip": "192.0.2.1", "count": float64(1 << 40), "compliant": true,
	"disposition": "quarantine", "dkim": "pass", "spf": "fail", "header_from": "example.com", "envelope_from": "bounce.example",
	"envelope_to": "receiver.example", "disagrees": true,
	"reasons":      []any{map[string]any{"type": "forwarded", "comment": "a\nlist"}, map[string]any{"type": "other", "comment": nil}},
	"dkim_results": []any{map[string]any{"domain": "example.com", "selector": "s1", "result": "pass", "human_result": "good"}},
	"spf_results":  []any{map[string]any{"domain": "bounce.example", "scope": "mfrom", "result": "fail", "human_result": nil}},
	"report":       "rep_3mv", "report_id": "r-1", "report_state": "counted", "organization": "=cmd|' /C calc'!A0",
	"email": "dmarc@receiver.example", "extra_contact_info": "https://receiver.example", "generator": "reporter 1",
	"begin": "2026-11-01T00:00:00+00:00", "end": "2026-11-01T23:59:59+00:00", "received_at": "2026-11-02T00:40:00+00:00",
	"intake": "smtp", "genuine": "yes", "authenticated_domain": "receiver.example",
	"policy_domain": "example.com", "policy_p": "none", "policy_sp": "quarantine", "policy_np": "reject", "policy_adkim": "s", "policy_aspf": "r",
	"policy_pct": "100", "policy_fo": "1", "policy_testing": "y", "policy_discovery_method": "treewalk", "policy_psd": "n",
}

func TestNDJSONHasEveryColumn(t *testing.T) {
	t.Parallel()
	first, rest, _ := bytes.Cut(exported(t, export.NDJSON, 2), []byte("\n"))
	var got map[string]any
	musttest.Do(t, json.Unmarshal(first, &got))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !bytes.Contains(rest, []byte(`"reasons":[],"dkim_results":[],"spf_results":[]`)) {
		t.Errorf("got %s, want empty lists", rest)
	}
}

// csvRows returns a header and n rows of a CSV file.
func csvRows(t *testing.T, n int) [][]string {
	t.Helper()
	return musttest.Get(csv.NewReader(bytes.NewReader(exported(t, export.CSV, n))).ReadAll())(t)
}

func TestCSVHasEveryColumn(t *testing.T) {
	t.Parallel()
	rows := csvRows(t, 1)
	lists := map[string]string{"reasons": "forwarded a list; other", "dkim_results": "pass example.com s1 good", "spf_results": "fail bounce.example mfrom"}
	for i, name := range rows[0] {
		value := fmt.Sprint(want[name])
		switch {
		case lists[name] != "":
			value = lists[name]
		case name == "count":
			value = "1099511627776"
		case name == "organization":
			value = "'" + value
		}
		if rows[1][i] != value {
			t.Errorf("%s: got %q, want %q", name, rows[1][i], value)
		}
	}
	if len(rows[0]) != len(want) {
		t.Errorf("got %d columns, want %d", len(rows[0]), len(want))
	}
}

// TestParquetIsReadWithItsOwnSchema reads a file of two row groups as another program would,
// with the schema in the file.
func TestParquetIsReadWithItsOwnSchema(t *testing.T) {
	t.Parallel()
	const n = 50_001
	data := exported(t, export.Parquet, n)
	file := musttest.Get(parquet.OpenFile(bytes.NewReader(data), int64(len(data))))(t)
	var names []string
	for _, f := range file.Schema().Fields() {
		names = append(names, f.Name())
	}
	columns := csvRows(t, 0)[0]
	slices.Sort(names)
	slices.Sort(columns)
	if diff := cmp.Diff(columns, names); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if got := len(file.RowGroups()); got != 2 {
		t.Errorf("got %d row groups, want 2: memory is bounded by their size", got)
	}
	for name, kind := range map[string]string{"day": "DATE", "begin": "TIMESTAMP(isAdjustedToUTC=true,unit=MILLIS)", "count": "INT(64,true)", "id": "STRING"} {
		leaf, _ := file.Schema().Lookup(name)
		if got := leaf.Node.Type().String(); got != kind {
			t.Errorf("%s: got type %s, want %s", name, got, kind)
		}
	}
	reader := parquet.NewGenericReader[any](file, file.Schema())
	defer func() { _ = reader.Close() }()
	rows, sum, total := make([]any, 1000), int64(0), 0
	for {
		read, err := reader.Read(rows)
		for _, row := range rows[:read] {
			r := row.(map[string]any)
			if total == 0 {
				wantRow(t, r)
			}
			sum += r["count"].(int64)
			total++
		}
		if errors.Is(err, io.EOF) {
			break
		}
		musttest.Do(t, err)
	}
	if total != n || sum != n<<40 {
		t.Errorf("got %d rows with %d messages, want %d with %d", total, sum, n, n<<40)
	}
}

// wantRow compares a row of a Parquet file with want.
func wantRow(t *testing.T, row map[string]any) {
	t.Helper()
	for name, value := range want {
		got := fmt.Sprint(row[name])
		switch name {
		case "count":
			value = int64(1 << 40)
		case "day":
			value = 20758
		case "begin", "end", "received_at":
			at := musttest.Get(time.Parse(time.RFC3339, value.(string)))(t)
			value = at.UnixMilli()
		case "reasons", "dkim_results", "spf_results":
			for _, item := range value.([]any) {
				for _, text := range item.(map[string]any) {
					if !strings.Contains(got, fmt.Sprint(text)) {
						t.Errorf("%s: got %s, want %v in it", name, got, text)
					}
				}
			}
			continue
		}
		if got != fmt.Sprint(value) {
			t.Errorf("%s: got %s, want %v", name, got, value)
		}
	}
}

// TestColumnsAreDocumented compares the columns with the table in docs/export.md.
func TestColumnsAreDocumented(t *testing.T) {
	t.Parallel()
	document := musttest.Get(os.ReadFile("../../docs/export.md"))(t)
	for _, name := range csvRows(t, 0)[0] {
		if !bytes.Contains(document, []byte("| `"+name+"` |")) {
			t.Errorf("docs/export.md does not describe the column %s", name)
		}
	}
}

func TestUnknownFormat(t *testing.T) {
	t.Parallel()
	if _, err := export.NewWriter("xlsx", io.Discard); err == nil || !strings.Contains(err.Error(), "parquet") {
		t.Errorf("got %v, want an error that names the formats", err)
	}
}
