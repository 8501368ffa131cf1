package tlsrpt_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/tlsrpt"
)

// head is the start of a report without quirks, up to its policies.
const head = `{"organization-name":"R","contact-info":"a@r.example","report-id":"1",` +
	`"date-range":{"start-datetime":"2026-04-01T00:00:00Z","end-datetime":"2026-04-01T23:59:59Z"},"policies":`

// entry is a policy without quirks.
const entry = `{"policy":{"policy-type":"tlsa","policy-domain":"a.example"},` +
	`"summary":{"total-successful-session-count":5,"total-failure-session-count":0}}`

// withCount returns a report with a count of successful sessions.
func withCount(count string) string {
	return head + `[{"policy":{"policy-type":"tlsa","policy-domain":"a.example"},"summary":{"total-successful-session-count":` +
		count + `,"total-failure-session-count":0}}]}`
}

// rejection returns why a document was rejected, "" if it was not.
func rejection(t *testing.T, err error) tlsrpt.Rejection {
	t.Helper()
	var rejected *tlsrpt.RejectedError
	if err != nil && !errors.As(err, &rejected) {
		t.Fatalf("got %v, want a rejection", err)
	}
	if err == nil {
		return ""
	}
	if rejected.Detail == "" || !strings.Contains(err.Error(), rejected.Detail) {
		t.Errorf("got %q with the detail %q, want the reason in words", err, rejected.Detail)
	}
	return rejected.Why
}

func TestReadReportRejects(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, document string
		want           tlsrpt.Rejection
	}{
		{"nothing", "", tlsrpt.RejectedEmpty},
		{"a byte order mark alone", "\ufeff", tlsrpt.RejectedEmpty},
		{"blanks", " \r\n\t", tlsrpt.RejectedEmpty},
		{"an aggregate report", "<?xml version=\"1.0\"?><feedback/>", tlsrpt.RejectedXML},
		{"a web page", "\n<!doctype html>", tlsrpt.RejectedXML},
		{"a word", "unused", tlsrpt.RejectedNotJSON},
		{"a number", "17", tlsrpt.RejectedNotJSON},
		{"an archive", "\x1f\x8b\x08\x00", tlsrpt.RejectedNotJSON},
		{"a brace and no JSON", "{policies and report-id}", tlsrpt.RejectedNotJSON},
		{"a bracket alone", "[", tlsrpt.RejectedNotJSON},
		{"a list of numbers", "[1, 2]", tlsrpt.RejectedOtherJSON},
		{"an empty list", "[]", tlsrpt.RejectedOtherJSON},
		{"an empty object", "{}", tlsrpt.RejectedOtherJSON},
		{"another object", `{"name":"x","policies":["p"],"report-id":"1"}`, tlsrpt.RejectedOtherJSON},
		{"a contact with an id", `{"organization-name":"x","contact-info":"p","report-id":"1"}`, tlsrpt.RejectedOtherJSON},
		{"cut off before the policies", head, tlsrpt.RejectedDamaged},
		{"cut off in the first policy", head + `[{"policy":{"policy-type":"sts"`, tlsrpt.RejectedDamaged},
		{"cut off after no policies", head + `[]`, tlsrpt.RejectedDamaged},
		{"broken in the first policy", head + `[{"policy":{"policy-type" "sts"}}]}`, tlsrpt.RejectedDamaged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			report, err := tlsrpt.ReadReport(strings.NewReader(tt.document), tlsrpt.Limits{})
			if got := rejection(t, err); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if diff := cmp.Diff(tlsrpt.Report{}, report); diff != "" {
				t.Errorf("got something of a rejected document (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadReportTakesLittle(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, document, want string }{
		{
			"a policy domain alone", `{"policies":[{"policy":{"policy-domain":"a.example"}}]}`,
			"contact_missing org_name_missing policy_type_missing range_missing report_id_missing summary_missing",
		},
		{
			"no policies", `{"organization-name":"R","contact-info":"a@r.example","report-id":"1","policies":null}`,
			"null_value policies_empty range_missing",
		},
		{
			"a head alone", strings.TrimSuffix(head, `,"policies":`) + "}", "policies_empty",
		},
		{
			"only null", `{"organization-name":null,"contact-info":null,"report-id":null,"date-range":null,"policies":[{"policy":null,"summary":null,"failure-details":[null]}]}`,
			"contact_missing count_missing null_value org_name_missing policy_domain_missing policy_type_missing range_missing report_id_missing",
		},
		{
			"no end", strings.Replace(head, `,"end-datetime":"2026-04-01T23:59:59Z"`, "", 1) + `[` + entry + `]}`, "range_incomplete",
		},
		{
			"empty failure details", head + `[` + strings.TrimSuffix(entry, "}") + `,"failure-details":[]}]}`, "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			report := read(t, tt.document)
			if got := quirkList(report); got != tt.want {
				t.Errorf("got quirks %q, want %q", got, tt.want)
			}
			checkRoundTrip(t, report)
		})
	}
}

func TestReadReportSalvages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, document string
		policies       int
		want           string
	}{
		{"the last brace is missing", head + `[` + entry + `]`, 1, "truncated"},
		{"the list is open", head + `[` + entry + `,`, 1, "truncated"},
		{"the second policy is open", head + `[` + entry + `,` + strings.TrimSuffix(entry, "}"), 1, "policy_incomplete truncated"},
		{"a comma is missing", head + `[` + entry + entry + `]}`, 1, "malformed"},
		{"a value is missing", head + `[` + entry + `],"generator":}`, 1, "malformed member_unknown"},
		{"a word is unknown", head + `[` + entry + `,undefined]}`, 1, "malformed"},
		{"a number has letters", head + `[` + entry + `,0x10]}`, 1, "malformed"},
		{"a bracket is the wrong one", head + `[` + entry + `,` + entry + `}}`, 2, "malformed"},
		{"the rest is noise", head + `[` + entry + `,` + entry + "\x00\x00", 2, "malformed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			report := read(t, tt.document)
			if got := quirkList(report); got != tt.want || len(report.Policies) != tt.policies {
				t.Errorf("got %d policies and the quirks %q, want %d and %q", len(report.Policies), got, tt.policies, tt.want)
			}
			checkRoundTrip(t, report)
		})
	}
}

