package wire

import (
	"github.com/dmarcd/dmarcd"
)

// StoredReport is a report in a list, with the members that all kinds have. Missing values are
// null.
type StoredReport struct {
	ID           string  `json:"id"`
	Kind         string  `json:"kind"`
	Organization *string `json:"organization"`
	ReportID     *string `json:"report_id"`
	Domain       *string `json:"domain"`
	Begin        *string `json:"begin"`
	End          *string `json:"end"`
	Records      int     `json:"records"`
	// A TLS report counts sessions, others messages.
	Messages       *int64   `json:"messages"`
	Compliant      *int64   `json:"compliant"`
	Sessions       *int64   `json:"sessions"`
	FailedSessions *int64   `json:"failed_sessions"`
	Quirks         []string `json:"quirks"`
	Damage         *string  `json:"damage"` // null if the container is intact
	Intake         string   `json:"intake"`
	Genuine        string   `json:"genuine"`
	// Authenticated is the domain that the mail was authenticated as, null for none.
	Authenticated *string `json:"authenticated_domain"`
	ReceivedAt    string  `json:"received_at"`
	Member        Text    `json:"member"`
	Replaced      bool    `json:"replaced"`
	Counted       bool    `json:"counted"`
	Unclaimed     bool    `json:"unclaimed"`
	HeldReason    *string `json:"held_reason"` // null where the report is not held
}

// NewStoredReport returns the shape of a report in a list.
func NewStoredReport(r dmarcd.Report) StoredReport {
	messages, sessions := counted(r.Kind, r.Messages)
	compliant, _ := counted(r.Kind, r.Compliant)
	_, failed := counted(r.Kind, r.Messages-r.Compliant)
	return StoredReport{
		ID: r.ID.String(), Kind: string(r.Kind), Organization: optionalText(r.Organization), ReportID: optionalText(r.ExternalID),
		Domain: optionalText(r.Domain), Begin: optionalTime(r.Begin), End: optionalTime(r.End),
		Records: r.Records, Messages: messages, Compliant: compliant, Sessions: sessions, FailedSessions: failed, Quirks: quirkNames(r.Quirks), Damage: optionalText(r.Damage),
		Intake: string(r.Intake), Genuine: genuine(r.Authentication), Authenticated: optionalText(r.Authentication.Domain),
		ReceivedAt: Time(r.ReceivedAt), Member: Text(r.Member), Replaced: r.State == dmarcd.ReportReplaced,
		Counted: r.State == dmarcd.ReportCounted, Unclaimed: r.Unclaimed, HeldReason: optionalText(r.HeldReason),
	}
}

// counted returns a number of a report as one of messages, or of sessions if it is a TLS report. The
// other is nil.
func counted(kind dmarcd.ReportKind, number int64) (messages, sessions *int64) {
	if kind == dmarcd.KindTLS {
		return nil, &number
	}
	return &number, nil
}

// FullReport is a report with its content. Next is the cursor of the records after RecordList,
// null at the end.
type FullReport struct {
	StoredReport
	Authentication Authentication `json:"authentication"`
	Report         any            `json:"report"` // an AggregateReport, FailureReport or TLSReport; null after its retention has ended
	RecordList     []StoredRecord `json:"record_list"`
	Next           *string        `json:"next"`
}

// NewFullReport returns the shape of a report with its first records.
func NewFullReport(r dmarcd.Report, records Page[StoredRecord]) FullReport {
	return FullReport{
		StoredReport: NewStoredReport(r), Authentication: newAuthentication(r.Authentication), Report: NewReport("", r),
		RecordList: records.Items, Next: records.Next,
	}
}

// StoredRecord is a record of a report, with the domain of the team that it counts for, null if
// it is not counted.
type StoredRecord struct {
	ForDomain *string `json:"for_domain"`
	AggregateRecord
}

