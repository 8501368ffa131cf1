package main

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/goldentest"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/intake/unpack"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/packtest"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

const (
	aggregateFiles = "../../aggregate/testdata/"
	tlsFiles       = "../../tlsrpt/testdata/report/"
	mailFiles      = "../../internal/intake/unpack/testdata/"
)

// everyKind lists files of all kinds in several containers, with one that is not a report.
var everyKind = []string{
	aggregateFiles + "plain-rfc9990.xml", aggregateFiles + "reasons.xml", aggregateFiles + "xml-truncated.xml",
	mailFiles + "several-reports.eml", mailFiles + "failure-report.eml", tlsFiles + "details_exceed.json",
}

// runParse runs `dmarcd parse` and returns what it printed.
func runParse(t *testing.T, stdin string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errors bytes.Buffer
	p := &program{in: strings.NewReader(stdin), out: &out, err: &errors}
	return p.run(t.Context(), append([]string{"parse"}, args...)), out.String(), errors.String()
}

// reportOf returns an aggregate report of an organization with records.
func reportOf(organization string, records ...string) string {
	return `<?xml version="1.0"?><feedback><report_metadata><org_name>` + organization + `</org_name><report_id>1</report_id>` +
		`<date_range><begin>1767225600</begin><end>1767311999</end></date_range></report_metadata>` +
		`<policy_published><domain>example.com</domain><p>none</p></policy_published>` + strings.Join(records, "") + `</feedback>`
}

// recordFrom returns a record of one message.
func recordFrom(source string) string {
	return `<record><row><source_ip>` + source + `</source_ip><count>1</count><policy_evaluated><disposition>none</disposition>` +
		`<dkim>pass</dkim><spf>fail</spf></policy_evaluated></row><identifiers><header_from>example.com</header_from></identifiers>` +
		`<auth_results><dkim><domain>example.com</domain><selector>s1</selector><result>pass</result></dkim></auth_results></record>`
}

func TestParseForms(t *testing.T) {
	t.Parallel()
	const rejected = mailFiles + "several-reports.eml: mail.msg: this is an Outlook message or Office document, not a report\n"
	for _, tt := range []struct{ name, flag string }{
		{"page", ""},
		{"json", "--json"},
		{"csv", "--csv"},
		{"summary", "--summary"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			args := everyKind
			if tt.flag != "" {
				args = append([]string{tt.flag}, args...)
			}
			status, got, stderr := runParse(t, "", args...)
			if status != exitProblem || stderr != rejected {
				t.Errorf("got status %d and %q on standard error, want %d and %q", status, stderr, exitProblem, rejected)
			}
			goldentest.Check(t, "testdata/parse-"+tt.name+".golden", got)
		})
	}
}

func TestParseExitStatus(t *testing.T) {
	t.Parallel()
	const good, bad = aggregateFiles + "plain-rfc9990.xml", mailFiles + "no-report.eml"
	missing := filepath.Join(t.TempDir(), "missing.xml")
	tooLong := filepath.Join(t.TempDir(), "long.xml")
	musttest.Do(t, os.WriteFile(tooLong, nil, 0o600))
	musttest.Do(t, os.Truncate(tooLong, 33<<20))
	oddName := filepath.Join(t.TempDir(), "a\nb.xml")
	musttest.Do(t, os.WriteFile(oddName, []byte("hello"), 0o600))
	for _, tt := range []struct {
		name   string
		args   []string
		stdin  string
		want   int
		stderr string
	}{
		{"all read", []string{good, good}, "", exitDone, ""},
		{"refused", []string{bad}, "", exitProblem, bad + ": it contains no report\n"},
		{"refused among others", []string{good, bad, good}, "", exitProblem, bad + ": it contains no report\n"},
		{"too long", []string{tooLong}, "", exitProblem, tooLong + ": over the limit of 33554432 for input bytes\n"},
		{
			"missing",
			[]string{missing},
			"", exitFailed,
			"open " + missing + ": no such file or directory\ndmarcd: 1 of 1 files could not be read\n",
		},
		{
			"missing beats refused",
			[]string{missing, bad},
			"", exitFailed,
			"open " + missing + ": no such file or directory\n" + bad + ": it contains no report\ndmarcd: 1 of 2 files could not be read\n",
		},
		{
			"a folder",
			[]string{"testdata"},
			"", exitFailed,
			"testdata is a folder; parse reads files only\ndmarcd: 1 of 1 files could not be read\n",
		},
		{"no arguments", nil, "", exitFailed, "dmarcd: requires at least 1 arg(s), only received 0; see \"dmarcd parse --help\"\n"},
		{
			"two forms",
			[]string{"--json", "--csv", good},
			"", exitFailed,
			"dmarcd: use only one of --json, --csv and --summary; see \"dmarcd parse --help\"\n",
		},
		{"standard input", []string{"-"}, reportOf("receiver.example"), exitDone, ""},
		{"empty standard input", []string{"-"}, "", exitProblem, "-: the content is empty\n"},
		{
			"a refusal stays one line",
			[]string{oddName},
			"", exitProblem,
			strings.ReplaceAll(oddName, "\n", "\ufffd") + ": this is text, not a report\n",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			status, _, stderr := runParse(t, tt.stdin, tt.args...)
			if status != tt.want || stderr != tt.stderr {
				t.Errorf("got status %d and %q, want %d and %q", status, stderr, tt.want, tt.stderr)
			}
		})
	}
}

