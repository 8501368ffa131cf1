package wire

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
)

// ExportedRecord is one row of an export: a record of an aggregate report, with data of its
// report. Its members are the columns of docs/export.md; new ones are only added. Texts that the
// report does not contain are null.
type ExportedRecord struct {
	ExportedColumns

	// Day is the day that the record counts on.
	Day        string `json:"day"`
	Begin      string `json:"begin"`
	End        string `json:"end"`
	ReceivedAt string `json:"received_at"`
}

// ExportedColumns are the columns that are the same in all formats.
type ExportedColumns struct {
	// ID is unique in the team, and the cursor of an export.
	ID string `json:"id" parquet:"id"`
	// Domain is the team's domain that the record counts for, null for none.
	Domain Text `json:"domain" parquet:"domain,optional,dict"`

	AggregateRecord

	// Report is our id of the report, ReportID the reporter's.
	Report        string `json:"report" parquet:"report,dict"`
	ReportID      Text   `json:"report_id" parquet:"report_id,optional,dict"`
	ReportState   string `json:"report_state" parquet:"report_state,dict"`
	Organization  Text   `json:"organization" parquet:"organization,optional,dict"`
	Email         Text   `json:"email" parquet:"email,optional,dict"`
	ExtraContact  Text   `json:"extra_contact_info" parquet:"extra_contact_info,optional,dict"`
	Generator     Text   `json:"generator" parquet:"generator,optional,dict"`
	Intake        string `json:"intake" parquet:"intake,dict"`
	Genuine       string `json:"genuine" parquet:"genuine,dict"`
	Authenticated Text   `json:"authenticated_domain" parquet:"authenticated_domain,optional,dict"`

	PolicyDomain    string `json:"policy_domain" parquet:"policy_domain,dict"`
	P               Text   `json:"policy_p" parquet:"policy_p,optional,dict"`
	SP              Text   `json:"policy_sp" parquet:"policy_sp,optional,dict"`
	NP              Text   `json:"policy_np" parquet:"policy_np,optional,dict"`
	ADKIM           Text   `json:"policy_adkim" parquet:"policy_adkim,optional,dict"`
	ASPF            Text   `json:"policy_aspf" parquet:"policy_aspf,optional,dict"`
	Percent         Text   `json:"policy_pct" parquet:"policy_pct,optional,dict"`
	FailureOptions  Text   `json:"policy_fo" parquet:"policy_fo,optional,dict"`
	Testing         Text   `json:"policy_testing" parquet:"policy_testing,optional,dict"`
	DiscoveryMethod Text   `json:"policy_discovery_method" parquet:"policy_discovery_method,optional,dict"`
	PSD             Text   `json:"policy_psd" parquet:"policy_psd,optional,dict"`
}

// NewExportedColumns returns the columns of a record with that id that counts for a domain.
func NewExportedColumns(id, domain string, report *dmarcd.Report, record aggregate.Record) ExportedColumns {
	c := ExportedColumns{
		ID: id, Domain: Text(domain), AggregateRecord: NewAggregateRecord(record),
		Report: report.ID.String(), ReportID: Text(report.ExternalID), ReportState: string(report.State), Organization: Text(report.Organization),
		Intake: string(report.Intake), Genuine: genuine(report.Authentication), Authenticated: Text(report.Authentication.Domain), PolicyDomain: report.Domain,
	}
	if detail := report.Detail.Aggregate; detail != nil {
		m, p := detail.Report.Metadata, detail.Report.Policy
		c.Email, c.ExtraContact, c.Generator = Text(m.Email), Text(m.ExtraContact), Text(m.Generator)
		c.P, c.SP, c.NP, c.ADKIM, c.ASPF = Text(p.P), Text(p.SP), Text(p.NP), Text(p.ADKIM), Text(p.ASPF)
		c.Percent, c.FailureOptions, c.Testing = Text(p.Percent), Text(p.FailureOptions), Text(p.Testing)
		c.DiscoveryMethod, c.PSD = Text(p.DiscoveryMethod), Text(p.PSD)
	}
	return c
}

// NewExportedRecord returns a row of an export.
func NewExportedRecord(columns ExportedColumns, report *dmarcd.Report) ExportedRecord {
	return ExportedRecord{
		ExportedColumns: columns, Day: dmarcd.DayOf(report.Begin).String(),
		Begin: Time(report.Begin), End: Time(report.End), ReceivedAt: Time(report.ReceivedAt),
	}
}

// FormatRecordID returns the id of a record: the id of its report, its share and its number.
func FormatRecordID(report dmarcd.ReportID, share, n int) string {
	return fmt.Sprintf("%s.%d.%d", report, share, n)
}

// ParseRecordID is the inverse of FormatRecordID; other texts are an *dmarcd.InvalidError.
func ParseRecordID(text string) (report dmarcd.ReportID, share, n int, err error) {
	parts := strings.Split(text, ".")
	if len(parts) == 3 {
		report, err = dmarcd.ParseReportID(parts[0])
		s, wrongShare := strconv.ParseInt(parts[1], 10, 32)
		last, wrongN := strconv.ParseInt(parts[2], 10, 32)
		share, n = int(s), int(last)
		if err == nil && wrongShare == nil && wrongN == nil && s >= 0 && last >= 0 && FormatRecordID(report, share, n) == text {
			return report, share, n, nil
		}
	}
	return 0, 0, 0, &dmarcd.InvalidError{Field: "after", Message: "The position must be the id of an exported record, such as rep_1f3k.0.12."}
}
