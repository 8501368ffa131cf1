package foreign

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd/aggregate"
)

// dmarctsTables reads the tables report and rptrecord of dmarcts-report-parser. If a report has
// its original, as XML or in gzip and base64, that is used.
func dmarctsTables() tables {
	return tables{reportColumn: "reportid", recordColumn: "rcount", report: dmarctsReport, record: dmarctsRecord}
}

func dmarctsReport(r row) (id string, head aggregate.Report, original []byte, err error) {
	head.Metadata = aggregate.Metadata{
		OrgName: r.text("org"), Email: r.text("email"), ExtraContact: r.text("extra_contact_info"), ReportID: r.text("reportid"),
	}
	head.Policy = aggregate.PublishedPolicy{
		Domain: r.text("domain"), ADKIM: r.text("policy_adkim"), ASPF: r.text("policy_aspf"), P: aggregate.Policy(r.text("policy_p")),
		SP: aggregate.Policy(r.text("policy_sp")), Percent: r.text("policy_pct"),
	}
	err = r.times(&head.Metadata, "mindate", "maxdate")
	return r.text("serial"), head, dmarctsOriginal(r.bytes("raw_xml")), err
}

// dmarctsOriginal returns the XML or gzip data of raw_xml, nil if there is none.
func dmarctsOriginal(raw []byte) []byte {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] == '<' {
		return raw
	}
	packed := make([]byte, base64.StdEncoding.DecodedLen(len(raw)))
	n, err := base64.StdEncoding.Decode(packed, raw)
	if err != nil || !bytes.HasPrefix(packed, []byte{0x1f, 0x8b}) {
		return nil
	}
	return packed[:n]
}

func dmarctsRecord(r row) (id string, record aggregate.Record, err error) {
	known := func(column string) string {
		if text := r.text(column); text != "unknown" {
			return text
		}
		return ""
	}
	record = aggregate.Record{
		HeaderFrom: r.text("identifier_hfrom"), Disposition: aggregate.Policy(known("disposition")),
		DKIM: aggregate.Result(known("dkim_align")), SPF: aggregate.Result(known("spf_align")),
	}
	if record.Count, err = r.count("rcount"); err != nil {
		return "", record, err
	}
	if err := dmarctsAddress(&record, r); err != nil {
		return "", record, err
	}
	for reason := range strings.SplitSeq(r.text("reason"), "/") {
		if reason != "" {
			record.Reasons = append(record.Reasons, aggregate.Reason{Type: reason})
		}
	}
	domains, result := dmarctsResults(r.text("dkimdomain"), known("dkimresult"))
	for _, domain := range domains {
		record.DKIMResults = append(record.DKIMResults, aggregate.DKIMResult{Domain: domain, Result: result})
	}
	domains, result = dmarctsResults(r.text("spfdomain"), known("spfresult"))
	for _, domain := range domains {
		record.SPFResults = append(record.SPFResults, aggregate.SPFResult{Domain: domain, Result: result})
	}
	return r.text("serial"), record, nil
}

// dmarctsResults returns the domains of a list and the result of each. A pass is that of one
// of them, and which one is unknown.
func dmarctsResults(joined, result string) ([]string, aggregate.Result) {
	var domains []string
	for domain := range strings.SplitSeq(joined, "/") {
		if domain != "" {
			domains = append(domains, domain)
		}
	}
	if len(domains) > 1 && result == string(aggregate.ResultPass) {
		result = ""
	}
	return domains, aggregate.Result(result)
}

// dmarctsAddress sets the source: ip is an IPv4 address as a number, ip6 has 16 bytes.
func dmarctsAddress(record *aggregate.Record, r row) error {
	if packed := r.bytes("ip6"); len(packed) > 0 {
		return setAddress(record, packed)
	}
	number, err := strconv.ParseUint(r.text("ip"), 10, 32)
	if err != nil {
		return errors.New("it has no address")
	}
	return setAddress(record, binary.BigEndian.AppendUint32(nil, uint32(number)))
}