// TestParseNothing checks that every format is complete without reports.
func TestParseNothing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ flag, want string }{
		{"--json", "[]\n"},
		{"--csv", strings.Join(csvHeader, ",") + "\n"},
		{"--summary", ""},
	} {
		t.Run(tt.flag, func(t *testing.T) {
			t.Parallel()
			if _, got, _ := runParse(t, "", tt.flag, mailFiles+"no-report.eml"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestParseJSONListsAreNeverNull(t *testing.T) {
	t.Parallel()
	bare := `<feedback><report_metadata><date_range><begin>1</begin></date_range></report_metadata>` +
		`<policy_published><domain>example.com</domain></policy_published>%s</feedback>`
	failure := "From: a@example.com\nContent-Type: multipart/report; boundary=b; report-type=feedback-report\n\n--b\n" +
		"Content-Type: message/feedback-report\n\nFeedback-Type: auth-failure\n\n--b--\n"
	for _, tt := range []struct {
		name, input string
		lists       []string // the lists of the report
		within      string   // the one whose elements have lists too
		inner       []string
	}{
		{"an aggregate report without records", fmt.Sprintf(bare, ""), []string{"quirks", "errors", "record_list"}, "", nil},
		{
			"an aggregate report with an empty record", fmt.Sprintf(bare, "<record><row><count>1</count></row></record>"),
			[]string{"quirks", "errors"},
			"record_list",
			[]string{"reasons", "dkim_results", "spf_results"},
		},
		{
			"a TLS report", `{"organization-name":"a","report-id":"1","policies":[{"policy":{"policy-type":"sts"},"summary":{}}]}`,
			[]string{"quirks"},
			"policies",
			[]string{"policy_strings", "mx_hosts", "result_types", "detail_list"},
		},
		{"a failure report", failure, []string{"quirks", "spf_dns", "original_rcpt_to"}, "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, out, stderr := runParse(t, tt.input, "--json", "-")
			var got []map[string]any
			if err := json.Unmarshal([]byte(out), &got); err != nil || len(got) != 1 {
				t.Fatalf("got %d reports and error %v, want 1: %s%s", len(got), err, out, stderr)
			}
			checkLists(t, got[0], tt.lists)
			if tt.within == "" {
				return
			}
			elements, _ := got[0][tt.within].([]any)
			if len(elements) != 1 {
				t.Fatalf("%s: got %v, want one element", tt.within, got[0][tt.within])
			}
			checkLists(t, elements[0].(map[string]any), tt.inner)
		})
	}
}

func checkLists(t *testing.T, object map[string]any, names []string) {
	t.Helper()
	for _, name := range names {
		if _, ok := object[name].([]any); !ok {
			t.Errorf("%s: got %v, want a list", name, object[name])
		}
	}
}

func TestParseCSVRunsNoFormula(t *testing.T) {
	t.Parallel()
	_, out, _ := runParse(t, reportOf(`=HYPERLINK("http://example.net")`, recordFrom("192.0.2.1")), "--csv", "-")
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatalf("got %d rows and error %v, want 2", len(rows), err)
	}
	// The file name is a formula too.
	want := []string{"'-", "", "aggregate", `'=HYPERLINK("http://example.net")`}
	if diff := cmp.Diff(want, rows[1][:len(want)]); diff != "" {
		t.Errorf("the row (-want +got):\n%s", diff)
	}
}

func TestParseSummaryStaysOneLine(t *testing.T) {
	t.Parallel()
	_, got, _ := runParse(t, reportOf("a\tb\nc"), "--summary", "-")
	want := "-\taggregate\ta\ufffdb\ufffdc\t1\texample.com\t1767225600\t1767311999\t0\t0\t0\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestParseHidesLocalParts(t *testing.T) {
	t.Parallel()
	const mail = "From: reports@receiver.example\nContent-Type: multipart/report; boundary=b; report-type=feedback-report\n\n--b\n" +
		"Content-Type: message/feedback-report\n\nFeedback-Type: auth-failure\nAuth-Failure: dmarc\nSource-IP: 192.0.2.7\n" +
		"Reported-Domain: example.com\nOriginal-Mail-From: <jane@example.com>\nOriginal-Rcpt-To: <jane@example.org>\n" +
		"Authentication-Results: receiver.example; spf=fail smtp.mailfrom=jane@example.com\n\n--b\n" +
		"Content-Type: message/rfc822\n\nFrom: Jane <jane@example.com>\nTo: jane@example.org\nSubject: for jane@example.org\n\nDear jane,\n\n--b--\n"
	for _, form := range []string{"", "--json", "--csv", "--summary"} {
		t.Run("form "+form, func(t *testing.T) {
			t.Parallel()
			status, out, stderr := runParse(t, mail, strings.Fields(form+" -")...)
			if status != exitDone || !strings.Contains(out, "example.com") {
				t.Errorf("got status %d and %q, want the report: %s", status, out, stderr)
			}
			if strings.Contains(strings.ToLower(out), "jane") {
				t.Errorf("got %q, want no local part", out)
			}
		})
	}
}

func TestParsePage(t *testing.T) {
	t.Parallel()
	records := make([]string, pageRecords+3)
	for i := range records {
		records[i] = recordFrom("2001:db8:1111:2222:3333:4444:5555:" + fmt.Sprint(1000+i))
	}
	_, page, _ := runParse(t, reportOf(strings.Repeat("A very long name \x1b[2J", 20), records...), "-")
	for line := range strings.Lines(page) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > pageWidth {
			t.Errorf("got a line of %d columns, want at most %d: %s", n, pageWidth, line)
		}
	}
	if got := strings.Count(page, "2001:db8:"); got != pageRecords {
		t.Errorf("got %d records, want %d", got, pageRecords)
	}
	if !strings.Contains(page, "... and 3 records more") || strings.Contains(page, "\x1b") {
		t.Errorf("got %s, want the rest told, and nothing that a terminal obeys", page)
	}
}

// TestParseColours checks that colours do not change the text.
func TestParseColours(t *testing.T) {
	t.Parallel()
	item := &intake.Item{
		Kind: unpack.TLS, Damage: errors.New(strings.Repeat("the container is damaged ", 5)),
		TLS: &tlsrpt.Report{
			OrgName: "receiver.example", Policies: []tlsrpt.Policy{{Type: tlsrpt.PolicySTS, Domain: "example.com", Successful: 1}},
			Quirks: []tlsrpt.QuirkCount{{Quirk: tlsrpt.RangeMissing, Count: 2}},
		},
	}
	var dull, coloured bytes.Buffer
	for _, page := range []*checkPage{{out: &dull}, {out: &coloured, colours: true}} {
		musttest.Do(t, (&reportPages{page: page}).print(t.Context(), "report.json", item))
	}
	stripped := strings.NewReplacer(yellow, "", bold, "", plain, "").Replace(coloured.String())
	if stripped == coloured.String() || stripped != dull.String() {
		t.Errorf("got %q, want %q with colours", coloured.String(), dull.String())
	}
}

// fullDisk accepts a limited number of bytes.
type fullDisk struct{ left int }

var errFull = errors.New("no space left")

func (d *fullDisk) Write(p []byte) (int, error) {
	if len(p) > d.left {
		return 0, errFull
	}
	d.left -= len(p)
	return len(p), nil
}

// TestParseOutputBreaks checks that write errors are reported in every format.
func TestParseOutputBreaks(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"", "--json", "--csv", "--summary"} {
		for _, headroom := range []int{0, 4096} {
			t.Run(fmt.Sprintf("form %s after %d bytes", form, headroom), func(t *testing.T) {
				t.Parallel()
				var stderr bytes.Buffer
				p := &program{out: &fullDisk{left: headroom}, err: &stderr}
				args := strings.Fields("parse " + form)
				for range 20 {
					args = append(args, everyKind[:3]...)
				}
				if status := p.run(t.Context(), args); status != exitFailed || !strings.Contains(stderr.String(), errFull.Error()) {
					t.Errorf("got status %d and %q, want %d and the reason", status, stderr.String(), exitFailed)
				}
			})
		}
	}
}

