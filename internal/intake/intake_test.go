package intake_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/packtest"
)

const (
	opening = `<?xml version="1.0"?><feedback><version>1.0</version><report_metadata><org_name>receiver.example</org_name>` +
		`<email>dmarc@receiver.example</email><report_id>1</report_id><date_range><begin>1767225600</begin><end>1767311999</end></date_range></report_metadata>` +
		`<policy_published><domain>example.com</domain><p>none</p></policy_published>`
	closing = `</feedback>`
	biggest = 1<<53 - 1
)

func record(source string, count int64, dkim string) string {
	return fmt.Sprintf(`<record><row><source_ip>%s</source_ip><count>%d</count><policy_evaluated><disposition>none</disposition>`+
		`<dkim>%s</dkim><spf>fail</spf></policy_evaluated></row><identifiers><header_from>example.com</header_from></identifiers>`+
		`<auth_results><spf><domain>example.com</domain><scope>mfrom</scope><result>fail</result></spf></auth_results></record>`,
		source, count, dkim)
}

// describe returns an item as one line.
func describe(item *intake.Item) string {
	what := "nothing"
	switch {
	case item.Err != nil:
		what = "refused: " + item.Err.Error()
	case item.Aggregate != nil:
		what = fmt.Sprintf("%d records, %d of %d compliant, %d sources", item.Aggregate.Report.Records,
			item.Aggregate.Compliant, item.Aggregate.Messages, item.Aggregate.Sources)
	case item.TLS != nil:
		what = fmt.Sprintf("%d policies", len(item.TLS.Policies))
	case item.Failure != nil:
		what = "from " + item.Failure.From
	}
	if item.Damage != nil {
		what += ", damaged"
	}
	return strings.Join([]string{item.Kind.String(), item.Path, what}, "|")
}

func file(t *testing.T, parts ...string) []byte {
	t.Helper()
	return musttest.Get(os.ReadFile(filepath.Join(parts...)))(t)
}

