package intake_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/costtest"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/packtest"
)

func TestSeveralDocuments(t *testing.T) {
	t.Parallel()
	one := opening + record("192.0.2.1", 1, "pass") + closing
	two := opening + record("192.0.2.1", 2, "pass") + record("", 3, "fail") + closing
	incomplete := strings.Replace(two, "date_range", "range", 2)
	tls := func(id string) string {
		return `{"organization-name":"a","report-id":"` + id + `","policies":[` + tlsPolicy("example.com", 1, 2) + `]}`
	}
	lineOne, lineTwo := "1 records, 1 of 1 compliant, 1 sources", "2 records, 2 of 5 compliant, 1 sources"
	for _, test := range []struct {
		name  string
		input []byte
		want  []string
	}{
		{"one after another", []byte(one + two), []string{"aggregate||" + lineOne, "aggregate|2|" + lineTwo}},
		{"in an element", []byte("<all>" + one[len(`<?xml version="1.0"?>`):] + two[len(`<?xml version="1.0"?>`):] + "</all>"), []string{"aggregate||" + lineOne, "aggregate|2|" + lineTwo}},
		{"in an archive", packtest.Zip("a.xml", one+two, "b.xml", two), []string{"aggregate|a.xml|" + lineOne, "aggregate|a.xml/2|" + lineTwo, "aggregate|b.xml|" + lineTwo}},
		{"one cannot be used", []byte(one + incomplete + two), []string{
			"aggregate||" + lineOne, "aggregate|2|refused: aggregate report rejected: the report has no time range", "aggregate|3|" + lineTwo,
		}},
		{"TLS reports in lines", []byte(tls("1") + "\n" + tls("2") + "\n"), []string{"tls||1 policies", "tls|2|1 policies"}},
		{"TLS reports in a list", []byte("[" + tls("1") + ",{}," + tls("3") + "]"), []string{
			"tls||1 policies", "tls|2|refused: TLS report rejected: the content is JSON but not a TLS report", "tls|3|1 policies",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			err := intake.NewReader(intake.DefaultLimits()).Read(t.Context(), bytes.NewReader(test.input), func(item *intake.Item) error {
				got = append(got, describe(item))
				return nil
			})
			musttest.Do(t, err)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("got (+) against want (-):\n%s", diff)
			}
		})
	}
}

// TestLongDocuments checks that the records of every report of a file can be read more than
// once, also if they do not fit in memory.
func TestLongDocuments(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	const reports, records = 4, 3000
	var input strings.Builder
	for i := range reports {
		input.WriteString(strings.Replace(opening, "<report_id>1<", fmt.Sprintf("<report_id>%d<", i), 1))
		for j := range records {
			input.WriteString(record(fmt.Sprintf("192.0.%d.%d", i, j%256), int64(i*records+j), "pass"))
		}
		input.WriteString(closing)
	}
	check := func(t *testing.T, number int, got []int64) {
		t.Helper()
		if len(got) != records || got[0] != int64(number*records) || got[records-1] != int64((number+1)*records-1) {
			t.Errorf("report %d: got %d records, from %d to %d", number, len(got), got[0], got[len(got)-1])
		}
	}
	t.Run("one by one", func(t *testing.T) {
		t.Parallel()
		number := 0
		err := intake.NewReader(intake.DefaultLimits()).Read(t.Context(), strings.NewReader(input.String()), func(item *intake.Item) error {
			for range 2 {
				var counts []int64
				for _, r := range all(t, item.Aggregate.Records(t.Context())) {
					counts = append(counts, r.Count)
				}
				check(t, number, counts)
			}
			number++
			return nil
		})
		if err != nil || number != reports {
			t.Errorf("got %d reports and error %v, want %d", number, err, reports)
		}
	})
	t.Run("all at once", func(t *testing.T) {
		t.Parallel()
		delivery := deliver(t, acceptor(t), message([]byte(input.String())))
		if len(delivery.Reports) != reports {
			t.Fatalf("got %d reports, want %d", len(delivery.Reports), reports)
		}
		for i := range delivery.Reports {
			var counts []int64
			for _, r := range all(t, delivery.Reports[i].EachRecord) {
				counts = append(counts, r.Count)
			}
			check(t, i, counts)
		}
	})
}

// TestTooManyDocuments checks that the reports of a file count towards the limit of files.
func TestTooManyDocuments(t *testing.T) {
	t.Parallel()
	for _, document := range []string{opening + closing, `{"organization-name":"a","report-id":"1","policies":[]}`} {
		limits := intake.DefaultLimits()
		limits.Containers.Members = 3
		items := 0
		visit := func(*intake.Item) error { items++; return nil }
		if err := intake.NewReader(limits).Read(t.Context(), strings.NewReader(strings.Repeat(document, 4)), visit); err != nil || items != 4 {
			t.Errorf("got %d items and error %v, want 4", items, err)
		}
		err := intake.NewReader(limits).Read(t.Context(), strings.NewReader(strings.Repeat(document, 5)), visit)
		if !errors.Is(err, dmarcd.ErrLimit) {
			t.Errorf("got error %v, want a limit", err)
		}
	}
}

