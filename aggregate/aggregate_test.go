package aggregate_test

import (
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

func TestSameReport(t *testing.T) {
	t.Parallel()
	document := strings.Replace(withHead(sampleRecord(0)+sampleRecord(1)), "receiver.example<", "Empfänger &amp; Söhne<", 1)
	original, _, err := read(strings.NewReader(document))
	musttest.Do(t, err)
	encoded := func(s string, err error) string {
		musttest.Do(t, err)
		return s
	}
	head, rest, _ := strings.Cut(document, "  <policy_published>")
	policy, rest, _ := strings.Cut(rest, "</policy_published>\n")
	for _, test := range []struct {
		name     string
		document string
		same     bool
	}{
		{"itself", document, true},
		{"byte order mark", "\ufeff" + document, true},
		{"UTF-16", encoded(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(document)), true},
		{"ISO 8859-15", encoded(charmap.ISO8859_15.NewEncoder().String(strings.Replace(document, "UTF-8", "iso-8859-15", 1))), true},
		{"ends of lines", strings.ReplaceAll(document, "\n", "\r\n"), true},
		{"no blanks", regexp.MustCompile(`>\s+<`).ReplaceAllString(document, "><"), true},
		{"policy behind the records", head + strings.Replace(rest, "</feedback>", "<policy_published>"+policy+"</policy_published></feedback>", 1), true},
		{"count in front", strings.ReplaceAll(document, "<row>", "<row><!-- first --><disposition/>"), true},
		{"namespace", strings.Replace(document, "<feedback>", `<feedback xmlns="urn:ietf:params:xml:ns:dmarc-2.0">`, 1), true},
		{"words in capitals", strings.ReplaceAll(document, ">pass<", ">PASS<"), true},
		{"CDATA", strings.Replace(document, "Empfänger &amp; Söhne", "<![CDATA[Empfänger & Söhne]]>", 1), true},
		{"cut off behind the last record", strings.TrimSuffix(document, sampleTail), true},
		{"another count", strings.Replace(document, "<count>1<", "<count>7<", 1), false},
		{"another selector", strings.Replace(document, ">k1<", ">k2<", 1), false},
		{"another policy", strings.Replace(document, "<sp>reject", "<sp>none", 1), false},
		{"another name", strings.Replace(document, "Söhne", "Töchter", 1), false},
		{"one record less", withHead(sampleRecord(0)), false},
		{"text moved to another field", strings.NewReplacer("<email>d", "<email>", "<report_id>", "<report_id>d").Replace(document), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, _, err := read(strings.NewReader(test.document))
			musttest.Do(t, err)
			if same := got.Content == original.Content; same != test.same {
				t.Errorf("got same content %v, want %v", same, test.same)
			}
			if test.same && got.Key() != original.Key() {
				t.Errorf("got key %+v, want %+v", got.Key(), original.Key())
			}
		})
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		metadata aggregate.Metadata
		want     aggregate.Key
	}{
		{
			"name in lower case, id without brackets",
			aggregate.Metadata{OrgName: "Receiver Inc.", ReportID: "< 17@r.example>", Begin: 1, End: 2},
			aggregate.Key{Organization: "receiver inc.", ReportID: "17@r.example", Domain: "example.com", Begin: 1, End: 2},
		},
		{
			"domain of the address for the name",
			aggregate.Metadata{Email: "dmarc@R.example", ReportID: "17"},
			aggregate.Key{Organization: "r.example", ReportID: "17", Domain: "example.com"},
		},
		{"nothing", aggregate.Metadata{}, aggregate.Key{Domain: "example.com"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			report := aggregate.Report{Metadata: test.metadata, Policy: aggregate.PublishedPolicy{Domain: "example.com"}}
			if got := report.Key(); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestAnyBoundary checks that the result does not depend on how a document is split into
// reads.
func TestAnyBoundary(t *testing.T) {
	t.Parallel()
	for _, name := range ownFiles(t) {
		report, records := readOwnFile(t, name)
		want := goldenOf(report, records)
		for _, cut := range []struct {
			name string
			by   func(io.Reader) io.Reader
		}{
			{"byte by byte", iotest.OneByteReader},
			{"halves", iotest.HalfReader},
			{"error with the data", iotest.DataErrReader},
		} {
			report, records, err := read(cut.by(openOwnFile(t, name)))
			if err != nil {
				t.Errorf("%s, %s: %v", name, cut.name, err)
				continue
			}
			checkGoldenEqual(t, name+", "+cut.name, want, goldenOf(report, records))
		}
	}
}

// TestCutOffArchive checks that a truncated container is treated as a truncated document.
func TestCutOffArchive(t *testing.T) {
	t.Parallel()
	short, _, _ := strings.Cut(oneRecord("<disposition>none</disposition><dkim>fail</dkim><spf>pass</spf>", "example.com", spfPass), "</feedback>")
	for _, document := range []string{sampleHead + sampleRecord(0), short} {
		in := io.MultiReader(strings.NewReader(document), iotest.ErrReader(io.ErrUnexpectedEOF))
		report, records, err := read(in)
		if err != nil || len(records) != 1 || find(report.Quirks, aggregate.Truncated).Count != 1 {
			t.Errorf("%d bytes: got %d records, quirks %v and error %v, want one record and the quirk truncated",
				len(document), len(records), report.Quirks, err)
		}
	}
}

func TestResultKnown(t *testing.T) {
	t.Parallel()
	for word, want := range map[aggregate.Result]aggregate.Result{
		"pass": aggregate.ResultPass, "hardfail": aggregate.ResultFail, "unknown": aggregate.ResultTemperror,
		"error": aggregate.ResultPermerror, "sortof": "", "": "",
	} {
		if got := word.Known(); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}
