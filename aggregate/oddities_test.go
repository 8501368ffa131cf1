package aggregate_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// quirkNames returns the names of a report's quirks, with the number of those that occur
// more than once.
func quirkNames(report aggregate.Report) string {
	var names []string
	for _, q := range report.Quirks {
		name := q.Quirk.String()
		if q.Count > 1 {
			name = fmt.Sprintf("%s %d", name, q.Count)
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// TestOddities replaces one piece of a report without quirks, and compares the quirks.
func TestOddities(t *testing.T) {
	t.Parallel()
	const (
		rfc9990 = `<feedback xmlns="urn:ietf:params:xml:ns:dmarc-2.0">`
		policy  = "<adkim>r</adkim>\n    <aspf>r</aspf>\n    <p>reject</p>\n    <sp>reject</sp>\n    <pct>100</pct>\n    <fo>1</fo>"
		version = "<version>1.0</version>"
		begin   = "<feedback>"
	)
	// spaces declares n namespaces.
	spaces := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, " xmlns:n%d='urn:n%d'", i, i)
		}
		return "<feedback" + b.String() + ">"
	}
	for _, test := range []struct{ name, old, piece, want string }{
		{"nothing", begin, begin, ""},

		// The declaration.
		{"blanks around an attribute", `version="1.0"`, "version = '1.0'", ""},
		{"attribute without quotes", `version="1.0"`, "version=1.0", "xml_version"},
		{"attribute that is not closed", `version="1.0" encoding="UTF-8" ?>`, `version="1.0 ?>`, "xml_version"},
		{"attribute without a value", `version="1.0" encoding="UTF-8" ?>`, `version="1.0" encoding=?>`, ""},
		{"attribute without an equals sign", `version="1.0" encoding="UTF-8" ?>`, `version="1.0" encoding?>`, ""},
		{"attribute without a name", `version="1.0"`, `="1.0" version="1.0"`, "xml_version"},
		{"blank before the declaration", "<?xml", "\n<?xml", "leading_junk"},
		{"blank and no declaration", `<?xml version="1.0" encoding="UTF-8" ?>`, " ", "declaration_missing"},
		{"end tag before the report", begin, "</x>" + begin, ""},

		// The encoding.
		{"ASCII", "UTF-8", "us-ascii", ""},
		{"UTF-16 as a label", "UTF-8", "UTF-16", "encoding_mislabelled"},
		{"UTF-16 as a label, without the hyphen", "UTF-8", "utf16le", "encoding_mislabelled"},
		{"UTF-32 as a label", "UTF-8", "utf-32", "encoding_mislabelled"},
		{"UTF-32 as a label, without the hyphen", "UTF-8", "UTF32", "encoding_mislabelled"},
		{"unknown encoding", "UTF-8", "x-own", "encoding_unknown"},
		{"encoding that no browser reads", "UTF-8", "iso-2022-kr", "encoding_unknown"},
		{"other encoding", "UTF-8", "iso-8859-1", "other_encoding"},
		{"byte order mark", "<?xml", "\ufeff<?xml", "byte_order_mark"},
		{"byte order mark and no declaration", `<?xml version="1.0" encoding="UTF-8" ?>`, "\ufeff", "byte_order_mark, declaration_missing"},
		{"byte order mark and another label", `<?xml version="1.0" encoding="UTF-8" ?>`, "\ufeff<?xml version='1.0' encoding='latin1'?>", "byte_order_mark, encoding_mislabelled"},

		// Markup.
		{"comment without text", version, "<!---->" + version, ""},
		{"two less-than signs", version, "<" + version, "bare_less_than, stray_text"},
		{"text like the start of a tag", version, "<b c " + version, "bare_less_than, stray_text"},
		{"both quotation marks", version, `<version a="it's >" b='"'>1.0</version>`, ""},
		{"end tag with a blank", "</email>", "</email\n>", ""},
		{"greater-than sign as a value", "<p>reject</p>", "<p>></p>", "value_unknown"},
		{"greater-than sign in a value", ">100<", ">1><", ""},
		{"instruction like an end tag", "<p>reject</p>", "<p>reject<?p></p>", "malformed_tag"},
		{"instruction with two greater-than signs", version, "<?a b> c> " + version, "malformed_tag, stray_text"},
		{"document type in quotes", begin, `<!DOCTYPE feedback SYSTEM "it's [>"><feedback>`, "document_type"},
		{"document type with declarations", begin, `<!DOCTYPE feedback [<!ENTITY a '"]>'><!-- ' ]> -->]><feedback>`, "document_type"},
		{"document type of a web page within", version, "<!DOCTYPE html>" + version, "document_type"},
		{"web page around", begin, "<x/><html>" + begin, "stray_wrapper"},

		// Names.
		{"longer names than those of the schema", version, version + "<p0/><p9/><p-/><p./><z/><Z/><_/><\u00e9/><\x80/>", "element_unknown 9"},
		{"policy with names that begin like others", "<p>", "<p0>none</p0><p9>none</p9><p->none</p-><p.>none</p.><p>", "element_unknown 4"},
		{"prefix without a name", version, version + "<:/>", "element_unknown"},
		{"names as long as feedback", begin, "<envelope>" + begin + "<envelope/>", "stray_wrapper, element_unknown"},
		{"feedback in feedback", version, version + "<feedback/>", "element_unknown"},
		{"names as long as others", version, version + "<vers1on/>", "element_unknown"},

		// Namespaces.
		{"sixteenth namespace", begin, spaces(16) + "<n15:x/>", "element_foreign"},
		{"seventeenth namespace", begin, spaces(17) + "<n16:x/>", "element_unknown"},
		{"prefix that is not declared", begin, begin + "<n:x/>", "element_unknown"},
		{"attribute that begins like a declaration", begin, `<feedback xmlnsn="urn:n"><n:x/>`, "element_unknown"},
		{"prefix of the report", begin, "<feedback xmlns='urn:a' xmlns:a='urn:a'><a:x/>", "namespace_unknown, element_unknown"},
		{"prefix of a draft", begin, "<feedback xmlns:a='http://dmarc.org/dmarc-xml/9'><a:x/>", "element_unknown"},
		{"prefix in another namespace of a part", begin, "<feedback><x xmlns:a='urn:a'></x><a:y/>", "element_unknown 2"},
		{"no prefix in a report with one", begin, "<a:feedback xmlns:a='urn:ietf:params:xml:ns:dmarc-2.0' xmlns='urn:b'>", ""},

		// Nesting.
		{"end tag of no element", version, version + "</x>", "mismatched_tags"},
		{"end tag of no element first", begin, begin + "</x>", "mismatched_tags"},
		{"repeated result", "<spf>fail</spf>", "<spf>fail</spf><reason><type>other</type></reason><spf>pass</spf>", "element_repeated"},
		{"repeated results", "</auth_results>", "</auth_results><auth_results/>", "element_repeated"},
		{"repeated part of a reason", "<spf>fail</spf>", "<spf>fail</spf><reason><type>other</type><type>other</type></reason>", "element_repeated"},
		{"two reasons", "<spf>fail</spf>", "<spf>fail</spf><reason><type>other</type></reason><reason><type>other</type></reason>", ""},

		// Text.
		{"blank value of an element", "<fo>1</fo>", "<fo> </fo>", "policy_incomplete"},
		{"padded value", "<fo>1</fo>", "<fo> 1</fo>", "value_padded"},
		{"entity of one letter", "<fo>1", "<fo>&a;", "unknown_entity"},
		{"entity without a name", "<fo>1", "<fo>&;", "bare_ampersand"},
		{"entity that is no name", "<fo>1", "<fo>&a b;", "bare_ampersand"},
		{"entity that begins with a digit", "<fo>1", "<fo>&1a;", "bare_ampersand"},
		{"entity of 30 letters", "<fo>1", "<fo>&" + strings.Repeat("a", 30) + ";", "unknown_entity"},
		{"entity of 31 letters", "<fo>1", "<fo>&" + strings.Repeat("a", 31) + ";", "bare_ampersand"},
		{"reference without a number", "<fo>1", "<fo>&#;&#x;", "bare_ampersand 2"},
		{"references", "<fo>1", "<fo>&#49;&#x32;&#X33;a&#32;b&#9;c&#10;d&#13;e", ""},
		{"references to characters that XML forbids", "<fo>1", "<fo>1&#1;&#31;&#xD800;&#xFFFE;&#xFFFF;&#x7fffffff;", "control_characters 6"},
		{"reference beyond all characters", "<fo>1", "<fo>&#x80000000;", "bare_ampersand"},
		{"bad byte", "<fo>1", "<fo>\x80", "bad_bytes"},
		{"replacement character", "<fo>1", "<fo>\ufffd", ""},
		{"delete", "<fo>1", "<fo>1\x7f", ""},

		// Metadata.
		{"id with a domain", "20260101.17", "az.AZ.09!@r.example", ""},
		{"id in special characters", "20260101.17", "!#$%'*+-/=?^_`{|}~", ""},
		{"id with a colon", "20260101.17", "a:b", "report_id_form"},
		{"id with a bracket", "20260101.17", "a[b", "report_id_form"},
		{"id with two dots", "20260101.17", "a..b", "report_id_form"},
		{"id without a domain", "20260101.17", "a@", "report_id_form"},
		{"id without a left side", "20260101.17", "@b", "report_id_form"},
		{"id with two domains", "20260101.17", "a@b@c", "report_id_form"},
		{"period of 25 hours", "1767311999", "1767315600", ""},
		{"period of more than 25 hours", "1767311999", "1767315601", "range_long"},
		{"no begin", "<begin>1767225600</begin>", "", "range_incomplete"},
		{"no end", "<end>1767311999</end>", "", "range_incomplete"},
		{"empty period", "1767311999", "1767225600", "range_empty"},

		// Policy.
		{"no policy but p", policy, "<p>none</p>", "policy_incomplete 3"},
		{"nothing of the policy", policy, "", "policy_incomplete 4"},
		{"empty modes", policy, strings.NewReplacer(">r<", "><").Replace(policy), "policy_incomplete 2"},
		{"draft", version, "", "version_missing"},
		{"RFC 9990", begin, rfc9990, ""},
		{"elements of RFC 9990", "<pct>", "<testing>n</testing><pct>", "namespace_missing"},
		{"version of RFC 9990", version, "<version>2.0</version>", "version_unusual"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			document := edited(test.old, test.piece)
			report, records, err := read(strings.NewReader(document))
			if err != nil || len(records) != 1 {
				t.Fatalf("got %d records and error %v, want one record", len(records), err)
			}
			if got := quirkNames(report); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestDialects checks which parts of policy and record each specification requires.
func TestDialects(t *testing.T) {
	t.Parallel()
	for _, dialect := range []struct {
		name, root, version, testing string
		want                         map[string]string // by the piece that is left out
	}{
		{
			name: "RFC 7489", root: "<feedback>", version: "<version>1.0</version>",
			want: map[string]string{
				"":                 "",
				"<sp>reject</sp>":  "policy_incomplete",
				"<pct>100</pct>":   "policy_incomplete",
				"<fo>1</fo>":       "policy_incomplete",
				"<adkim>r</adkim>": "",
				"<envelope_from>e.example</envelope_from>": "envelope_from_missing",
				"<selector>s</selector>":                   "",
				"<scope>mfrom</scope>":                     "spf_scope",
				"<spf><domain>e.example</domain><scope>mfrom</scope><result>pass</result></spf>": "spf_missing",
			},
		},
		{
			name: "draft", root: "<feedback>",
			want: map[string]string{
				"":                "version_missing",
				"<sp>reject</sp>": "version_missing, policy_incomplete",
				"<pct>100</pct>":  "version_missing, policy_incomplete",
				"<fo>1</fo>":      "version_missing",
				"<envelope_from>e.example</envelope_from>": "version_missing",
				"<selector>s</selector>":                   "version_missing",
				"<scope>mfrom</scope>":                     "version_missing",
				"<spf><domain>e.example</domain><scope>mfrom</scope><result>pass</result></spf>": "version_missing, spf_missing",
			},
		},
		{
			name: "RFC 9990", root: `<feedback xmlns="urn:ietf:params:xml:ns:dmarc-2.0">`,
			want: map[string]string{
				"":                "",
				"<p>reject</p>":   "policy_incomplete",
				"<sp>reject</sp>": "",
				"<pct>100</pct>":  "",
				"<fo>1</fo>":      "",
				"<envelope_from>e.example</envelope_from>": "",
				"<selector>s</selector>":                   "selector_missing",
				"<scope>mfrom</scope>":                     "",
				"<spf><domain>e.example</domain><scope>mfrom</scope><result>pass</result></spf>": "",
			},
		},
		{
			name: "RFC 9990 by an element", root: "<feedback>", testing: "<testing>n</testing>",
			want: map[string]string{"": "namespace_missing", "<fo>1</fo>": "namespace_missing"},
		},
		{
			name: "draft of RFC 9990", root: `<feedback xmlns="http://dmarc.org/dmarc-xml/0.2">`,
			want: map[string]string{"": "namespace_draft", "<fo>1</fo>": "namespace_draft"},
		},
	} {
		document := `<?xml version="1.0"?>` + dialect.root + dialect.version + `<report_metadata><org_name>r</org_name><email>a@r.example</email>` +
			`<report_id>1</report_id><date_range><begin>1767225600</begin><end>1767311999</end></date_range></report_metadata>` +
			`<policy_published><domain>example.com</domain><adkim>r</adkim><aspf>r</aspf><p>reject</p><sp>reject</sp><pct>100</pct><fo>1</fo>` +
			dialect.testing + `</policy_published><record><row><source_ip>192.0.2.1</source_ip><count>1</count><policy_evaluated>` +
			`<disposition>none</disposition><dkim>pass</dkim><spf>fail</spf></policy_evaluated></row><identifiers>` +
			`<envelope_from>e.example</envelope_from><header_from>example.com</header_from></identifiers><auth_results>` +
			`<dkim><domain>example.com</domain><selector>s</selector><result>pass</result></dkim>` +
			`<spf><domain>e.example</domain><scope>mfrom</scope><result>pass</result></spf></auth_results></record></feedback>`
		for piece, want := range dialect.want {
			if !strings.Contains(document, piece) {
				t.Fatalf("%s: %s is not in the report", dialect.name, piece)
			}
			report, _, err := read(strings.NewReader(strings.Replace(document, piece, "", 1)))
			if err != nil || quirkNames(report) != want {
				t.Errorf("%s without %q: got %q, %v; want %q", dialect.name, piece, quirkNames(report), err, want)
			}
		}
		for _, name := range []string{"sp", "pct", "fo", "adkim", "aspf"} {
			report, _, err := read(strings.NewReader(strings.Replace(document, "<"+name+">", "<"+name+"/><x>", 1)))
			if err != nil || find(report.Quirks, aggregate.PolicyIncomplete).Count != 1 {
				t.Errorf("%s with an empty %s: got %q, %v; want policy_incomplete", dialect.name, name, quirkNames(report), err)
			}
		}
	}
}

// TestBehindTheReport checks what may follow a report.
func TestBehindTheReport(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 600<<10)
	for _, test := range []struct {
		name, rest string
		junk       int
	}{
		{"blanks", " \r\n\t", 0},
		{"comment", "<!-- c -->", 0},
		{"instruction", "<?a ?>", 0},
		{"comment that is not closed", "<!-- c", 0},
		{"text", "end", 1},
		{"section", "<![CDATA[ ]]>", 1},
		{"element", "<x/>", 1},
		{"end tag", "</x>", 1},
		{"declaration", "<?xml version='1.0'?>", 1},
		{"document type", "<!DOCTYPE x>", 1},
		{"text without an end", long, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			document := withHead(sampleRecord(0))
			report, records, err := read(strings.NewReader(strings.TrimSpace(document) + test.rest))
			if err != nil || len(records) != 1 {
				t.Fatalf("got %d records and error %v, want one record", len(records), err)
			}
			if got := find(report.Quirks, aggregate.TrailingJunk).Count; got != test.junk || len(report.Quirks) != test.junk {
				t.Errorf("got quirks %q, want %d of trailing junk", quirkNames(report), test.junk)
			}
		})
	}
}

// TestBetweenReports reads two reports with something between them.
func TestBetweenReports(t *testing.T) {
	t.Parallel()
	_, bare, _ := strings.Cut(strings.TrimSpace(withHead(sampleRecord(0))), "?>")
	for _, test := range []struct {
		name, before, between string
		want                  []string
	}{
		{"declaration", "", `<?xml version="1.0"?>`, []string{"declaration_missing", ""}},
		{"nothing", "", "", []string{"declaration_missing", "declaration_missing"}},
		{"empty element", "", "<x/>", []string{"declaration_missing", "declaration_missing"}},
		{"open element", "", "<x>", []string{"declaration_missing", "declaration_missing, stray_wrapper"}},
		{"end of the element around", "<x>", "</x>", []string{"declaration_missing, stray_wrapper", "declaration_missing"}},
		{"end of the inner element around", "<x><y>", "</y>", []string{"declaration_missing, stray_wrapper", "declaration_missing, stray_wrapper"}},
		{"end of no element", "", "</x>", []string{"declaration_missing, trailing_junk", "declaration_missing"}},
		{"nested to the limit", "", "<a><b><c><d><e><f><g><h>", []string{"declaration_missing", "rejected"}},
		{"nested beyond the limit", "", "<a><b><c><d><e><f><g><h><i>", []string{"declaration_missing, trailing_junk"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := aggregate.NewReader(strings.NewReader(test.before+bare+test.between+bare), aggregate.Limits{Depth: 8})
			var got []string
			for more := true; more; more = r.Another() {
				_, err := r.Next()
				for err == nil {
					_, err = r.Next()
				}
				if errors.Is(err, io.EOF) {
					got = append(got, quirkNames(r.Report()))
				} else {
					wantRejection(t, err, aggregate.RejectedLimit)
					got = append(got, "rejected")
				}
			}
			if strings.Join(got, "; ") != strings.Join(test.want, "; ") {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestAnotherReportBegins checks where a start tag of a report ends the previous one.
func TestAnotherReportBegins(t *testing.T) {
	t.Parallel()
	for part, follows := range map[string]bool{
		"":                    false,
		"<x/>":                false,
		"<report_metadata/>":  true,
		"<policy_published/>": true,
		"<record/>":           true,
	} {
		r := aggregate.NewReader(strings.NewReader("<feedback>"+part+"<feedback>"), aggregate.Limits{})
		if _, err := r.Next(); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s: got error %v, want a rejection", part, err)
		}
		if got := r.Another(); got != follows {
			t.Errorf("%s: got another report: %t, want %t", part, got, follows)
		}
	}
}

// TestLength compares the length of reports with their offsets in the document.
func TestLength(t *testing.T) {
	t.Parallel()
	const end = "</feedback>"
	document := "<all>" + strings.Repeat(withHead(strings.Repeat(sampleRecord(0), 50)), 2) + "</all>"
	first := strings.Index(document, end) + len(end)
	r := aggregate.NewReader(strings.NewReader(document), aggregate.Limits{})
	for _, report := range []struct{ begin, end int }{{0, first}, {first, strings.LastIndex(document, end) + len(end)}} {
		offset := report.begin
		for {
			_, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			musttest.Do(t, err)
			const record = "</record>"
			offset += strings.Index(document[offset:], record) + len(record)
			if got := r.Length(); got != int64(offset-report.begin) {
				t.Fatalf("within: got %d, want %d", got, offset-report.begin)
			}
		}
		if got := r.Length(); got != int64(report.end-report.begin) {
			t.Errorf("at the end: got %d, want %d", got, report.end-report.begin)
		}
		r.Another()
	}
}

// TestWindowBoundary moves a report with all kinds of markup across the end of the first
// window.
func TestWindowBoundary(t *testing.T) {
	t.Parallel()
	const (
		window = 32 << 10
		head   = `<?xml version="1.0"?>`
		rest   = `<!DOCTYPE feedback [<!ENTITY a "<b>"><!-- ' -->]><feedback xmlns:n="urn:n"><version a="'>">1.0</version><!-- c -->` +
			`<?a b='>' ?><report_metadata><org_name>r &amp; <![CDATA[<s>]]></org_name><email>a@r.example</email><report_id>1</report_id><n:x/>` +
			`<date_range><begin>1767225600</begin><end>1767311999</end></date_range></report_metadata>  < text <policy_published>` +
			`<domain>example.com</domain><p>none</p></policy_published><record><row><count>7</count></row></record></feedback> `
	)
	document := func(comment int) string { return head + "<!--" + strings.Repeat("c", comment) + "-->" + rest }
	report, records, err := read(strings.NewReader(document(0)))
	musttest.Do(t, err)
	want := goldenOf(report, records)
	for before := range len(rest) {
		report, records, err := read(strings.NewReader(document(window - before - len(document(0)) + len(rest))))
		if err != nil {
			t.Fatalf("%d bytes before the end: %v", before, err)
		}
		checkGoldenEqual(t, fmt.Sprintf("%d bytes before the end", before), want, goldenOf(report, records))
	}
}

// TestLongerThanTheWindow reads tokens for which the window grows.
func TestLongerThanTheWindow(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 60<<10)
	for _, test := range []struct{ name, old, piece, text, quirks string }{
		{"section", "<email>", "<email><![CDATA[" + long + "]]>", long, ""},
		{"text", "<email>", "<email>" + long, long, ""},
		{"text behind a less-than sign", "<email>", "<email>< " + long[1:], "< " + long[1:], "bare_less_than"},
		{"attribute", "<email>", "<email a='" + long + "'>", "", ""},
		{"instruction", "<email>", "<email><?a " + long + "?>", "", ""},
		{"comment", "<email>", "<email><!-- " + long + "-->", "", ""},
		{"tag behind a less-than sign", "<version>", "<<version a='" + long + "'>", "", "bare_less_than, stray_text"},
		{"tag that is none", "<version>", "<b " + long + "<version>", "", "bare_less_than, stray_text"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			document := edited(test.old, test.piece)
			for _, in := range []io.Reader{strings.NewReader(document), iotest.OneByteReader(strings.NewReader(document))} {
				report, records, err := read(in)
				if err != nil || len(records) != 1 || quirkNames(report) != test.quirks {
					t.Errorf("got %d records, %q, %v; want one and %q", len(records), quirkNames(report), err, test.quirks)
				}
				if got := report.Metadata.Email; got != test.text+"dmarc@receiver.example" {
					t.Errorf("got an address of %d bytes, want %d and the rest", len(got), len(test.text))
				}
			}
		})
	}
}

// lazy returns no bytes and no error, a number of times before each byte.
type lazy struct {
	in           io.Reader
	empty, times int
}

func (l *lazy) Read(p []byte) (int, error) {
	if l.times++; l.times%(l.empty+1) != 0 {
		return 0, nil
	}
	return l.in.Read(p[:min(1, len(p))])
}

// TestEmptyReads checks that a reader may return nothing for a while, but not forever.
func TestEmptyReads(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		empty int
		want  error
	}{{1, nil}, {99, nil}, {100, io.ErrNoProgress}} {
		document := withHead(strings.Repeat(sampleRecord(0), 3))
		_, records, err := read(&lazy{in: strings.NewReader(document), empty: test.empty})
		if !errors.Is(err, test.want) || err == nil && len(records) != 3 {
			t.Errorf("%d empty reads: got %d records and error %v, want %v", test.empty, len(records), err, test.want)
		}
	}
}

// TestRecordBeforeAnError checks that a broken connection does not take back the record
// before it.
func TestRecordBeforeAnError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken pipe")
	r := aggregate.NewReader(io.MultiReader(strings.NewReader(sampleHead+strings.TrimSpace(sampleRecord(0))), iotest.ErrReader(broken)), aggregate.Limits{})
	if record, err := r.Next(); err != nil || record.Count != 1 {
		t.Errorf("got %+v, %v; want the record", record, err)
	}
	if _, err := r.Next(); !errors.Is(err, broken) {
		t.Errorf("got error %v, want %v", err, broken)
	}
}

// TestCutOffMarkup ends a report at the beginning of markup, which is not text then.
func TestCutOffMarkup(t *testing.T) {
	t.Parallel()
	for _, markup := range []string{"<", "<a", "</", "<?", "<!--", "<![CDATA[", "<!DOCTYPE", "<!DOCTYPE a [<!--"} {
		report, records, err := read(strings.NewReader(sampleHead + sampleRecord(0) + markup))
		if err != nil || len(records) != 1 || quirkNames(report) != "truncated" {
			t.Errorf("%s: got %d records, %q, %v; want one and truncated", markup, len(records), quirkNames(report), err)
		}
	}
}

// TestAllStops checks that reading continues where a loop was left.
func TestAllStops(t *testing.T) {
	t.Parallel()
	r := aggregate.NewReader(sample(3), aggregate.Limits{})
	for _, want := range []int64{1, 2, 3} {
		for record, err := range r.All() {
			if err != nil || record.Count != want {
				t.Errorf("got %+v, %v; want count %d", record, err, want)
			}
			break
		}
	}
	for record, err := range r.All() {
		t.Errorf("got %+v, %v; want nothing", record, err)
	}
}

// TestEndTags compares the number of mismatched tags with that of a simple model.
func TestEndTags(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var document strings.Builder
		document.WriteString(sampleHead + sampleRecord(0))
		var open []string
		mismatched := 0
		for range rapid.IntRange(0, 40).Draw(rt, "tags") {
			name := rapid.SampledFrom([]string{"a", "A", "z", "Z", "az", "aZ", "x"}).Draw(rt, "name")
			if len(open) < 20 && rapid.Bool().Draw(rt, "start") {
				document.WriteString("<" + name + ">")
				open = append(open, name)
				continue
			}
			document.WriteString("</" + name + ">")
			at := len(open) - 1
			for at >= 0 && !strings.EqualFold(open[at], name) {
				at--
			}
			if at != len(open)-1 || at < 0 {
				mismatched++
			}
			if at >= 0 {
				open = open[:at]
			}
		}
		if len(open) > 0 {
			mismatched++
		}
		document.WriteString(sampleTail)
		report, _, err := read(strings.NewReader(document.String()))
		musttest.Do(rt, err)
		if got := find(report.Quirks, aggregate.MismatchedTags).Count; got != mismatched {
			rt.Errorf("got %d, want %d\n%s", got, mismatched, document.String())
		}
	})
}