// TestDocumentsCost checks that the time for a file grows linearly with its length, for any
// number of reports.
func TestDocumentsCost(t *testing.T) {
	input := func(reports int) string {
		return strings.Repeat(opening+strings.Repeat(record("192.0.2.1", 1, "pass"), 20)+closing, reports)
	}
	reading := func(content string) func() {
		return func() {
			opened := musttest.Get(acceptor(t).Read(t.Context(), message([]byte(content))))(t)
			defer opened.Close()
			for i := range opened.Delivery.Reports {
				all(t, opened.Delivery.Reports[i].EachRecord)
			}
		}
	}
	costtest.AtMost(t, 3*8, reading(input(100)), reading(input(800)))
}

// TestImplausibleTimes checks that a report with an implausible period has none, and counts on
// the day it was received.
func TestImplausibleTimes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	tls := func(begin time.Time) string {
		return `{"organization-name":"a","report-id":"1","policies":[],"date-range":{"start-datetime":"` + begin.Format(time.RFC3339) + `"}}`
	}
	aggregate := func(begin time.Time) string {
		return strings.Replace(opening, "<begin>1767225600<", fmt.Sprintf("<begin>%d<", begin.Unix()), 1) + closing
	}
	failure := func(begin time.Time) string {
		return "Feedback-Type: auth-failure\nVersion: 1\nAuth-Failure: spf\nArrival-Date: " + begin.Format(time.RFC1123Z) + "\n\n"
	}
	for _, test := range []struct {
		name      string
		begin     time.Time
		plausible bool
	}{
		{"now", now, true},
		{"two days ahead", now.Add(48 * time.Hour), true},
		{"more than two days ahead", now.Add(48*time.Hour + time.Second), false},
		{"the first day", time.Date(2011, 1, 1, 0, 0, 0, 0, time.UTC), true},
		{"before the first day", time.Date(2010, 12, 31, 23, 59, 59, 0, time.UTC), false},
		{"zero", time.Unix(0, 0).UTC(), false},
	} {
		for kind, content := range map[string]string{
			"aggregate": aggregate(test.begin), "tls": tls(test.begin), "failure": failure(test.begin),
		} {
			t.Run(test.name+" "+kind, func(t *testing.T) {
				t.Parallel()
				a := acceptor(t)
				a.Limits.Now = func() time.Time { return now }
				delivery := deliver(t, a, message([]byte(content)))
				if len(delivery.Reports) != 1 {
					t.Fatalf("got %d reports and refusals %v, want 1", len(delivery.Reports), delivery.Rejections)
				}
				report := &delivery.Reports[0]
				odd := false
				for _, q := range report.Quirks {
					odd = odd || strings.HasSuffix(q.Name, "_implausible") || q.Name == "time_unreadable"
				}
				if report.Begin.IsZero() == test.plausible || report.End.IsZero() == test.plausible || odd == test.plausible {
					t.Errorf("got %v to %v and the quirks %v, want plausible %v", report.Begin, report.End, report.Quirks, test.plausible)
				}
			})
		}
	}
}

// TestULabels checks that names in U-labels are attributed to the domain in A-labels.
func TestULabels(t *testing.T) {
	t.Parallel()
	input := strings.ReplaceAll(opening+record("192.0.2.1", 1, "pass")+closing, ">example.com<", ">Mail.BÜCHER.example<")
	delivery := deliver(t, acceptor(t), message([]byte(input)))
	name := musttest.Get(dmarcd.ParseName("mail.bücher.example"))(t)
	if got := delivery.Reports[0]; got.Domain != name || got.Shares[0].From != name {
		t.Errorf("got %q and %q, want %q", got.Domain, got.Shares[0].From, name)
	}
}

// TestImplausibleEnds checks that the end of a report, by which retention deletes it, is near
// its begin.
func TestImplausibleEnds(t *testing.T) {
	t.Parallel()
	const begin, day = 1767225600, 24 * 60 * 60
	for _, test := range []struct {
		name      string
		end, want int64
	}{
		{"a day later", begin + day - 1, begin + day - 1},
		{"at the begin", begin, begin},
		{"before the begin", begin - 1, begin},
		{"in 1970", 1, begin},
		{"far ahead", 9_999_999_999, begin},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := acceptor(t)
			a.Limits.Now = func() time.Time { return time.Unix(begin+day, 0) }
			content := strings.Replace(opening, "<end>1767311999<", fmt.Sprintf("<end>%d<", test.end), 1) + closing
			delivery := deliver(t, a, message([]byte(content)))
			if len(delivery.Reports) != 1 || delivery.Reports[0].Begin.Unix() != begin || delivery.Reports[0].End.Unix() != test.want {
				t.Errorf("got %+v, want one report from %d to %d", delivery.Reports, begin, test.want)
			}
		})
	}
}
