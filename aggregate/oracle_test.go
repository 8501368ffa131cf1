package aggregate_test

import (
	"encoding/xml"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dmarcd/dmarcd/aggregate"
)

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
