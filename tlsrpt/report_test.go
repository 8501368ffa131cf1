package tlsrpt_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/internal/goldentest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// ignoreQuirks compares reports by content and ignores their form.
var ignoreQuirks = cmpopts.IgnoreFields(tlsrpt.Report{}, "Quirks")

// read reads a valid report.
func read(t *testing.T, document string) tlsrpt.Report {
	t.Helper()
	report, err := tlsrpt.ReadReport(strings.NewReader(document), tlsrpt.Limits{})
	if err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	return report
}

// quirkNames returns the quirks of a report by name.
func quirkNames(report tlsrpt.Report) map[string]int {
	names := make(map[string]int)
	for _, q := range report.Quirks {
		names[q.Quirk.String()] = q.Count
	}
	return names
}

// quirkList returns the names of the quirks of a report in alphabetical order.
func quirkList(report tlsrpt.Report) string {
	return strings.Join(slices.Sorted(maps.Keys(quirkNames(report))), " ")
}

func rendered(t *testing.T, report tlsrpt.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	musttest.Do(t, tlsrpt.Render(&b, report))
	return b.Bytes()
}

// checkRoundTrip checks that reading the rendered report returns the same report.
func checkRoundTrip(t *testing.T, report tlsrpt.Report) {
	t.Helper()
	document := rendered(t, report)
	again := read(t, string(document))
	if diff := cmp.Diff(report, again, ignoreQuirks, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the rendered report says something else (-read +rendered):\n%s", diff)
	}
	if got, want := again.Key(), report.Key(); got != want {
		t.Errorf("key of the rendered report: got %+v, want %+v", got, want)
	}
}

// TestRenderHalfARange renders reports of which one end of the time range is known.
func TestRenderHalfARange(t *testing.T) {
	t.Parallel()
	for _, report := range []tlsrpt.Report{{Begin: 86400}, {End: 86400}, {}} {
		got := strings.Contains(string(rendered(t, report)), "1970-01-02T00:00:00Z")
		if want := report.Begin+report.End != 0; got != want {
			t.Errorf("from %d to %d: got the time %t, want %t", report.Begin, report.End, got, want)
		}
	}
}

// golden is the content of a golden file.
type golden struct {
	Quirks map[string]int  `json:"quirks"`
	Report json.RawMessage `json:"report"`
}

func goldenOf(t *testing.T, report tlsrpt.Report) golden {
	t.Helper()
	return golden{Quirks: quirkNames(report), Report: rendered(t, report)}
}

// TestReports reads our own files: a report without quirks in several forms, and one for
// each quirk, named after it. Their golden files say in what they differ from the plain report.
func TestReports(t *testing.T) {
	t.Parallel()
	plain := goldenOf(t, read(t, string(musttest.Get(os.ReadFile("testdata/report/plain.json"))(t))))
	files := musttest.Get(filepath.Glob("testdata/report/*.json"))(t)
	unseen := make(map[string]bool)
	for _, q := range tlsrpt.Quirks() {
		unseen[q.String()] = true
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		if strings.HasSuffix(name, ".golden") {
			continue
		}
		isQuirk := unseen[name]
		delete(unseen, name)
		if !isQuirk && !strings.HasPrefix(name, "plain") {
			t.Errorf("%s: got a file that is named after no quirk, want one", file)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content := musttest.Get(os.ReadFile(file))(t)
			report := read(t, string(content))
			names := quirkNames(report)
			if isQuirk && names[name] == 0 || !isQuirk && len(names) > 0 {
				t.Errorf("got quirks %v, want those that the name of the file tells", names)
			}
			goldenFile := strings.TrimSuffix(file, ".json") + ".golden.json"
			if name == "plain" {
				goldentest.CheckJSON(t, goldenFile, plain)
			} else {
				goldentest.CheckDifference(t, goldenFile, plain, goldenOf(t, report))
			}
			checkRoundTrip(t, report)
		})
	}
	for name := range unseen {
		t.Errorf("got no file for the quirk %s, want one", name)
	}
}

