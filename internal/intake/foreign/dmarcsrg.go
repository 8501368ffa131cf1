package foreign

import (
	"fmt"

	"github.com/dmarcd/dmarcd/aggregate"
)

// The values that dmarc-srg stores as numbers.
var (
	srgDispositions = map[string]aggregate.Policy{"0": aggregate.PolicyReject, "1": aggregate.PolicyQuarantine, "2": aggregate.PolicyNone}
	srgAlignments   = map[string]aggregate.Result{"0": aggregate.ResultFail, "1": "", "2": aggregate.ResultPass}
)

// srgTables reads the tables domains, reports and rptrecords of dmarc-srg; reportlog has
// external_id too. Times are in UTC; lists are JSON.
func srgTables() tables {
	return tables{domainColumn: "fqdn", reportColumn: "policy_p", recordColumn: "rcount", report: srgReport, record: srgRecord}
}

func srgReport(r row) (id string, head aggregate.Report, original []byte, err error) {
	head.Metadata = aggregate.Metadata{
		OrgName: r.text("org"), Email: r.text("email"), ExtraContact: r.text("extra_contact_info"), ReportID: r.text("external_id"),
		Errors: texts(list[text](r, "error_string")),
	}
	head.Policy = aggregate.PublishedPolicy{
		Domain: r.text("domain_id"), ADKIM: r.text("policy_adkim"), ASPF: r.text("policy_aspf"), P: aggregate.Policy(r.text("policy_p")),
		SP: aggregate.Policy(r.text("policy_sp")), NP: aggregate.Policy(r.text("policy_np")), Percent: r.text("policy_pct"), FailureOptions: r.text("policy_fo"),
	}
	err = r.times(&head.Metadata, "begin_time", "end_time")
	return r.text("id"), head, nil, err
}

func srgRecord(r row) (id string, record aggregate.Record, err error) {
	record = aggregate.Record{HeaderFrom: r.text("header_from"), EnvelopeFrom: r.text("envelope_from"), EnvelopeTo: r.text("envelope_to")}
	if record.Count, err = r.count("rcount"); err != nil {
		return "", record, err
	}
	if err := setAddress(&record, r.bytes("ip")); err != nil {
		return "", record, err
	}
	var known [3]bool
	record.Disposition, known[0] = srgDispositions[r.text("disposition")]
	record.DKIM, known[1] = srgAlignments[r.text("dkim_align")]
	record.SPF, known[2] = srgAlignments[r.text("spf_align")]
	if known != [3]bool{true, true, true} {
		return "", record, fmt.Errorf("disposition, dkim_align and spf_align are %.20q, %.20q and %.20q, not numbers from 0 to 2",
			r.text("disposition"), r.text("dkim_align"), r.text("spf_align"))
	}
	record.Reasons = reasons(list[jsonReason](r, "reason"))
	for _, d := range list[authResult](r, "dkim_auth") {
		record.DKIMResults = append(record.DKIMResults, d.dkim())
	}
	for _, s := range list[authResult](r, "spf_auth") {
		record.SPFResults = append(record.SPFResults, s.spf())
	}
	return r.text("report_id"), record, nil
}

// authResult is a DKIM or SPF result in JSON, of several tools.
type authResult struct {
	Domain      text
	Selector    text
	Scope       text
	Result      text
	HumanResult text `json:"human_result"`
}

func (a authResult) dkim() aggregate.DKIMResult {
	return aggregate.DKIMResult{Domain: string(a.Domain), Selector: string(a.Selector), Result: aggregate.Result(a.Result), HumanResult: string(a.HumanResult)}
}

func (a authResult) spf() aggregate.SPFResult {
	return aggregate.SPFResult{Domain: string(a.Domain), Scope: string(a.Scope), Result: aggregate.Result(a.Result), HumanResult: string(a.HumanResult)}
}