// TestParseHasTheConfiguredLimits parses the same input with the default limits and with
// one of them lowered. It must not create a folder.
func TestParseHasTheConfiguredLimits(t *testing.T) {
	t.Parallel()
	two := reportOf("receiver.example", recordFrom("192.0.2.1"), recordFrom("192.0.2.2"))
	long := reportOf("receiver.example", strings.Repeat(recordFrom("192.0.2.1"), 20))
	var many strings.Builder // more than the 1 MiB from which the ratio counts
	for i := range 6000 {
		many.WriteString(recordFrom(fmt.Sprintf("192.0.%d.%d", i/250, i%250)))
	}
	large := reportOf("receiver.example", many.String())
	several := musttest.Get(os.ReadFile(mailFiles + "forwarded-as-attachment.eml"))(t)
	for _, tt := range []struct{ name, input, setting, want string }{
		{"input", long, "DMARCD_LIMIT_UPLOAD=1024", "over the limit of 1024 for input bytes"},
		{"expanded", string(packtest.Gzip(long)), "DMARCD_LIMIT_EXPANDED=1024", "over the limit of 1024 for expanded bytes"},
		{"ratio", string(packtest.Gzip(large)), "DMARCD_LIMIT_RATIO=2", "over the limit of 2 for compression ratio"},
		{"members", string(several), "DMARCD_LIMIT_MEMBERS=1", "over the limit of 1 for members"},
		{"nesting", string(packtest.Gzip(packtest.Gzip(two))), "DMARCD_LIMIT_NESTING=1", "over the limit of 1 for nesting"},
		{"records", two, "DMARCD_LIMIT_RECORDS=1", "too many records"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			data := filepath.Join(t.TempDir(), "data")
			run := func(settings ...string) (status int, stderr string) {
				var out, errors bytes.Buffer
				environ := append([]string{"DMARCD_DATA=" + data, "DMARCD_LIMIT_MAIL=1024"}, settings...)
				p := &program{in: strings.NewReader(tt.input), out: &out, err: &errors, environ: environ}
				return p.run(t.Context(), []string{"parse", "-"}), errors.String()
			}
			if status, stderr := run(); status != exitDone || stderr != "" {
				t.Errorf("the default: got status %d and %q, want it read", status, stderr)
			}
			if status, stderr := run(tt.setting); status != exitProblem || !strings.Contains(stderr, tt.want) {
				t.Errorf("got status %d and %q, want %d and %q", status, stderr, exitProblem, tt.want)
			}
			if _, err := os.Stat(data); !os.IsNotExist(err) {
				t.Errorf("got %v, want no data folder", err)
			}
		})
	}
}

