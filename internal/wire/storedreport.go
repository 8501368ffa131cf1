package wire

import "github.com/dmarcd/dmarcd"

// StoredReport is a report in a list: the members that all kinds have. What the
// report does not state is null.
type StoredReport struct {
	ID           string   `json:"id"`
	Kind         string   `json:"kind"`
	Organization *string  `json:"organization"`
	ReportID     *string  `json:"report_id"`
	Domain       *string  `json:"domain"`
	Begin        *string  `json:"begin"`
	End          *string  `json:"end"`
	Records      int      `json:"records"`
	Messages     int64    `json:"messages"`
	Compliant    int64    `json:"compliant"`
	Quirks       []string `json:"quirks"`
	Damage       *string  `json:"damage"` // null where nothing is wrong with the container
	Intake       string   `json:"intake"`
	Genuine      string   `json:"genuine"`
	// Authenticated is the domain that the mail was authenticated as, null for none.
	Authenticated *string `json:"authenticated_domain"`
	ReceivedAt    string  `json:"received_at"`
	Member        string  `json:"member"`
	Replaced      bool    `json:"replaced"`
	Counted       bool    `json:"counted"`
	HeldReason    *string `json:"held_reason"` // null where the report is not held
}

// NewStoredReport returns the shape of a report in a list.
func NewStoredReport(r dmarcd.Report) StoredReport {
	return StoredReport{
		ID: r.ID.String(), Kind: string(r.Kind), Organization: optionalText(r.Organization), ReportID: optionalText(r.ExternalID),
		Domain: optionalText(r.Domain), Begin: optionalTime(r.Begin), End: optionalTime(r.End),
		Records: r.Records, Messages: r.Messages, Compliant: r.Compliant, Quirks: quirkNames(r.Quirks), Damage: optionalText(r.Damage),
		Intake: string(r.Intake), Genuine: genuine(r.Verdict), Authenticated: optionalText(r.Verdict.Domain),
		ReceivedAt: Time(r.ReceivedAt), Member: r.Member, Replaced: r.State == dmarcd.ReportReplaced,
		Counted: r.State == dmarcd.ReportCounted, HeldReason: optionalText(r.HeldReason),
	}
}

// FullReport is a report with all that it says. Next leads to the records after
// those of RecordList, and is null where there are no more.
type FullReport struct {
	StoredReport
	Verdict    Verdict        `json:"verdict"`
	Report     any            `json:"report"` // an AggregateReport, FailureReport or TLSReport; null once it is past its time
	RecordList []StoredRecord `json:"record_list"`
	Next       *string        `json:"next"`
}

// NewFullReport returns the shape of a report with the first of its records.
func NewFullReport(r dmarcd.Report, records Page[StoredRecord]) FullReport {
	return FullReport{
		StoredReport: NewStoredReport(r), Verdict: newVerdict(r.Verdict), Report: NewReport("", r),
		RecordList: records.Items, Next: records.Next,
	}
}

// StoredRecord is a record of a report, with the domain of the team that it counts
// for, null where it counts for none.
type StoredRecord struct {
	ForDomain *string `json:"for_domain"`
	AggregateRecord
}

// NewStoredRecord returns the shape of a record that counts for a domain; "" is none.
func NewStoredRecord(domain string, record AggregateRecord) StoredRecord {
	return StoredRecord{ForDomain: optionalText(domain), AggregateRecord: record}
}

// Verdict is the authentication result of a mail. Members that were not checked are null.
type Verdict struct {
	Genuine string  `json:"genuine"`
	From    *string `json:"from"`
	DKIM    *string `json:"dkim"`
	SPF     *string `json:"spf"`
	DMARC   *string `json:"dmarc"`
	Reason  *string `json:"reason"`
}

func newVerdict(v dmarcd.Verdict) Verdict {
	return Verdict{
		Genuine: genuine(v), From: optionalText(v.From), DKIM: optionalText(v.DKIM), SPF: optionalText(v.SPF),
		DMARC: optionalText(v.DMARC), Reason: optionalText(v.Reason),
	}
}

func genuine(v dmarcd.Verdict) string {
	if v.Genuine == "" {
		return string(dmarcd.GenuineUnknown)
	}
	return string(v.Genuine)
}

// Rejected is a rejected item.
type Rejected struct {
	ID         string  `json:"id"`
	Kind       *string `json:"kind"` // null where it looks like nothing that is known
	Reason     string  `json:"reason"`
	Intake     string  `json:"intake"`
	Name       *string `json:"name"` // of the file, null where it has none
	Member     string  `json:"member"`
	Genuine    string  `json:"genuine"`
	ReceivedAt string  `json:"received_at"`
	Size       int64   `json:"size"` // 0 once the bytes are gone
}

// NewRejected returns the shape of a rejected item.
func NewRejected(r dmarcd.Rejected) Rejected {
	return Rejected{
		ID: r.ID.String(), Kind: optionalText(r.Kind), Reason: r.Reason, Intake: string(r.Intake), Name: optionalText(r.Name),
		Member: r.Member, Genuine: genuine(r.Verdict), ReceivedAt: Time(r.ReceivedAt), Size: r.Size,
	}
}