func TestReadReportCounts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		count string
		want  int64
		quirk string
	}{
		{"0", 0, ""},
		{"9007199254740991", 1<<53 - 1, ""},
		{"9007199254740992", 0, "count_invalid"},
		{"99999999999999999999999", 0, "count_invalid"},
		{"1e400", 0, "count_invalid"},
		{"-1", 0, "count_invalid"},
		{"-0", 0, "count_form"},
		{"007", 7, "count_form"},
		{"+7", 7, "count_form"},
		{"7.0", 7, "count_form"},
		{"7e2", 700, "count_form"},
		{"7E2", 700, "count_form"},
		{"7.5", 0, "count_invalid"},
		{"1e", 0, "count_invalid"},
		{"true", 0, "count_invalid"},
		{"false", 0, "count_invalid"},
		{`"7"`, 7, "value_type"},
		{`"0x10"`, 0, "count_invalid value_type"},
		{`"inf"`, 0, "count_invalid value_type"},
		{`""`, 0, "count_invalid value_type"},
		{"null", 0, "null_value"},
		{"[7]", 0, "value_unusable"},
	} {
		t.Run(tt.count, func(t *testing.T) {
			t.Parallel()
			report := read(t, withCount(tt.count))
			if got := report.Policies[0].Successful; got != tt.want || quirkList(report) != tt.quirk {
				t.Errorf("got %d with the quirks %q, want %d with %q", got, quirkList(report), tt.want, tt.quirk)
			}
		})
	}
}

