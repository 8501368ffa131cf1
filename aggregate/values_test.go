package aggregate_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/aggregate"
)

// oneRecord is a report with a record of that row, From domain and results.
func oneRecord(evaluated, from, results string) string {
	return fmt.Sprintf(`<feedback><report_metadata><org_name>r</org_name><email>a@r.example</email><report_id>1</report_id>
<date_range><begin>1762128000</begin><end>1762214399</end></date_range></report_metadata>
<policy_published><domain>example.com</domain><p>none</p></policy_published>
<record><row><source_ip>192.0.2.1</source_ip><count>1</count><policy_evaluated>%s</policy_evaluated></row>
<identifiers><envelope_from>example.com</envelope_from><header_from>%s</header_from></identifiers>
<auth_results>%s</auth_results></record></feedback>`, evaluated, from, results)
}

const spfPass = `<spf><domain>example.com</domain><scope>mfrom</scope><result>pass</result></spf>`

func hasQuirk(report aggregate.Report, quirk aggregate.Quirk) bool {
	return slices.ContainsFunc(report.Quirks, func(q aggregate.QuirkCount) bool { return q.Quirk == quirk })
}

func TestDomainsAreNormalized(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		"example.com": "example.com", "exAmple.com": "example.com", "exaZple.com": "exazple.com", "LOCAL": "local",
		"example.com.": "example.com", "@example.com": "example.com", "user@example.com": "example.com", "[example.com": "[example.com",
		"a@b@example.com": "example.com", "user@ example.com.>": "example.com", "user@": "user@", "user@.": "user@", "例え": "xn--r8jz45g", "B\u00dccher.example": "xn--bcher-kva.example",
	} {
		report, records, err := read(strings.NewReader(oneRecord("<disposition>none</disposition><dkim>fail</dkim><spf>pass</spf>", from, spfPass)))
		if err != nil || len(records) != 1 || records[0].HeaderFrom != want {
			t.Errorf("%s: got %+v, %v; want %s", from, records, err, want)
		}
		if got, upper := hasQuirk(report, aggregate.DomainCase), strings.ToLower(from) != from; got != upper {
			t.Errorf("%s: got the quirk of upper case: %t, want %t", from, got, upper)
		}
	}
}

func TestEvaluatedMissing(t *testing.T) {
	t.Parallel()
	for evaluated, want := range map[string]bool{
		"<disposition>none</disposition><dkim>fail</dkim><spf>pass</spf>": false,
		"<disposition>none</disposition><dkim>fail</dkim>":                true,
		"<disposition>none</disposition><spf>pass</spf>":                  true,
		"<disposition>none</disposition>":                                 true,
	} {
		report, _, err := read(strings.NewReader(oneRecord(evaluated, "example.com", spfPass)))
		if err != nil || hasQuirk(report, aggregate.EvaluatedMissing) != want {
			t.Errorf("%s: got %v, %v; want the quirk: %t", evaluated, report.Quirks, err, want)
		}
	}
}

