package aggregate_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// FuzzReader checks that any input is read or rejected within the limits, that counts are
// never negative, and that reading the rendered report returns the same report.
func FuzzReader(f *testing.F) {
	for _, name := range []string{
		"plain-rfc7489", "plain-rfc9990", "encoding-utf16-bom", "encoding-windows-1252", "xml-doctype-entities",
		"xml-comment-and-cdata-in-text", "xml-unclosed-elements", "xml-truncated", "xml-wrapped-records", "domains-odd-form",
		"values-aliases", "addresses-odd-form", "time-rfc3339", "reasons", "domain-u-labels", "policy-domain-missing", "count-forms",
		"addresses-other-forms", "time-rfc822", "reason-text", "encoding-utf32-bom", "namespace-foreign", "namespace-foreign-root",
		"several/in-elements", "several/first-is-cut-off", "several/text-between",
	} {
		document := musttest.Get(os.ReadFile("testdata/" + name + ".xml"))(f)
		f.Add(document)
	}
	const maxMessages = 1<<53 - 1
	limits := aggregate.Limits{TextBytes: 4 << 10, Depth: 20, Records: 50, AuthResults: 5, Reasons: 5}
	f.Fuzz(func(t *testing.T, document []byte) {
		report, records, err := readWithin(bytes.NewReader(document), limits)
		if err != nil {
			if rejected := new(aggregate.RejectedError); !errors.As(err, &rejected) {
				t.Fatalf("got error %v, want a rejection", err)
			}
			return
		}
		if len(records) > limits.Records || report.Records != len(records) || len(report.Metadata.Errors) > limits.Reasons ||
			len(report.Metadata.OrgName) > limits.TextBytes {
			t.Errorf("got %d records, %d errors and a name of %d bytes, want no more than %+v",
				len(records), len(report.Metadata.Errors), len(report.Metadata.OrgName), limits)
		}
		for _, r := range records {
			if r.Count < 0 || r.Count > maxMessages {
				t.Errorf("got count %d", r.Count)
			}
			if len(r.DKIMResults) > limits.AuthResults || len(r.SPFResults) > limits.AuthResults || len(r.Reasons) > limits.Reasons {
				t.Errorf("got %d and %d results and %d reasons, want no more than %+v",
					len(r.DKIMResults), len(r.SPFResults), len(r.Reasons), limits)
			}
		}
		checkRoundTrip(t, report, records)
	})
}

// oracleReport is a report as read by encoding/xml.
type oracleReport struct {
	Version  string `xml:"version"`
	Metadata struct {
		OrgName      string   `xml:"org_name"`
		Email        string   `xml:"email"`
		ExtraContact string   `xml:"extra_contact_info"`
		ReportID     string   `xml:"report_id"`
		Begin        int64    `xml:"date_range>begin"`
		End          int64    `xml:"date_range>end"`
		Errors       []string `xml:"error"`
		Generator    string   `xml:"generator"`
	} `xml:"report_metadata"`
	Policy struct {
		Domain    string           `xml:"domain"`
		P         aggregate.Policy `xml:"p"`
		SP        aggregate.Policy `xml:"sp"`
		NP        aggregate.Policy `xml:"np"`
		ADKIM     string           `xml:"adkim"`
		ASPF      string           `xml:"aspf"`
		Percent   string           `xml:"pct"`
		FO        string           `xml:"fo"`
		Testing   string           `xml:"testing"`
		Discovery string           `xml:"discovery_method"`
	} `xml:"policy_published"`
	Records []oracleRecord `xml:"record"`
}

type oracleRecord struct {
	Source      string           `xml:"row>source_ip"`
	Count       int64            `xml:"row>count"`
	Disposition aggregate.Policy `xml:"row>policy_evaluated>disposition"`
	DKIM        aggregate.Result `xml:"row>policy_evaluated>dkim"`
	SPF         aggregate.Result `xml:"row>policy_evaluated>spf"`
	Reasons     []struct {
		Type    string `xml:"type"`
		Comment string `xml:"comment"`
	} `xml:"row>policy_evaluated>reason"`
	HeaderFrom   string `xml:"identifiers>header_from"`
	EnvelopeFrom string `xml:"identifiers>envelope_from"`
	EnvelopeTo   string `xml:"identifiers>envelope_to"`
	DKIMResults  []struct {
		Domain      string           `xml:"domain"`
		Selector    string           `xml:"selector"`
		Result      aggregate.Result `xml:"result"`
		HumanResult string           `xml:"human_result"`
	} `xml:"auth_results>dkim"`
	SPFResults []struct {
		Domain      string           `xml:"domain"`
		Scope       string           `xml:"scope"`
		Result      aggregate.Result `xml:"result"`
		HumanResult string           `xml:"human_result"`
	} `xml:"auth_results>spf"`
}

// report converts the result of the oracle.
func (o oracleReport) report() aggregate.Report {
	m, p := o.Metadata, o.Policy
	return aggregate.Report{
		Version: o.Version,
		Metadata: aggregate.Metadata{
			OrgName: strings.TrimSpace(m.OrgName), Email: strings.TrimSpace(m.Email),
			ExtraContact: strings.TrimSpace(m.ExtraContact), ReportID: strings.TrimSpace(m.ReportID),
			Begin: m.Begin, End: m.End, Errors: trimmed(m.Errors), Generator: strings.TrimSpace(m.Generator),
		},
		Policy: aggregate.PublishedPolicy{
			Domain: p.Domain, P: p.P, SP: p.SP, NP: p.NP, ADKIM: p.ADKIM, ASPF: p.ASPF, Percent: p.Percent,
			FailureOptions: p.FO, Testing: p.Testing, DiscoveryMethod: p.Discovery,
		},
		Records: len(o.Records),
	}
}