func TestReadReportTimes(t *testing.T) {
	t.Parallel()
	const noon = 1775044800 // 2026-04-01T12:00:00Z
	for _, tt := range []struct {
		begin string
		want  int64
		quirk string
	}{
		{`"2026-04-01T12:00:00Z"`, noon, ""},
		{`"2026-04-01t12:00:00.5z"`, noon, ""},
		{`"2026-04-01T14:00:00+02:00"`, noon, ""},
		{`"2026-04-01T12:00:00"`, noon, "time_zone_missing"},
		{`"2026-04-01T12:00:00.0000000"`, noon, "time_zone_missing"},
		{`"2026-04-01 12:00:00"`, noon, "time_zone_missing"},
		{`"2026-04-01T12:00"`, noon, "time_zone_missing"},
		{`"2026-04-01T12:00Z"`, noon, "time_form"},
		{`"2026-04-01 12:00:00Z"`, noon, "time_form"},
		{`"2026-04-01 12:00:00 UTC"`, noon, "time_form"},
		{`"2026-04-01 14:00:00 +0200"`, noon, "time_form"},
		{`"2026-04-01 14:00:00 +02:00"`, noon, "time_form"},
		{`"2026-04-01T14:00:00+0200"`, noon, "time_form"},
		{`"Wed, 01 Apr 2026 12:00:00 GMT"`, noon, "time_form"},
		{`"Wed, 1 Apr 2026 14:00:00 +0200"`, noon, "time_form"},
		{`"2026-04-01"`, noon - 12*60*60, "time_form"},
		{"1775044800", noon, "time_number"},
		{`"1775044800"`, noon, "time_number"},
		{"1775044800000", noon, "time_number"},
		{"100000000", 100_000_000, "range_long time_implausible time_number"},
		{"99999999", 1775087999, "range_incomplete time_unreadable"},
		{"20260401", 1775087999, "range_incomplete time_unreadable"},
		{`"1960-01-01T00:00:00Z"`, 1775087999, "range_incomplete time_unreadable"},
		{`"9999-01-01T00:00:00Z"`, 1775087999, "range_incomplete time_unreadable"},
		{`"yesterday"`, 1775087999, "range_incomplete time_unreadable"},
		{"null", 1775087999, "null_value range_incomplete"},
		{"{}", 1775087999, "range_incomplete value_unusable"},
	} {
		t.Run(tt.begin, func(t *testing.T) {
			t.Parallel()
			report := read(t, strings.Replace(head, `"2026-04-01T00:00:00Z"`, tt.begin, 1)+`[`+entry+`]}`)
			if report.Begin != tt.want || quirkList(report) != tt.quirk {
				t.Errorf("got %d with the quirks %q, want %d with %q", report.Begin, quirkList(report), tt.want, tt.quirk)
			}
		})
	}
}