// TestDisagrees compares what the receiver evaluated with what its results say.
func TestDisagrees(t *testing.T) {
	t.Parallel()
	spf := func(domain, scope, result string) string {
		return "<spf><domain>" + domain + "</domain><scope>" + scope + "</scope><result>" + result + "</result></spf>"
	}
	dkim := func(domain, result string) string {
		return "<dkim><domain>" + domain + "</domain><selector>s</selector><result>" + result + "</result></dkim>"
	}
	const (
		own, sub, other = "example.com", "news.example.com", "other.example"
		strict          = "<adkim>s</adkim><aspf>s</aspf><p>"
		nullSender      = "<envelope_from></envelope_from>"
	)
	for _, test := range []struct {
		name, evaluated, results string
		old, piece               string // replaced in the report
		want                     bool
	}{
		{name: "pass", evaluated: "pass", results: spf(own, "mfrom", "pass")},
		{name: "fail", evaluated: "fail", results: spf(own, "mfrom", "fail")},
		{name: "pass, evaluated as fail", evaluated: "fail", results: spf(own, "mfrom", "pass"), want: true},
		{name: "fail, evaluated as pass", evaluated: "pass", results: spf(own, "mfrom", "fail"), want: true},
		{name: "the second passes", evaluated: "fail", results: spf(own, "mfrom", "softfail") + spf(own, "mfrom", "pass"), want: true},
		{name: "not aligned", evaluated: "pass", results: spf(other, "mfrom", "pass"), want: true},
		{name: "HELO", evaluated: "pass", results: spf(own, "helo", "pass"), want: true},
		{name: "HELO of the null sender", evaluated: "pass", results: spf(own, "helo", "pass"), old: "<envelope_from>example.com</envelope_from>", piece: nullSender},
		{name: "nothing", evaluated: "pass"},
		{name: "DKIM", evaluated: "pass", results: dkim(own, "pass")},
		{name: "DKIM, evaluated as fail", evaluated: "fail", results: dkim(own, "pass"), want: true},
		{name: "DKIM fails", evaluated: "pass", results: dkim(own, "fail"), want: true},
		{name: "DKIM not aligned", evaluated: "pass", results: dkim(other, "pass"), want: true},
		{name: "DKIM passes, SPF fails", evaluated: "fail", results: dkim(own, "pass") + spf(own, "mfrom", "fail"), want: true},
		{name: "subdomain", evaluated: "pass", results: dkim(sub, "pass")},
		{name: "subdomain, strict", evaluated: "pass", results: dkim(sub, "pass"), old: "<p>", piece: strict, want: true},
		{name: "subdomain of SPF, strict", evaluated: "pass", results: spf(sub, "mfrom", "pass"), old: "<p>", piece: strict, want: true},
		{name: "same domain, strict", evaluated: "pass", results: dkim(own, "pass"), old: "<p>", piece: strict},
		{name: "the longest name", evaluated: "pass", results: dkim(strings.Repeat("a.", 122)+own, "pass")},
		{name: "a name that is too long", evaluated: "pass", results: dkim("a"+strings.Repeat("a.", 122)+own, "pass"), want: true},
		{name: "policy domain without an author", evaluated: "pass", results: dkim(own, "pass"), old: "<header_from>example.com</header_from>"},
		{name: "no policy before the record", evaluated: "fail", results: dkim(own, "pass"), old: "policy_published", piece: "later"},
	} {
		document := oneRecord("<disposition>none</disposition><dkim>fail</dkim><spf>"+test.evaluated+"</spf>", own, test.results)
		_, records, err := read(strings.NewReader(strings.Replace(document, test.old, test.piece, 2)))
		if err != nil || len(records) != 1 || records[0].Disagrees != test.want {
			t.Errorf("%s: got %+v, %v; want that it disagrees: %t", test.name, records, err, test.want)
		}
	}
}

// TestTimes reads the begin of the period.
func TestTimes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		seconds int64 // 0: that of the end
		quirk   string
	}{
		"1767225600":           {1767225600, ""},
		"1767225600.5":         {1767225600, "time_fraction"},
		"1767225600.5x":        {0, "range_incomplete"},
		"1767225600000":        {1767225600, "time_milliseconds"},
		"100000000000":         {100000000000, "time_implausible, range_reversed"},
		"100000000001":         {100000000, "time_milliseconds, time_implausible, range_long"},
		"100000000000000":      {100000000000, "time_milliseconds, time_implausible, range_reversed"},
		"100000000001000":      {0, "time_milliseconds, range_incomplete"},
		"-1":                   {0, "range_incomplete"},
		"2026-01-01T00:00:00Z": {1767225600, "time_text"},
		"1970-01-01T00:00:01Z": {1, "time_text, time_implausible, range_long"},
		"1969-12-31T23:59:59Z": {0, "range_incomplete"},
		"5138-11-16T09:46:40Z": {100000000000, "time_text, time_implausible, range_reversed"},
		"5138-11-16T09:46:41Z": {0, "range_incomplete"},
	} {
		report, _, err := readWithin(strings.NewReader(edited("1767225600", text)), aggregate.Limits{Latest: 1767400000})
		want.seconds = cmp.Or(want.seconds, 1767311999)
		if err != nil || report.Metadata.Begin != want.seconds || quirkNames(report) != want.quirk {
			t.Errorf("%s: got %d, %q, %v; want %d, %q", text, report.Metadata.Begin, quirkNames(report), err, want.seconds, want.quirk)
		}
	}
}

