package tlsrpt_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/costtest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// oneReport returns a report with that id and without quirks.
func oneReport(id string) string {
	return `{"organization-name":"a.example","contact-info":"b@a.example","report-id":"` + id +
		`","date-range":{"start-datetime":"2026-04-01T00:00:00Z","end-datetime":"2026-04-01T23:59:59Z"},` +
		`"policies":[{"policy":{"policy-type":"no-policy-found","policy-domain":"example.com"},` +
		`"summary":{"total-successful-session-count":1,"total-failure-session-count":0}}]}`
}

func TestReader(t *testing.T) {
	t.Parallel()
	one, two, three := oneReport("1"), oneReport("2"), oneReport("3")
	for _, test := range []struct {
		name, document string
		want           []string // the ids with the quirks, or the reasons
	}{
		{"one", one, []string{"1"}},
		{"lines", one + "\n" + two + "\n" + three + "\n", []string{"1", "2", "3"}},
		{"nothing between", one + two, []string{"1", "2"}},
		{"a list", "[" + one + "," + two + "]\n", []string{"1 stray_wrapper", "2 stray_wrapper"}},
		{"a list that is not closed", "[" + one + "," + two, []string{"1 stray_wrapper", "2 stray_wrapper"}},
		{"a list and a line", "[" + one + "]\n" + two, []string{"1 stray_wrapper", "2"}},
		{"lists", "[" + one + "]\n[" + two + "]", []string{"1 stray_wrapper", "2 stray_wrapper"}},
		{"text behind", one + "\n" + two + "\nthe end", []string{"1", "2 trailing_junk"}},
		{"a line that is no report", one + "\n{}\n" + two, []string{"1", "rejected: the content is JSON but not a TLS report", "2"}},
		{"a line that is not JSON", one + "\n{\"organization-name\" oops}\n" + two + "\n", []string{"1", "rejected: the content is not JSON", "2"}},
		{"a line that breaks off in a text", one[:len(one)-20] + "x\n" + two + "\n" + three, []string{"rejected: the report is damaged and has no complete policy", "2", "3"}},
		{"a line with a complete policy breaks off", one[:len(one)-2] + "\n" + two + "\n", []string{"1 malformed", "2"}},
		{"a line breaks off in a list", one[:len(one)-2] + ",\r\n" + two + "\r\n" + three, []string{"1 malformed", "2", "3"}},
		{"a list breaks off", "[" + one + ",\n" + two[:len(two)-2] + "\n" + three, []string{"1 stray_wrapper", "2 malformed stray_wrapper", "3 stray_wrapper"}},
		{"members on lines of their own", strings.NewReplacer("[{", "[\n{", ":{", ":\n{", ",", ",\n").Replace(one + "\n" + two), []string{"1", "2"}},
		{"the last one is cut off", one + "\n" + two[:len(two)-1], []string{"1", "2 truncated"}},
		{"pieces that begin a line are no reports", "{\"policies\": [\n{\"policy\": oops},\n{\n}]}", []string{"rejected: the report is damaged and has no complete policy"}},
		{"a list of something else", "[1]", []string{"rejected: the content is JSON but not an object"}},
		{"an empty list", "[]", []string{"rejected: the content is JSON but not an object"}},
		{"nothing", "", []string{"rejected: the document is empty"}},
		{"UTF-16", inUTF16("\ufeff" + one + "\n" + two), []string{"1 byte_order_mark other_encoding", "2 byte_order_mark other_encoding"}},
		{"a text over the limit", one + `{"organization-name":"` + strings.Repeat("a", 70<<10) + `"}` + two, []string{"1", "rejected: a text is too long"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			r := tlsrpt.NewReader(strings.NewReader(test.document), tlsrpt.Limits{})
			for {
				report, err := r.Next()
				rejected := new(tlsrpt.RejectedError)
				switch {
				case err == nil:
					got = append(got, strings.TrimSpace(report.ReportID+" "+quirkList(report)))
					continue
				case errors.As(err, &rejected):
					got = append(got, "rejected: "+rejected.Detail)
					continue
				case !errors.Is(err, io.EOF):
					t.Fatal(err)
				}
				break
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("got (+) against want (-):\n%s", diff)
			}
		})
	}
}

// TestLineBreaksOff cuts the first line of NDJSON anywhere. The next one is read.
func TestLineBreaksOff(t *testing.T) {
	t.Parallel()
	one, two := oneReport("1"), oneReport("2")
	for end := 1; end < len(one); end++ {
		r := tlsrpt.NewReader(strings.NewReader(one[:end]+"\n"+two+"\n"), tlsrpt.Limits{})
		var last string
		for {
			report, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err == nil {
				last = report.ReportID
			}
		}
		if last != "2" {
			t.Errorf("after %q: got report %q as the last, want 2", one[max(0, end-20):end], last)
		}
	}
}

func inUTF16(text string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(text)) {
		b.WriteByte(byte(unit >> 8))
		b.WriteByte(byte(unit))
	}
	return b.String()
}

// TestLatest checks that a time too far in the future is a quirk.
func TestLatest(t *testing.T) {
	t.Parallel()
	const end = 1_775_087_999 // 2026-04-01T23:59:59Z
	for latest, want := range map[int64]int{0: 0, end: 0, end - 1: 1, 1_400_000_000: 2} {
		report := musttest.Get(tlsrpt.ReadReport(strings.NewReader(oneReport("1")), tlsrpt.Limits{Latest: latest}))(t)
		if got := quirkNames(report)["time_implausible"]; got != want {
			t.Errorf("up to %d: got %d, want %d", latest, got, want)
		}
	}
}

// TestCost checks that the time for a report depends only on its length.
func TestCost(t *testing.T) {
	const (
		length = 1 << 20
		factor = 30
	)
	fill := func(part string) string { return `{"organization-name":"a",` + strings.Repeat(part, length/len(part)) }
	plain := fill(`"contact-info":"a",`)
	for _, test := range []struct{ name, part string }{
		{"unknown members", `"":0,`},
		{"members in another form", `"Contact_Info":"",`},
		{"long names", `"` + strings.Repeat("a-", 30<<10) + `":0,`},
		{"escapes", `"contact-info":"` + strings.Repeat(`\n`, 30<<10) + `",`},
		{"broken escapes", `"contact-info":"` + strings.Repeat(`\u`, 10<<10) + `",`},
		{"bad bytes", `"contact-info":"` + strings.Repeat("\xff", 10<<10) + `",`},
		{"lists in texts", `"policies":[{"policy":{"mx-host":"` + strings.Repeat(`[`, 60<<10) + `"}}],`},
		{"prefixes", `"policies":[{"policy":{"mx-host":"` + strings.Repeat(`mx:`, 20<<10) + `"}}],`},
		{"commas", `,`},
		{"nested lists", `"x":` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + ","},
	} {
		t.Run(test.name, func(t *testing.T) {
			costtest.AtMost(t, factor, reading(plain), reading(fill(test.part)))
		})
	}
}

func reading(document string) func() {
	return func() { _, _ = tlsrpt.ReadReport(strings.NewReader(document), tlsrpt.Limits{}) }
}