func (o oracleRecord) record() aggregate.Record {
	addr, _ := netip.ParseAddr(o.Source) // the generator writes only valid addresses
	r := aggregate.Record{
		Addr: addr, Source: o.Source, Count: o.Count, Disposition: o.Disposition, DKIM: o.DKIM, SPF: o.SPF,
		HeaderFrom: o.HeaderFrom, EnvelopeFrom: o.EnvelopeFrom, EnvelopeTo: o.EnvelopeTo,
	}
	for _, reason := range o.Reasons {
		r.Reasons = append(r.Reasons, aggregate.Reason{Type: reason.Type, Comment: strings.TrimSpace(reason.Comment)})
	}
	for _, d := range o.DKIMResults {
		r.DKIMResults = append(r.DKIMResults, aggregate.DKIMResult{
			Domain: d.Domain, Selector: strings.TrimSpace(d.Selector), Result: d.Result, HumanResult: strings.TrimSpace(d.HumanResult),
		})
	}
	for _, s := range o.SPFResults {
		r.SPFResults = append(r.SPFResults, aggregate.SPFResult{
			Domain: s.Domain, Scope: s.Scope, Result: s.Result, HumanResult: strings.TrimSpace(s.HumanResult),
		})
	}
	return r
}

func trimmed(texts []string) []string {
	for i := range texts {
		texts[i] = strings.TrimSpace(texts[i])
	}
	return texts
}

// TestAgreesWithEncodingXML checks that the reader agrees with encoding/xml on
// well-formed reports in any style of XML, and that they survive rendering.
func TestAgreesWithEncodingXML(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		document := wellFormed(rt)
		var oracle oracleReport
		if err := xml.Unmarshal([]byte(document), &oracle); err != nil {
			rt.Fatalf("the generated report is not well formed: %v\n%s", err, document)
		}
		report, records, err := read(strings.NewReader(document))
		if err != nil {
			rt.Fatalf("got error %v\n%s", err, document)
		}
		want := oracle.report()
		want.Content = report.Content // not in the oracle
		if diff := cmp.Diff(want, report, ofDocument); diff != "" {
			rt.Errorf("report (-oracle +reader):\n%s\n%s", diff, document)
		}
		var wantRecords []aggregate.Record
		for _, o := range oracle.Records {
			wantRecords = append(wantRecords, o.record())
		}
		if diff := cmp.Diff(wantRecords, records, ofDocument); diff != "" {
			rt.Errorf("records (-oracle +reader):\n%s\n%s", diff, document)
		}
		checkRoundTrip(rt, report, records)
	})
}

// generated is a document of n records that is generated while it is read, so that it
// does not count in memory measurements.
type generated struct {
	head, tail string
	part       func(i int) string
	n, next    int
	rest       string
}

func (g *generated) Read(p []byte) (int, error) {
	for g.rest == "" {
		switch {
		case g.next == 0:
			g.rest = g.head
		case g.next <= g.n:
			g.rest = g.part(g.next - 1)
		case g.next == g.n+1:
			g.rest = g.tail
		default:
			return 0, io.EOF
		}
		g.next++
	}
	n := copy(p, g.rest)
	g.rest = g.rest[n:]
	return n, nil
}

const sampleHead = `<?xml version="1.0" encoding="UTF-8" ?>
<feedback>
  <version>1.0</version>
  <report_metadata>
    <org_name>receiver.example</org_name>
    <email>dmarc@receiver.example</email>
    <report_id>20260101.17</report_id>
    <date_range>
      <begin>1767225600</begin>
      <end>1767311999</end>
    </date_range>
  </report_metadata>
  <policy_published>
    <domain>example.com</domain>
    <adkim>r</adkim>
    <aspf>r</aspf>
    <p>reject</p>
    <sp>reject</sp>
    <pct>100</pct>
    <fo>1</fo>
  </policy_published>
`

const sampleTail = "</feedback>\n"

// sampleRecord returns a typical record of a large receiver.
func sampleRecord(i int) string {
	return fmt.Sprintf(`  <record>
    <row>
      <source_ip>192.0.%d.%d</source_ip>
      <count>%d</count>
      <policy_evaluated>
        <disposition>none</disposition>
        <dkim>pass</dkim>
        <spf>fail</spf>
      </policy_evaluated>
    </row>
    <identifiers>
      <envelope_from>bounce.sender%d.example</envelope_from>
      <header_from>example.com</header_from>
    </identifiers>
    <auth_results>
      <dkim>
        <domain>example.com</domain>
        <selector>s%d</selector>
        <result>pass</result>
      </dkim>
      <dkim>
        <domain>sender%d.example</domain>
        <selector>k1</selector>
        <result>pass</result>
      </dkim>
      <spf>
        <domain>bounce.sender%d.example</domain>
        <scope>mfrom</scope>
        <result>pass</result>
      </spf>
    </auth_results>
  </record>
`, i/256%256, i%256, i%977+1, i%50, i%7, i%50, i%50)
}

func sample(n int) *generated {
	return &generated{head: sampleHead, tail: sampleTail, part: sampleRecord, n: n}
}

// withHead returns a report with the given record.
func withHead(record string) string {
	return sampleHead + record + sampleTail
}

// edited returns a report with one record in which old is replaced.
func edited(old, piece string) string {
	return strings.Replace(withHead(sampleRecord(0)), old, piece, 1)
}