func TestQuirkNames(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, q := range tlsrpt.Quirks() {
		name, meaning := q.String(), q.Meaning()
		if name == "" || seen[name] || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
			t.Errorf("quirk %d: got the name %q, want one of its own in lower case", q, name)
		}
		if !strings.HasSuffix(meaning, ".") {
			t.Errorf("%s: got the meaning %q, want a sentence", name, meaning)
		}
		seen[name] = true
	}
	if beyond := tlsrpt.Quirk(len(seen) + 1); beyond.String() != "" || beyond.Meaning() != "" {
		t.Errorf("a quirk beyond the table: got %q, %q, want nothing", beyond, beyond.Meaning())
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	policies := []tlsrpt.Policy{{}, {Domain: "b.example"}, {Domain: "a.example"}, {}, {Domain: "c.example"}}
	for _, tt := range []struct {
		name   string
		report tlsrpt.Report
		want   tlsrpt.Key
	}{
		{"nothing", tlsrpt.Report{}, tlsrpt.Key{}},
		{
			"all of it",
			tlsrpt.Report{OrgName: "Reporter", ContactInfo: "a@b.example", ReportID: "17+a/b@c", Begin: 1, End: 2, Policies: policies},
			tlsrpt.Key{Organization: "reporter", ReportID: "17+a/b@c", Domain: "a.example", Begin: 1, End: 2},
		},
		{"no name", tlsrpt.Report{ContactInfo: "mailto:a@B.example"}, tlsrpt.Key{Organization: "b.example"}},
		{"no name and no address", tlsrpt.Report{ContactInfo: "+49 30 1234"}, tlsrpt.Key{}},
		{"brackets", tlsrpt.Report{ReportID: "<17@a.example>"}, tlsrpt.Key{ReportID: "17@a.example"}},
	} {
		if got := tt.report.Key(); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	const most, saturated = 1<<53 - 1, 1<<52 - 1
	report := tlsrpt.Report{Policies: []tlsrpt.Policy{{Successful: most, Failed: 1}, {Successful: most, Failed: 2}}}
	if successful, failed := report.Sessions(); successful != saturated || failed != 3 {
		t.Errorf("got %d and %d, want %d and 3", successful, failed, int64(saturated))
	}
}

func TestKnownWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		got, want bool
	}{
		{"policy type", tlsrpt.PolicyNotFound.Known(), true},
		{"other policy type", tlsrpt.PolicyType("x").Known(), false},
		{"result type", tlsrpt.STSWebPKIInvalid.Known(), true},
		{"other result type", tlsrpt.ResultType("x").Known(), false},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}

// full has every member, each with a different value.
const full = `{"organization-name":"R","contact-info":"a@r.example","report-id":"i",` +
	`"date-range":{"start-datetime":"2026-04-01T00:00:00Z","end-datetime":"2026-04-01T23:59:59Z"},` +
	`"policies":[{"policy":{"policy-type":"sts","policy-domain":"d.example","policy-string":["s","t"],"mx-host":["m"]},` +
	`"summary":{"total-successful-session-count":10,"total-failure-session-count":20},` +
	`"failure-details":[{"result-type":"tlsa-invalid","sending-mta-ip":"192.0.2.1","receiving-mx-hostname":"h.example",` +
	`"receiving-mx-helo":"helo","receiving-ip":"192.0.2.2","failed-session-count":20,"additional-information":"u","failure-reason-code":"c"}]}]}`

// TestContent checks that the hash depends on content and not on form.
func TestContent(t *testing.T) {
	t.Parallel()
	want := read(t, full).Content
	for _, tt := range []struct {
		name, old, new string
	}{
		{"blanks", `,`, " ,\n"},
		{"escapes", `"R"`, `"\u0052"`},
		{"padding", `"R"`, `" R "`},
		{"case of words", `sts`, `STS`},
		{"case of domains", `d.example`, `D.Example.`},
		{"form of addresses", `192.0.2.1`, `::ffff:192.0.2.1`},
		{"texts for numbers", `:20`, `:"20"`},
		{"names", `report-id`, `reportId`},
		{"zone", `T00:00:00Z`, `T02:00:00+02:00`},
		{"single values", `["m"]`, `"m"`},
		{"order", `"policy-type":"sts","policy-domain":"d.example"`, `"policy-domain":"d.example","policy-type":"sts"`},
	} {
		changed := strings.ReplaceAll(full, tt.old, tt.new)
		if got := read(t, changed); changed == full || got.Content != want {
			t.Errorf("%s: got another content, want the same", tt.name)
		}
	}
	for _, tt := range []struct{ name, old, new string }{
		{"organization", `"R"`, `"S"`},
		{"contact", `a@r`, `b@r`},
		{"id", `"i"`, `"j"`},
		{"begin", `T00:00:00Z`, `T00:00:01Z`},
		{"end", `T23:59:59Z`, `T23:59:58Z`},
		{"no policies", `"policies":`, `"x":`},
		{"policy type", `sts`, `tlsa`},
		{"policy domain", `d.example`, `e.example`},
		{"policy string", `["s","t"]`, `["s","u"]`},
		{"policy strings", `["s","t"]`, `["st"]`},
		{"MX host", `"m"`, `"n"`},
		{"MX host as policy string", `["s","t"],"mx-host":["m"]`, `["s","t","m"]`},
		{"successful", `:10`, `:11`},
		{"failed", `"total-failure-session-count":20`, `"total-failure-session-count":21`},
		{"result type", `tlsa-invalid`, `dane-required`},
		{"sending address", `192.0.2.1`, `192.0.2.3`},
		{"receiving host", `h.example`, `i.example`},
		{"receiving helo", `"helo"`, `"ehlo"`},
		{"receiving address", `192.0.2.2`, `192.0.2.3`},
		{"sessions", `"failed-session-count":20`, `"failed-session-count":19`},
		{"information", `"u"`, `"v"`},
		{"reason", `"c"`, `"d"`},
	} {
		if got := read(t, strings.Replace(full, tt.old, tt.new, 1)); got.Content == want {
			t.Errorf("%s: got the same content, want another", tt.name)
		}
	}
}
