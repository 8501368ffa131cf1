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
// report does not contain are "".
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
	// Domain is the team's domain that the record counts for, "" for none.
	Domain string `json:"domain" parquet:"domain,dict"`

	AggregateRecord

	// Report is our id of the report, ReportID the reporter's.
	Report        string `json:"report" parquet:"report,dict"`
	ReportID      string `json:"report_id" parquet:"report_id,dict"`
	ReportState   string `json:"report_state" parquet:"report_state,dict"`
	Organization  string `json:"organization" parquet:"organization,dict"`
	Email         string `json:"email" parquet:"email,dict"`
	ExtraContact  string `json:"extra_contact_info" parquet:"extra_contact_info,dict"`
	Generator     string `json:"generator" parquet:"generator,dict"`
	Intake        string `json:"intake" parquet:"intake,dict"`
	Genuine       string `json:"genuine" parquet:"genuine,dict"`
	Authenticated string `json:"authenticated_domain" parquet:"authenticated_domain,dict"`

	PolicyDomain    string `json:"policy_domain" parquet:"policy_domain,dict"`
	P               string `json:"policy_p" parquet:"policy_p,dict"`
	SP              string `json:"policy_sp" parquet:"policy_sp,dict"`
	NP              string `json:"policy_np" parquet:"policy_np,dict"`
	ADKIM           string `json:"policy_adkim" parquet:"policy_adkim,dict"`
	ASPF            string `json:"policy_aspf" parquet:"policy_aspf,dict"`
	Percent         string `json:"policy_pct" parquet:"policy_pct,dict"`
	FailureOptions  string `json:"policy_fo" parquet:"policy_fo,dict"`
	Testing         string `json:"policy_testing" parquet:"policy_testing,dict"`
	DiscoveryMethod string `json:"policy_discovery_method" parquet:"policy_discovery_method,dict"`
	PSD             string `json:"policy_psd" parquet:"policy_psd,dict"`
}

// NewExportedColumns returns the columns of a record with that id that counts for a domain.
func NewExportedColumns(id, domain string, report *dmarcd.Report, record aggregate.Record) ExportedColumns {
	c := ExportedColumns{
		ID: id, Domain: domain, AggregateRecord: NewAggregateRecord(record),
		Report: report.ID.String(), ReportID: report.ExternalID, ReportState: string(report.State), Organization: report.Organization,
		Intake: string(report.Intake), Genuine: genuine(report.Authentication), Authenticated: report.Authentication.Domain, PolicyDomain: report.Domain,
	}
	if detail := report.Detail.Aggregate; detail != nil {
		m, p := detail.Report.Metadata, detail.Report.Policy
		c.Email, c.ExtraContact, c.Generator = m.Email, m.ExtraContact, m.Generator
		c.P, c.SP, c.NP, c.ADKIM, c.ASPF = string(p.P), string(p.SP), string(p.NP), p.ADKIM, p.ASPF
		c.Percent, c.FailureOptions, c.Testing, c.DiscoveryMethod, c.PSD = p.Percent, p.FailureOptions, p.Testing, p.DiscoveryMethod, p.PSD
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