// manyRecords is the number of records in the long report.
const manyRecords = 120_000

// longReport returns a compressed report with many records, each from another source.
// Uncompressed, it exceeds the limit for files.
func longReport(t *testing.T) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := musttest.Get(gzip.NewWriterLevel(&packed, gzip.BestSpeed))(t)
	before, after, _ := strings.Cut(reportOf("receiver.example", "\n"), "\n")
	write := func(text string) {
		musttest.Get(io.WriteString(w, text))(t)
	}
	write(before)
	for i := range manyRecords {
		write(recordFrom(fmt.Sprintf("2001:db8::%x:%x", i>>16, i&0xffff)))
	}
	write(after)
	musttest.Do(t, w.Close())
	return packed.Bytes()
}

// heapWatcher measures memory use while a program reads from and writes to it.
type heapWatcher struct {
	in    io.Reader
	lines int // written
	moved int // bytes since the last measurement
	peak  uint64
}

func (h *heapWatcher) Read(p []byte) (int, error) {
	const weight = 16 // what is read is compressed
	n, err := h.in.Read(p)
	h.look(weight * n)
	return n, err
}

func (h *heapWatcher) Write(p []byte) (int, error) {
	h.lines += bytes.Count(p, []byte("\n"))
	h.look(len(p))
	return len(p), nil
}

// look measures memory periodically.
func (h *heapWatcher) look(bytes int) {
	const interval = 8 << 20
	if h.moved += bytes; h.moved >= interval {
		h.moved = 0
		h.peak = max(h.peak, heapInUse())
	}
}

func heapInUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestParseMemory checks that memory use does not grow with the number of records, except
// for a few bytes per source. It is not parallel, because it measures the whole process.
func TestParseMemory(t *testing.T) {
	if testing.Short() {
		return // measures memory
	}
	const allowed = 24 << 20 // the document is almost twice as long
	report := longReport(t)
	before := heapInUse()
	watcher := &heapWatcher{in: bytes.NewReader(report)}
	var stderr bytes.Buffer
	p := &program{in: watcher, out: watcher, err: &stderr}
	if status := p.run(t.Context(), []string{"parse", "--json", "-"}); status != exitDone {
		t.Fatalf("got status %d, want %d: %s", status, exitDone, stderr.String())
	}
	if watcher.lines < manyRecords {
		t.Errorf("got %d lines, want at least one for each of %d records", watcher.lines, manyRecords)
	}
	if watcher.peak <= before {
		t.Errorf("got no more than the %d bytes in use before, want the memory measured", before)
	}
	if watcher.peak > before+allowed {
		t.Errorf("got %d MiB in use, want at most %d", (watcher.peak-before)>>20, allowed>>20)
	}
}