func TestRead(t *testing.T) {
	t.Parallel()
	three := opening + record("192.0.2.1", 5, "pass") + record("192.0.2.1", 2, "fail") + record("2001:db8::1", 1, "pass") + closing
	whole := packtest.Zip("a.xml", three)
	for _, tt := range []struct {
		name  string
		input []byte
		want  []string
	}{
		{"a bare aggregate report", []byte(three), []string{"aggregate||3 records, 6 of 8 compliant, 2 sources"}},
		{
			"sums stay where numbers are exact",
			[]byte(opening + record("192.0.2.1", biggest, "pass") + record("192.0.2.2", biggest, "pass") + closing),
			[]string{"aggregate||2 records, 4503599627370495 of 4503599627370495 compliant, 2 sources"},
		},
		{"a TLS report", file(t, "..", "..", "tlsrpt", "testdata", "report", "plain-several.json"), []string{"tls||3 policies"}},
		{
			"a failure report without local parts", file(t, "unpack", "testdata", "failure-report.eml"),
			[]string{"failure||from redacted@receiver.example"},
		},
		{
			"one odd member does not stop the rest",
			packtest.Zip("a.xml", "<feedback/>", "b.txt", "hello", "c.json", "{}", "d.xml", opening+closing),
			[]string{
				"aggregate|a.xml|refused: aggregate report rejected: the report has no time range",
				"rejected|b.txt|refused: this is text, not a report",
				"tls|c.json|refused: TLS report rejected: the content is JSON but not a TLS report",
				"aggregate|d.xml|0 records, 0 of 0 compliant, 0 sources",
			},
		},
		{
			"an archive that is cut off behind its member", whole[:len(whole)-40],
			[]string{"aggregate|a.xml|3 records, 6 of 8 compliant, 2 sources, damaged"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			err := intake.NewReader(intake.DefaultLimits()).Read(t.Context(), bytes.NewReader(tt.input), func(item *intake.Item) error {
				got = append(got, describe(item))
				return nil
			})
			if err != nil {
				t.Fatalf("got error %v, want none", err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRecordsAreReadAgain reads records twice, from memory and from a temporary file.
func TestRecordsAreReadAgain(t *testing.T) {
	t.Parallel()
	for _, count := range []int{0, 1, 5000} {
		t.Run(fmt.Sprintf("%d records", count), func(t *testing.T) {
			t.Parallel()
			var report strings.Builder
			report.WriteString(opening)
			for i := range count {
				report.WriteString(record("192.0.2.1", int64(i), "pass"))
			}
			report.WriteString(closing)
			limits := intake.DefaultLimits()
			limits.Containers.Folder = t.TempDir()
			err := intake.NewReader(limits).Read(t.Context(), strings.NewReader(report.String()), func(item *intake.Item) error {
				if item.Aggregate.Bytes != int64(report.Len()) {
					t.Errorf("got %d bytes, want %d", item.Aggregate.Bytes, report.Len())
				}
				for range 2 {
					next := 0
					for r, err := range item.Aggregate.Records(t.Context()) {
						if err != nil || r.Count != int64(next) {
							t.Fatalf("got count %d and error %v, want %d", r.Count, err, next)
						}
						next++
					}
					if next != count {
						t.Errorf("got %d records, want %d", next, count)
					}
				}
				return nil
			})
			musttest.Do(t, err)
			left, err := os.ReadDir(limits.Containers.Folder)
			if err != nil || len(left) > 0 {
				t.Errorf("got files %v and error %v, want nothing left behind", left, err)
			}
		})
	}
}

func TestRecordsEndWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	err := intake.NewReader(intake.DefaultLimits()).Read(ctx, strings.NewReader(opening+record("192.0.2.1", 1, "pass")+closing), func(item *intake.Item) error {
		cancel()
		for _, err := range item.Aggregate.Records(ctx) {
			return err
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
}

// TestWhatEndsTheReading separates errors that stop the reading from rejections of one item.
func TestWhatEndsTheReading(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	report := opening + record("192.0.2.1", 1, "pass") + closing
	tooLong, tooMuch, noFolder := intake.DefaultLimits(), intake.DefaultLimits(), intake.DefaultLimits()
	tooLong.Containers.Input = 10
	tooMuch.Containers.Expanded = 100
	noFolder.Containers.Folder = filepath.Join(t.TempDir(), "missing")
	long := opening + strings.Repeat(record("192.0.2.1", 1, "pass"), 5000) + closing
	for _, tt := range []struct {
		name   string
		input  []byte
		limits intake.Limits
		visit  intake.Visit
		want   error
	}{
		{"the input is too long", []byte(report), tooLong, nil, dmarcd.ErrLimit},
		{"the input expands to too much", packtest.Zip("a.xml", report), tooMuch, nil, dmarcd.ErrLimit},
		{"a copy cannot be kept", []byte(long), noFolder, nil, os.ErrNotExist},
		{"the visitor has enough", []byte(report), intake.DefaultLimits(), func(*intake.Item) error { return broken }, broken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			visit := tt.visit
			if visit == nil {
				visit = func(item *intake.Item) error {
					t.Errorf("got %s, want no item", describe(item))
					return nil
				}
			}
			if err := intake.NewReader(tt.limits).Read(t.Context(), bytes.NewReader(tt.input), visit); !errors.Is(err, tt.want) {
				t.Errorf("got error %v, want %v", err, tt.want)
			}
		})
	}
}

// TestRatioRejectsOneMember checks that a bomb in an archive is rejected and its neighbour is
// read.
func TestRatioRejectsOneMember(t *testing.T) {
	t.Parallel()
	bomb := opening + strings.Repeat(" ", 4<<20) + closing
	var got []string
	err := intake.NewReader(intake.DefaultLimits()).Read(t.Context(), bytes.NewReader(packtest.Zip("bomb.xml", bomb, "good.xml", opening+closing)),
		func(item *intake.Item) error {
			got = append(got, describe(item))
			return nil
		})
	musttest.Do(t, err)
	want := []string{
		"aggregate|bomb.xml|refused: over the limit of 200 for compression ratio",
		"aggregate|good.xml|0 records, 0 of 0 compliant, 0 sources",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}

// TestReaderReusesBuffers reads many inputs twice with one reader, and wants what Read
// returns for each of them. The inputs are reports in containers, some of them damaged.
func TestReaderReusesBuffers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	inputs := readerInputs(t)
	reader := intake.NewReader(intake.DefaultLimits())
	for range 2 {
		for name, input := range inputs {
			var want, got []string
			wantErr := intake.NewReader(intake.DefaultLimits()).Read(t.Context(), bytes.NewReader(input), collect(t, &want))
			err := reader.Read(t.Context(), bytes.NewReader(input), collect(t, &got))
			if (err == nil) != (wantErr == nil) {
				t.Errorf("%s: got error %v, want %v", name, err, wantErr)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-Read +Reader):\n%s", name, diff)
			}
		}
	}
}

// readerInputs returns inputs by name.
func readerInputs(t *testing.T) map[string][]byte {
	t.Helper()
	inputs := make(map[string][]byte)
	for _, pattern := range []string{"unpack/testdata/*.eml", "../../aggregate/testdata/*.xml", "../../tlsrpt/testdata/report/*.json"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: got %d files and error %v, want some", pattern, len(names), err)
		}
		for _, name := range names {
			content := musttest.Get(os.ReadFile(name))(t)
			packed := packtest.Gzip(content)
			inputs[name] = content
			inputs[name+".gz"] = packed
			inputs[name+".gz cut off"] = packed[:len(packed)*2/3]
			inputs[name+".zip"] = packtest.Zip("a.xml", string(content), "b.xml", string(content))
		}
	}
	return inputs
}

// collect describes items with their records.
func collect(t *testing.T, items *[]string) intake.Visit {
	return func(item *intake.Item) error {
		description := describe(item)
		if item.Aggregate != nil {
			for record, err := range item.Aggregate.Records(t.Context()) {
				if err != nil {
					return err
				}
				text, err := json.Marshal(record)
				if err != nil {
					return err
				}
				description += "\n" + string(text)
			}
		}
		*items = append(*items, description)
		return nil
	}
}

// originalOf returns the stored original of a delivery.
func originalOf(t *testing.T, d *dmarcd.Delivery) string {
	t.Helper()
	content := musttest.Get(io.ReadAll(intake.Unpack(d.Original.Packed())))(t)
	if int64(len(content)) != d.Original.Size {
		t.Errorf("got %d bytes, want the %d of the original", len(content), d.Original.Size)
	}
	return string(content)
}

func TestFailureReportsAreRedacted(t *testing.T) {
	t.Parallel()
	mailbox := "From a Thu Jan  1 00:00:00 1970\n" + failureMail("jane") +
		"\nFrom b Thu Jan  1 00:00:00 1970\n" + strings.ReplaceAll(failureMail("joe"), "<1@", "<2@")
	complaint := strings.Replace(failureMail("jane"), "auth-failure", "abuse", 1)
	for _, tt := range []struct {
		name    string
		input   []byte
		without []string // texts that must not be stored
	}{
		{"a mail", []byte(failureMail("jane")), []string{"jane", "bob@", "Bob", "Dear all"}},
		{"a mailbox", []byte(mailbox), []string{"jane", "joe", "bob@", "Bob", "Dear all"}},
		{"an archive", packtest.Zip("a.eml", failureMail("jane")), []string{"jane", "bob@", "Bob", "Dear all"}},
		{"an archive with another report", packtest.Zip("a.eml", failureMail("jane"), "b.xml", opening+closing), []string{"jane", "Dear all"}},
		{"a complaint, which is rejected", []byte(complaint), []string{"jane", "bob@", "Bob", "Dear all"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := acceptor(t)
			d := deliver(t, a, message(tt.input))
			stored := originalOf(t, d)
			for _, text := range tt.without {
				if strings.Contains(stored, text) {
					t.Errorf("the original holds %q:\n%s", text, stored)
				}
			}
			// The redacted original can be read again with the same result.
			again := deliver(t, a, message([]byte(stored)))
			if diff := cmp.Diff(failuresOf(d), failuresOf(again)); diff != "" {
				t.Errorf("read again (-first +second):\n%s", diff)
			}
			if got := originalOf(t, again); got != stored {
				t.Errorf("redacted twice: got\n%s\nwant\n%s", got, stored)
			}
		})
	}
}

// failuresOf returns the documents of failure reports, and the reasons of rejections.
func failuresOf(d *dmarcd.Delivery) []string {
	var all []string
	for _, report := range d.Reports {
		if report.Kind == dmarcd.KindFailure {
			all = append(all, report.Organization+" "+report.ExternalID+" "+report.Domain)
		}
	}
	for _, rejection := range d.Rejections {
		all = append(all, rejection.Reason)
	}
	return all
}

// TestLongFailureReports cuts a header in the middle of an address, which then has no at sign.
func TestLongFailureReports(t *testing.T) {
	t.Parallel()
	const limit, address = 256 << 10, "jane.roe.of.a.long.name@receiver.example"
	header, _, _ := strings.Cut(failureMail("x"), "From: Bob")
	for _, before := range []int{4, 12, 22} {
		field := "X-Long: "
		original := "From: a@example.com\n"
		original += field + strings.Repeat("a", limit-len(original)-len(field)-before-2) + "\n"
		original += " " + address + "\n\nDear all,\n\n--b--\n"
		stored := originalOf(t, deliver(t, acceptor(t), message([]byte(header+original))))
		if strings.Contains(stored, "jane") {
			t.Fatalf("cut after %d bytes of the address: the original ends with %q", before, stored[len(stored)-200:])
		}
	}
}