// TestCounts reads the number of messages of a record.
func TestCounts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		count int64 // -1: the record is skipped
		quirk string
	}{
		"0":                {0, ""},
		"9007199254740991": {9007199254740991, ""},
		"9007199254740992": {-1, "count_invalid"},
		"-1":               {-1, "count_invalid"},
		"":                 {-1, "count_missing"},
		"0.0":              {0, "count_form"},
		"12.":              {12, "count_form"},
		"1234.0":           {1234, "count_form"},
		"-1.0":             {-1, "count_invalid"},
		"1.5":              {-1, "count_invalid"},
		".0":               {-1, "count_invalid"},
		"1,000":            {1000, "count_form"},
		"123,456,789.00":   {123456789, "count_form"},
		"1234,567":         {-1, "count_invalid"},
		",123":             {-1, "count_invalid"},
		"1,00":             {-1, "count_invalid"},
		"1,0000":           {-1, "count_invalid"},
	} {
		report, records, err := read(strings.NewReader(edited("<count>1<", "<count>"+text+"<")))
		got := int64(-1)
		if len(records) == 1 {
			got = records[0].Count
		}
		if err != nil || got != want.count || quirkNames(report) != want.quirk {
			t.Errorf("%q: got %d, %q, %v; want %d, %q", text, got, quirkNames(report), err, want.count, want.quirk)
		}
	}
}

// TestText decodes the text of a value.
func TestText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a\rb\r\nc\r":                   "a\nb\nc",
		"a\t\nb":                        "a\t\nb",
		"&lt;&gt;&amp;&quot;&apos;":     "<>&\"'",
		"&#49;&#x32;&#X33;&#32;&#9;b":   "123 \tb",
		"a&#10;&#13;b":                  "a\n\rb",
		"&a;&#;&#x;&1;":                 "&a;&#;&#x;&1;",
		"a\x01b\uffffc&#xfffe;d&#0;e":   "abcde",
		"a\x80b\xff":                    "a\ufffdb\ufffd",
		"<![CDATA[&amp;\r\n<a>]]>&amp;": "&amp;\n<a>&",
	} {
		report, _, err := read(strings.NewReader(edited("<fo>1<", "<fo>"+text+"<")))
		if err != nil || report.Policy.FailureOptions != want {
			t.Errorf("%q: got %q, %v; want %q", text, report.Policy.FailureOptions, err, want)
		}
	}
}

// TestEndTagOfTheSameLength closes an element with another name.
func TestEndTagOfTheSameLength(t *testing.T) {
	t.Parallel()
	whole := oneRecord("<disposition>none</disposition><dkim>fail</dkim><spf>pass</spf>", "example.com", spfPass)
	for document, want := range map[string]bool{whole: false, strings.Replace(whole, "</p>", "</q>", 1): true} {
		report, _, err := read(strings.NewReader(document))
		if err != nil || hasQuirk(report, aggregate.MismatchedTags) != want {
			t.Errorf("got %v, %v; want the quirk: %t", report.Quirks, err, want)
		}
	}
}

// TestFormsOfElements reads the same record in forms that XML allows, or that reporters use.
func TestFormsOfElements(t *testing.T) {
	t.Parallel()
	plain := oneRecord("<disposition>none</disposition><dkim>fail</dkim><spf>pass</spf>", "example.com", spfPass)
	want, records, err := read(strings.NewReader(plain))
	if err != nil || len(records) != 1 {
		t.Fatalf("got %+v, %v, want one record", records, err)
	}
	for name, document := range map[string]string{
		"CDATA": strings.Replace(plain, "<email>a@r.example</email>", "<email><![CDATA[]]>a@r.example<![CDATA[]]></email>", 1),
		"no namespace in a namespace": strings.NewReplacer("<feedback>", `<feedback xmlns="urn:reporter">`,
			"<record>", `<record xmlns="">`).Replace(plain),
		"end tags in capitals": strings.NewReplacer("</row>", "</ROW>", "</identifiers>", "</Identifiers>").Replace(plain),
		"capitals":             strings.NewReplacer("source_ip", "SOURCE_IP", "header_from", "Header_From").Replace(plain),
	} {
		report, got, err := read(strings.NewReader(document))
		if err != nil || report.Metadata.Email != want.Metadata.Email || !slices.EqualFunc(got, records, func(a, b aggregate.Record) bool {
			return a.Source == b.Source && a.HeaderFrom == b.HeaderFrom && a.Count == b.Count && a.SPF == b.SPF
		}) {
			t.Errorf("%s: got %+v of %s, %v, want %+v of %s", name, got, report.Metadata.Email, err, records, want.Metadata.Email)
		}
	}
}

func TestLengthBeforeTheReport(t *testing.T) {
	t.Parallel()
	if got := aggregate.NewReader(strings.NewReader(""), aggregate.Limits{}).Length(); got != 0 {
		t.Errorf("got %d bytes, want none", got)
	}
}