func TestReadReportLimits(t *testing.T) {
	t.Parallel()
	report := func(entries ...string) string { return head + `[` + strings.Join(entries, ",") + `]}` }
	failures := func(n int) string {
		return `{"failure-details":[` + strings.Repeat(`{},`, n-1) + `{}]}`
	}
	nested := func(n int) string {
		return strings.TrimSuffix(report(entry), "}") + `,"x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}"
	}
	named := func(text string) string { return strings.Replace(report(entry), `"R"`, `"`+text+`"`, 1) }
	for _, tt := range []struct {
		name          string
		limits        tlsrpt.Limits
		within, above string
	}{
		{"policies", tlsrpt.Limits{Policies: 2}, report(entry, entry), report(entry, entry, entry)},
		{
			"policies of which the last ones count",
			tlsrpt.Limits{Policies: 2},
			report(entry, entry),
			strings.TrimSuffix(report(entry), "}") + `,"policies":[` + entry + `,` + entry + `]}`,
		},
		{"failures of one policy", tlsrpt.Limits{Failures: 3}, report(failures(3)), report(failures(4))},
		{"failures of several policies", tlsrpt.Limits{Failures: 3}, report(failures(1), failures(2)), report(failures(2), failures(2))},
		{"nesting", tlsrpt.Limits{Depth: 5}, nested(4), nested(5)},
		{"a text", tlsrpt.Limits{TextBytes: 40}, named(strings.Repeat("é", 20)), named(strings.Repeat("é", 20) + "x")},
		{"an escaped text", tlsrpt.Limits{TextBytes: 40}, named(strings.Repeat(`\u00e9`, 20)), named(strings.Repeat(`\u00e9`, 21))},
		{"a text that grows", tlsrpt.Limits{TextBytes: 40}, named(strings.Repeat("\xff ", 10)), named(strings.Repeat("\xff ", 20))},
		{"a text that is not kept", tlsrpt.Limits{TextBytes: 40}, `{"x":"",` + report(entry)[1:], `{"x":"` + strings.Repeat("x", 41) + `",` + report(entry)[1:]},
		{"a number", tlsrpt.Limits{TextBytes: 40}, withCount("5"), withCount(strings.Repeat("5", 41))},
		{"all texts", tlsrpt.Limits{TotalBytes: 125}, named(strings.Repeat("x", 100)), named(strings.Repeat("x", 101))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := tlsrpt.ReadReport(strings.NewReader(tt.within), tt.limits); err != nil {
				t.Errorf("within the limit: got %v, want none", err)
			}
			_, err := tlsrpt.ReadReport(strings.NewReader(tt.above), tt.limits)
			if got := rejection(t, err); got != tlsrpt.RejectedLimit {
				t.Errorf("above the limit: got %q, want %q", got, tlsrpt.RejectedLimit)
			}
		})
	}
}

// endless repeats a text forever after a start.
type endless struct{ start, again string }

// Read never returns an error.
func (e *endless) Read(p []byte) (int, error) {
	if e.start == "" {
		e.start = e.again
	}
	n := copy(p, e.start)
	e.start = e.start[n:]
	return n, nil
}

// TestReadReportEndless checks that limits end an endless document.
func TestReadReportEndless(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, start, again string }{
		{"a text", `{"report-id":"`, "x"},
		{"an escaped text", `{"report-id":"`, `\u0000`},
		{"a name", `{"`, "x"},
		{"a number", `{"report-id":`, "1"},
		{"nesting", `{"x":`, "["},
		{"policies", `{"policies":[`, "{},"},
		{"failure details", `{"policies":[{"failure-details":[`, `{},`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := tlsrpt.ReadReport(&endless{tt.start, tt.again}, tlsrpt.Limits{})
			if got := rejection(t, err); got != tlsrpt.RejectedLimit {
				t.Errorf("got %q, want %q", got, tlsrpt.RejectedLimit)
			}
		})
	}
}

func TestReadReportErrors(t *testing.T) {
	t.Parallel()
	document := head + `[` + entry + `,` + entry + `]}`
	broken := errors.New("the disk is gone")
	for _, length := range []int{0, 1, len(head), len(document) - 3, len(document)} {
		in := io.MultiReader(strings.NewReader(document[:length]), iotest.ErrReader(broken))
		if _, err := tlsrpt.ReadReport(in, tlsrpt.Limits{}); !errors.Is(err, broken) {
			t.Errorf("after %d bytes: got %v, want %v", length, err, broken)
		}
	}
	in := io.MultiReader(strings.NewReader(document[:len(document)-3]), iotest.ErrReader(io.ErrUnexpectedEOF))
	report, err := tlsrpt.ReadReport(iotest.OneByteReader(in), tlsrpt.Limits{})
	if err != nil || len(report.Policies) != 1 || quirkList(report) != "policy_incomplete truncated" {
		t.Errorf("cut off: got %d policies, %q, %v, want 1 policy of a truncated report", len(report.Policies), quirkList(report), err)
	}
}

func TestReadReportTexts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want, quirk string }{
		{`"Réporter"`, "Réporter", ""},
		{`"\"a\\b\/c\nd\re\tf\u00e9\u00E9"`, "\"a\\b/c\nd\re\tféé", ""},
		{`"\ud83d\ude00"`, "😀", ""},
		{`"\u00ff\u00FF\u00af"`, "ÿÿ¯", ""},
		{`"a b"`, "a b", ""},
		{`"a\b\f\u0000b"`, "ab", "control_characters"},
		{"\"a\nb\"", "a\nb", "unescaped_control"},
		{"\"a\x00b\"", "ab", "control_characters unescaped_control"},
		{`"a\qb"`, `a\qb`, "bad_escape"},
		{`"a\u00g0b"`, `a\u00g0b`, "bad_escape"},
		{`"\u1"`, `\u1`, "bad_escape"},
		{`"\ud83d"`, "\ufffd", "bad_escape"},
		{`"\ude00\ud83d"`, "\ufffd\ufffd", "bad_escape"},
		{`"\ud83d\u0041bcdef"`, "\ufffdAbcdef", "bad_escape"},
		{"\"a\xff\xfeb\"", "a\ufffdb", "bad_bytes"},
		{"\" a\u00a0\"", "a", "value_padded"},
		{"17", "17", "value_type"},
		{"true", "true", "value_type"},
		{"[1,{\"a\":[]}]", "", "org_name_missing value_unusable"},
	} {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			report := read(t, strings.Replace(head, `"R"`, tt.text, 1)+`[`+entry+`]}`)
			if report.OrgName != tt.want || quirkList(report) != tt.quirk {
				t.Errorf("got %q with the quirks %q, want %q with %q", report.OrgName, quirkList(report), tt.want, tt.quirk)
			}
			checkRoundTrip(t, report)
		})
	}
}