// NewStoredRecord returns the shape of a record that counts for a domain; "" becomes null.
func NewStoredRecord(domain string, record AggregateRecord) StoredRecord {
	return StoredRecord{ForDomain: optionalText(domain), AggregateRecord: record}
}

// Authentication is the authentication result of a mail. Members that were not checked are null.
type Authentication struct {
	Genuine string  `json:"genuine"`
	From    *string `json:"from"`
	DKIM    *string `json:"dkim"`
	SPF     *string `json:"spf"`
	DMARC   *string `json:"dmarc"`
	Reason  *string `json:"reason"`
}

func newAuthentication(v dmarcd.Authentication) Authentication {
	return Authentication{
		Genuine: genuine(v), From: optionalText(v.From), DKIM: optionalText(v.DKIM), SPF: optionalText(v.SPF),
		DMARC: optionalText(v.DMARC), Reason: optionalText(v.Reason),
	}
}

func genuine(v dmarcd.Authentication) string {
	if v.Genuine == "" {
		return string(dmarcd.GenuineUnknown)
	}
	return string(v.Genuine)
}

// Rejected is a rejected item.
type Rejected struct {
	ID         string  `json:"id"`
	Kind       *string `json:"kind"` // null if it resembles no known kind
	Reason     string  `json:"reason"`
	Intake     string  `json:"intake"`
	Name       *string `json:"name"` // of the file, null if unnamed
	Member     Text    `json:"member"`
	Genuine    string  `json:"genuine"`
	ReceivedAt string  `json:"received_at"`
	Size       int64   `json:"size"` // 0 after the original was deleted
}

// NewRejected returns the shape of a rejected item.
func NewRejected(r dmarcd.Rejected) Rejected {
	return Rejected{
		ID: r.ID.String(), Kind: optionalText(r.Kind), Reason: r.Reason, Intake: string(r.Intake), Name: optionalText(r.Name),
		Member: Text(r.Member), Genuine: genuine(r.Authentication), ReceivedAt: Time(r.ReceivedAt), Size: r.Size,
	}
}

// Receipts holds the receipts of one upload.
type Receipts struct {
	Items []Receipt `json:"items"`
}

// NewReceipts returns the shape of receipts.
func NewReceipts(receipts []dmarcd.Receipt) Receipts {
	shape := Receipts{Items: make([]Receipt, len(receipts))}
	for i, receipt := range receipts {
		shape.Items[i] = newReceipt(receipt)
	}
	return shape
}

// Receipt is the result of one report or rejected item. Unknown members of a rejected item are
// null or 0.
type Receipt struct {
	Kind         *string  `json:"kind"`
	Status       string   `json:"status"`
	Reason       *string  `json:"reason"` // null where it was not rejected
	ReportID     *string  `json:"report_id"`
	Domain       *string  `json:"domain"`
	Records      int      `json:"records"`
	Messages     *int64   `json:"messages"`
	Sessions     *int64   `json:"sessions"` // of a TLS report, which counts no messages
	Quirks       []string `json:"quirks"`
	ID           *string  `json:"id"`
	Organization *string  `json:"organization"`
	// Member is the location in the upload, null for the whole.
	Member Text `json:"member"`
}

func newReceipt(r dmarcd.Receipt) Receipt {
	messages, sessions := counted(r.Kind, r.Messages)
	shape := Receipt{
		Kind: optionalText(r.Kind), Status: string(r.Status), Reason: optionalText(r.Reason), ReportID: optionalText(r.ExternalID),
		Domain: optionalText(r.Domain), Records: r.Records, Messages: messages, Sessions: sessions, Quirks: quirkNames(r.Quirks),
		Organization: optionalText(r.Organization), Member: Text(r.Member),
	}
	if r.ID != 0 {
		shape.ID = optionalText(r.ID.String())
	}
	return shape
}

// quirkNames returns a list that is never null.
func quirkNames(quirks []dmarcd.Quirk) []string {
	names := make([]string, len(quirks))
	for i, quirk := range quirks {
		names[i] = quirk.Name
	}
	return names
}
