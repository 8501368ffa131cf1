package aggregate_test

import (
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/costtest"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// repeated is a document of n equal parts that is generated while it is read.
func repeated(head, part string, n int, tail string) io.Reader {
	return &generated{head: head, tail: tail, part: func(int) string { return part }, n: n}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	t.Run("records", func(t *testing.T) {
		t.Parallel()
		_, records, err := readWithin(sample(3), aggregate.Limits{Records: 3})
		if err != nil || len(records) != 3 {
			t.Errorf("got %d records and error %v, want 3", len(records), err)
		}
		_, _, err = readWithin(sample(4), aggregate.Limits{Records: 3})
		wantRejection(t, err, aggregate.RejectedLimit)
	})
	t.Run("skipped records count", func(t *testing.T) {
		t.Parallel()
		_, _, err := readWithin(repeated(sampleHead, "<record/>", 4, sampleTail), aggregate.Limits{Records: 3})
		wantRejection(t, err, aggregate.RejectedLimit)
	})
	t.Run("text", func(t *testing.T) {
		t.Parallel()
		document := func(n int) io.Reader {
			return strings.NewReader(edited("receiver.example", strings.Repeat("&amp;", n)))
		}
		report, _, err := readWithin(document(100), aggregate.Limits{TextBytes: 100})
		if err != nil || report.Metadata.OrgName != strings.Repeat("&", 100) {
			t.Errorf("got name %q and error %v, want 100 characters", report.Metadata.OrgName, err)
		}
		_, _, err = readWithin(document(101), aggregate.Limits{TextBytes: 100})
		wantRejection(t, err, aggregate.RejectedLimit)
	})
	t.Run("text without references", func(t *testing.T) {
		t.Parallel()
		for n, accept := range map[int]bool{100: true, 101: false} {
			for _, old := range []string{"receiver.example", "<spf>fail</spf>"} {
				piece := strings.Repeat("a", n)
				if old != "receiver.example" {
					piece = old + "<reason>" + piece + "</reason>"
				}
				_, _, err := readWithin(strings.NewReader(edited(old, piece)), aggregate.Limits{TextBytes: 100})
				if accept && err != nil {
					t.Errorf("%s of %d bytes: got error %v, want none", old, n, err)
				}
				if !accept {
					wantRejection(t, err, aggregate.RejectedLimit)
				}
			}
		}
	})
	t.Run("text in pieces", func(t *testing.T) {
		t.Parallel()
		pieces := repeated("<feedback><report_metadata><org_name>", "<!-- -->aaaaaaaaaa<![CDATA[a]]>", 10, "</org_name>")
		_, _, err := readWithin(pieces, aggregate.Limits{TextBytes: 100})
		wantRejection(t, err, aggregate.RejectedLimit)
	})
	t.Run("depth", func(t *testing.T) {
		t.Parallel()
		nested := func(n int) io.Reader {
			return strings.NewReader(edited("<version>", strings.Repeat("<x>", n)+strings.Repeat("</x>", n)+"<version>"))
		}
		if _, _, err := readWithin(nested(5), aggregate.Limits{Depth: 6}); err != nil {
			t.Errorf("got error %v, want none", err)
		}
		_, _, err := readWithin(nested(6), aggregate.Limits{Depth: 6})
		wantRejection(t, err, aggregate.RejectedLimit)
	})
	t.Run("results, reasons and errors", func(t *testing.T) {
		t.Parallel()
		document := strings.NewReplacer(
			"<selector>", "<selector/></dkim><dkim><selector>",
			"<scope>", "<scope/></spf><spf><scope>",
			"</policy_evaluated>", strings.Repeat("<reason/>", 4)+"</policy_evaluated>",
			"<date_range>", strings.Repeat("<error>e</error>", 5)+"<date_range>",
		).Replace(withHead(sampleRecord(0)))
		report, records, err := readWithin(strings.NewReader(document), aggregate.Limits{AuthResults: 1, Reasons: 2})
		musttest.Do(t, err)
		r := records[0]
		if len(r.DKIMResults) != 1 || len(r.SPFResults) != 1 || len(r.Reasons) != 2 || len(report.Metadata.Errors) != 2 {
			t.Errorf("got %d, %d, %d and %d, want 1, 1, 2 and 2",
				len(r.DKIMResults), len(r.SPFResults), len(r.Reasons), len(report.Metadata.Errors))
		}
		const dropped = 3 + 1 + 2 + 3
		want := aggregate.QuirkCount{Quirk: aggregate.ElementsDropped, Count: dropped}
		if got := find(report.Quirks, aggregate.ElementsDropped); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// TestTextOfARecord checks that no record is much longer than usual ones.
func TestTextOfARecord(t *testing.T) {
	t.Parallel()
	const limit = 1000
	text := strings.Repeat("a", limit/4)
	document := strings.NewReplacer(
		"<selector>", "<selector/>"+strings.Repeat("</dkim><dkim><domain>d.example</domain><human_result>"+text+"</human_result>", 9)+"</dkim><dkim><selector>",
		"</policy_evaluated>", strings.Repeat("<reason><type>other</type><comment>"+text+"</comment></reason>", 2)+"</policy_evaluated>",
		"<date_range>", strings.Repeat("<error>"+text+"</error>", 5)+"<date_range>",
	).Replace(withHead(sampleRecord(0) + sampleRecord(1)))
	report, records, err := readWithin(strings.NewReader(document), aggregate.Limits{RecordBytes: limit})
	musttest.Do(t, err)
	for i, r := range records {
		if n := r.TextBytes(); n > limit || len(r.Reasons) < 2 || len(r.DKIMResults) == 0 {
			t.Errorf("record %d: got %d bytes in %d reasons and %d results, want up to %d", i, n, len(r.Reasons), len(r.DKIMResults), limit)
		}
	}
	if len(report.Metadata.Errors) != 4 || find(report.Quirks, aggregate.ElementsDropped).Count == 0 {
		t.Errorf("got %d errors and the quirks %v", len(report.Metadata.Errors), report.Quirks)
	}
}

func find(quirks []aggregate.QuirkCount, q aggregate.Quirk) aggregate.QuirkCount {
	for _, c := range quirks {
		if c.Quirk == q {
			return c
		}
	}
	return aggregate.QuirkCount{}
}

// TestBombs checks that hostile documents are rejected, and how much memory is allocated
// for them. It does not run in parallel with other tests, because their memory would
// count too.
func TestBombs(t *testing.T) {
	const (
		most     = 4 << 20 // bytes allocated
		entities = `<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>`
	)
	kilobyte := strings.Repeat("a", 1<<10)
	for _, test := range []struct {
		name   string
		in     io.Reader
		accept bool
	}{
		{"entity expansion", repeated(entities+sampleHead+"<x>", "&b;", 10_000_000, "</x></feedback>"), false},
		{"entities in values", strings.NewReader(entities + edited("receiver.example", "&b;&b;")), true},
		{"two million nested elements", repeated(sampleHead, "<a>", 2_000_000, ""), false},
		{"two million nested elements around", repeated("", "<a>", 2_000_000, ""), false},
		{"one value of 30 MB", repeated("<feedback><report_metadata><org_name>", kilobyte, 30<<10, sampleTail), false},
		{"one unknown element of 30 MB", repeated(sampleHead+"<x>", kilobyte, 30<<10, "</x></feedback>"), false},
		{"one tag of 30 MB", repeated("<feedback ", kilobyte, 30<<10, ">"), false},
		{"one attribute of 30 MB", repeated("<feedback a='", kilobyte, 30<<10, "'>"), false},
		{"one CDATA section of 30 MB", repeated(sampleHead+"<![CDATA[", kilobyte, 30<<10, "]]>"), false},
		{"30 MB of comments", repeated(sampleHead+"<!--", kilobyte, 30<<10, "-->"+sampleTail), true},
		{"10 MB of document type", repeated("<!DOCTYPE feedback [", "<!ENTITY a \""+kilobyte+"\">", 10<<10, "]>"+sampleHead+sampleTail), true},
		{"30 MB of blanks", repeated(sampleHead, strings.Repeat(" ", 1<<10), 30<<10, sampleTail), true},
		{"a hundred thousand errors", repeated("<feedback><report_metadata>", "<error>e</error>", 100_000, ""), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _, err := read(test.in)
			runtime.ReadMemStats(&after)
			if accepted := err == nil; accepted != test.accept {
				t.Errorf("got error %v, want acceptance %v", err, test.accept)
			}
			if asked := after.TotalAlloc - before.TotalAlloc; asked > most {
				t.Errorf("got %d bytes of memory asked for, want at most %d", asked, most)
			}
		})
	}
}

// TestLongTokenInSmallPieces checks that a token is not scanned again for each byte of a
// slow reader, which would take hours.
func TestLongTokenInSmallPieces(t *testing.T) {
	t.Parallel()
	document := strings.NewReader("<feedback><![CDATA[" + strings.Repeat("a", 500<<10) + "]]>")
	_, _, err := read(iotest.OneByteReader(document))
	wantRejection(t, err, aggregate.RejectedDamaged)
}

// TestConstantMemory checks that memory does not grow with the number of records. It runs
// alone, like TestBombs.
func TestConstantMemory(t *testing.T) {
	const (
		records = 10_000
		every   = 2_500
		most    = 8 << 20
	)
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := aggregate.NewReader(sample(records), aggregate.Limits{})
	n := 0
	for _, err := range r.All() {
		musttest.Do(t, err)
		if n++; n%every == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			if used := int64(now.HeapAlloc) - int64(before.HeapAlloc); used > most {
				t.Errorf("after %d records: got %d bytes in use, want at most %d", n, used, most)
			}
		}
	}
	if n != records || r.Report().Records != records {
		t.Errorf("got %d records, of which the report knows %d, want %d", n, r.Report().Records, records)
	}
}

func TestTextBytes(t *testing.T) {
	t.Parallel()
	r := aggregate.Record{
		Reasons:     []aggregate.Reason{{Type: "local_policy", Comment: "arc=pass"}},
		DKIMResults: []aggregate.DKIMResult{{Domain: "example.com", Selector: "s1", Result: "pass", HumanResult: "fine"}},
		SPFResults:  []aggregate.SPFResult{{Domain: "example.org", Scope: "helo", Result: "none", HumanResult: "no record"}},
	}
	if got, want := r.TextBytes(), len("local_policy"+"arc=pass"+"example.com"+"s1"+"pass"+"fine"+"example.org"+"helo"+"none"+"no record"); got != want {
		t.Errorf("got %d, want %d", got, want)
	}
}

// TestCost checks that the time for a document depends only on its length, not on nesting
// or token length. Each row has two documents of about the same length. It runs alone,
// like TestBombs.
func TestCost(t *testing.T) {
	const (
		length = 1 << 20
		deep   = 61
		factor = 6
	)
	fill := func(part string) string { return strings.Repeat(part, length/len(part)) }
	distinct := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString("<x" + strconv.Itoa(i) + ">")
		}
		return b.String()
	}
	for _, test := range []struct{ name, plain, hostile string }{
		{"end tags of no open element, outside", "<a>" + fill("</x>"), distinct(deep) + fill("</x>")},
		{"end tags of no open element", sampleHead + fill("</x>"), sampleHead + distinct(deep) + fill("</x>")},
		{"end tags of no open element, of one length", "<a>" + fill("</x99>"), distinct(deep) + fill("</x99>")},
		{
			"end tags in capital letters",
			sampleHead + distinct(2) + fill("<y></Y>"), sampleHead + distinct(deep) + fill("<y></Y>"),
		},
		{
			"end tags of no open element between others",
			sampleHead + distinct(2) + fill("<y></x></y>"), sampleHead + distinct(deep) + fill("<y></x></y>"),
		},
		{"long names of one length", "<a>" + fill("</x>"), longNames(deep) + fill("</"+strings.Repeat("y", 8<<10)+">")},
		{"unknown elements in wrappers", sampleHead + fill("<x/>"), sampleHead + distinct(deep-1) + fill("<x/>")},
		{"elements that are not closed", sampleHead + fill("<record></record>"), sampleHead + fill("<record><row>")},
		{"values with elements in them", sampleHead + fill("<x/>"), "<feedback><report_metadata><org_name>" + fill("<x/>")},
		{"long tags that are none", fill("<a b='c'/>"), fill("<a " + strings.Repeat("b", 200<<10))},
		{"long sections", fill("<a b='c'/>"), fill("<![CDATA[" + strings.Repeat("]]", 100<<10) + "]]>")},
		{"long instructions", fill("<a b='c'/>"), fill("<?a " + strings.Repeat("b>", 100<<10))},
		{"many attributes", sampleHead + fill("<x/>"), fill("<feedback " + strings.Repeat("a='b' ", 30<<10) + ">")},
		{"ampersands", sampleHead + fill("<x/>"), sampleHead + fill("<record><row><count>"+strings.Repeat("&", 1<<10)+"</count></row></record>")},
		{
			"a long author domain and many results",
			sampleHead + fill("<record></record>"),
			sampleHead + fill("<record><identifiers><header_from>"+strings.Repeat("a.", 30<<10)+"</header_from></identifiers><auth_results>"+
				strings.Repeat("<dkim><domain>b</domain><result>pass</result></dkim>", 100)+"</auth_results><row><count>1</count></row></record>"),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			costtest.AtMost(t, factor, reading(test.plain), reading(test.hostile))
		})
	}
}

// longNames opens n elements whose names of 8 KiB differ only in the last bytes.
func longNames(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("<" + strings.Repeat("y", 8<<10-2) + strconv.Itoa(10+i) + ">")
	}
	return b.String()
}

// reading reads a document and discards the result.
func reading(document string) func() {
	return func() { _, _, _ = readWithin(strings.NewReader(document), aggregate.Limits{}) }
}