func TestReadReportLists(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, value string
		want        []string
	}{
		{"a list", `["a.example","b.example"]`, []string{"a.example", "b.example"}},
		{"a text", `"a.example"`, []string{"a.example"}},
		{"an empty text", `""`, nil},
		{"a line of a policy", `["MX: *.A.example.","mx:b.example"]`, []string{"*.a.example", "b.example"}},
		{"a list in a text", `"[\"a.example\",\"b.example\",null]"`, []string{"a.example", "b.example"}},
		{"a list in a list in a text", `["[\"[\\\"mx: a.example\\\"]\",\"b.example\\u0000\"]"]`, []string{"a.example", "b.example"}},
		{"an address literal", `["[192.0.2.1]"]`, []string{"[192.0.2.1]"}},
		{"numbers", `[1,true,{},[2]]`, []string{"1", "true"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			report := read(t, head+`[{"policy":{"policy-type":"sts","policy-domain":"a.example","mx-host":`+tt.value+`}}]}`)
			if diff := cmp.Diff(tt.want, report.Policies[0].MXHosts); diff != "" {
				t.Errorf("got other hosts (-want +got):\n%s", diff)
			}
			checkRoundTrip(t, report)
		})
	}
}

func ExampleReadReport() {
	report, err := tlsrpt.ReadReport(strings.NewReader(`{
		"organization-name": "Reporter Example",
		"date-range": {"start-datetime": "2026-04-01T00:00:00", "end-datetime": "2026-04-01T23:59:59"},
		"contact-info": "tls-reports@reporter.example",
		"report-id": "17",
		"policies": [{
			"policy": {"policy-type": "sts", "policy-domain": "receiver.example", "mx-host": "*.receiver.example"},
			"summary": {"total-successful-session-count": 412, "total-failure-session-count": "9"},
			"failure-details": [{"result-type": "certificate-expired", "failed-session-count": 9, "receiving-ip": "192.0.2.1"}]
		}]
	}`), tlsrpt.DefaultLimits())
	if err != nil {
		fmt.Println(err)
		return
	}
	successful, failed := report.Sessions()
	fmt.Println(report.Organization(), successful, failed, report.Policies[0].Failures[0].ResultType)
	for _, q := range report.Quirks {
		fmt.Println(q.Quirk, q.Count)
	}
	// Output:
	// Reporter Example 412 9 certificate-expired
	// value_type 1
	// time_zone_missing 2
	// mx_host_text 1
}
