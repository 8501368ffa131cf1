package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/store/db"
	"github.com/dmarcd/dmarcd/internal/store/shape"
)

// visibleReport selects reports with a share of an existing domain, or an unclaimed
// share. $1 is the team.
const visibleReport = `(reports.state <> 'deleted' AND EXISTS (SELECT 1 FROM shares WHERE shares.report_id = reports.id AND shares.team_id = $1 AND ` + visibleShare + `))`

// reportColumns are read by scanReport. $1 is the team. Whether a report is unclaimed is decided by
// its first 100 shares: a hostile report may have very many.
const reportColumns = `reports.id, reports.kind, reports.organization, reports.external_id, reports.domain, reports.begin_at, reports.end_at,
	reports.records, reports.messages, reports.compliant, reports.quirks, reports.damage, reports.intake, reports.genuine, reports.authentication, reports.standing,
	reports.received_at, reports.member, reports.state, reports.held_reason,
	COALESCE((SELECT MAX(first.domain_id) FROM (SELECT shares.domain_id FROM shares
		WHERE shares.team_id = $1 AND shares.report_id = reports.id ORDER BY shares.n LIMIT 100) AS first), 0) = 0`

func scanReport(scan db.Scanner) (dmarcd.Report, error) {
	var r dmarcd.Report
	var begin, end, receivedAt int64
	var quirks, authentication string
	var answer dmarcd.Genuine
	err := scan(&r.ID, &r.Kind, &r.Organization, &r.ExternalID, &r.Domain, &begin, &end,
		&r.Records, &r.Messages, &r.Compliant, &quirks, &r.Damage, &r.Intake, &answer, &authentication, &r.Standing,
		&receivedAt, &r.Member, &r.State, &r.HeldReason, &r.Unclaimed)
	r.Begin, r.End, r.ReceivedAt = fromUnix(begin), fromUnix(end), fromUnix(receivedAt)
	r.Quirks, r.Authentication = parseQuirks(quirks), parseAuthentication(answer, authentication)
	return r, err
}

// ReportFilter selects reports; empty fields match all.
type ReportFilter struct {
	// Domain is a domain of the team.
	Domain string
	// Organization is the name of the reporter, OrganizationPart a substring of it,
	// ignoring case.
	Organization, OrganizationPart string
	// ExternalID is the reporter's id of the report, ExternalIDPart a substring of it.
	ExternalID, ExternalIDPart string
	Kind                       dmarcd.ReportKind
	Quirk                      string
	// Quirks selects reports with any quirk.
	Quirks  bool
	Genuine dmarcd.Genuine
	// Days limits the first day of the report.
	Days dmarcd.Days
	// Unclaimed selects reports with records that belong to no domain of the team.
	Unclaimed bool
	State     dmarcd.ReportState
}

// conditions returns the SQL conditions of the filter, and their arguments from $first
// on. It omits unused conditions: the engines plan a query by its text.
func (f ReportFilter) conditions(team dmarcd.TeamID, first int) (string, []any) {
	var b strings.Builder
	var args []any
	and := func(condition string, values ...any) {
		names := make([]any, len(values))
		for i := range values {
			names[i] = "$" + strconv.Itoa(first+len(args)+i)
		}
		fmt.Fprintf(&b, " AND "+condition, names...)
		args = append(args, values...)
	}
	if f.Domain != "" {
		and(`reports.id IN (SELECT shares.report_id FROM domains
			JOIN shares ON shares.team_id = domains.team_id AND shares.domain_id = domains.id
			WHERE domains.team_id = %s AND domains.name = %s AND domains.deleted_at = 0)`, team, db.Plain(f.Domain))
	}
	if f.Organization != "" {
		and(`lower(reports.organization) = lower(%s)`, db.Plain(f.Organization))
	}
	if f.OrganizationPart != "" { // SQLite's lower changes ASCII letters only
		and(`replace(lower(reports.organization), lower(%s), '') <> lower(reports.organization)`, db.Plain(f.OrganizationPart))
	}
	if f.ExternalID != "" {
		and(`reports.external_id = %s`, keyText(f.ExternalID))
	}
	if f.ExternalIDPart != "" { // reads reports_of_external_id alone
		and(`reports.id IN (SELECT parts.id FROM reports AS parts WHERE parts.team_id = %s AND replace(parts.external_id, %s, '') <> parts.external_id)`,
			team, db.Plain(f.ExternalIDPart))
	}
	if f.Kind != "" {
		and(`reports.kind = %s`, db.Plain(string(f.Kind)))
	}
	if f.Quirk != "" {
		and(`replace(reports.quirks, %s, '') <> reports.quirks`, db.Plain(quirkMark(f.Quirk)))
	}
	if f.Quirks {
		and(`reports.quirks <> ''`)
	}
	if f.Genuine != "" {
		and(`reports.genuine = %s`, db.Plain(string(f.Genuine)))
	}
	if f.Days != (dmarcd.Days{}) {
		from, before := f.Days.Times()
		and(`reports.begin_at >= %s AND reports.begin_at < %s`, from, before)
	}
	if f.Unclaimed {
		and(`EXISTS (SELECT 1 FROM shares WHERE shares.report_id = reports.id AND shares.team_id = %s AND shares.domain_id = 0)`, team)
	}
	if f.State != "" {
		and(`reports.state = %s`, db.Plain(string(f.State)))
	}
	return b.String(), args
}

// Reports returns up to limit reports without Detail, newest first, older than before; 0
// starts at the newest.
func (t *Team) Reports(ctx context.Context, filter ReportFilter, before dmarcd.ReportID, limit int) ([]dmarcd.Report, error) {
	before = cmp.Or(before, math.MaxInt64)
	conditions, args := filter.conditions(t.id, 4)
	args = append([]any{t.id, before, limit}, args...)
	if t.tag != "" && filter.Domain == "" {
		tagged, with := t.tagged(args)
		args = with
		conditions += ` AND EXISTS (SELECT 1 FROM shares JOIN domains ON domains.team_id = $1 AND domains.id = shares.domain_id AND domains.deleted_at = 0` + tagged + `
			WHERE shares.team_id = $1 AND shares.report_id = reports.id)`
	}
	return db.Collect(ctx, t.store, `SELECT `+reportColumns+` FROM reports
		WHERE reports.team_id = $1 AND reports.id < $2 AND `+visibleReport+conditions+`
		ORDER BY reports.id DESC LIMIT $3`, args, scanReport)
}

// ReportsFrom returns up to limit reports with their details, in order of receipt, from this id on:
// fewer if their texts are long, and none at the end. With settled, the list ends before reports
// received since then, and before one that is still being written, so that a later call never finds
// a report between those returned.
func (t *Team) ReportsFrom(ctx context.Context, filter ReportFilter, from dmarcd.ReportID, settled time.Time, limit int) ([]dmarcd.Report, error) {
	conditions, args := filter.conditions(t.id, 4)
	args = append([]any{t.id, from, limit}, args...)
	if !settled.IsZero() {
		n := len(args)
		conditions += fmt.Sprintf(` AND reports.id < $%d AND NOT EXISTS (SELECT 1 FROM reports AS unfinished
			WHERE unfinished.team_id = $1 AND unfinished.state = 'deleted' AND unfinished.id < reports.id AND unfinished.pending_until > $%d)`, n+1, n+2)
		args = append(args, db.FirstID(settled), t.store.options.Now().Unix())
	}
	var reports []dmarcd.Report
	text := 0
	err := t.store.Query(ctx, `SELECT `+reportColumns+`, reports.document FROM reports
		WHERE reports.team_id = $1 AND reports.id >= $2 AND `+visibleReport+conditions+`
		ORDER BY reports.id LIMIT $3`, args, func(scan db.Scanner) error {
		if text > maxRecordsText {
			return errEnough
		}
		var document string
		report, err := scanFullReport(scan, &document)
		reports, text = append(reports, report), text+len(document)
		return err
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return reports, err
}

// scanFullReport is scanReport with the document of the report in the last column.
func scanFullReport(scan db.Scanner, document *string) (dmarcd.Report, error) {
	report, err := scanReport(scan.Before(document))
	if err != nil {
		return report, err
	}
	if report.Detail, err = shape.DecodeDetail(report.Kind, *document); err != nil {
		return report, fmt.Errorf("read report %s: %w", report.ID, err)
	}
	return report, nil
}

// Report returns a report with its detail, or ErrNotFound.
func (t *Team) Report(ctx context.Context, id dmarcd.ReportID) (dmarcd.Report, error) {
	var document string
	return scanFullReport(db.Row(ctx, t.store, `SELECT `+reportColumns+`, reports.document FROM reports
		WHERE reports.team_id = $1 AND reports.id = $2 AND `+visibleReport, t.id, id), &document)
}

// ReportBytes returns the size of the detail of a report, or ErrNotFound.
func (t *Team) ReportBytes(ctx context.Context, id dmarcd.ReportID) (bytes int64, err error) {
	err = t.store.QueryRow(ctx, `SELECT octet_length(reports.document) FROM reports
		WHERE reports.team_id = $1 AND reports.id = $2 AND `+visibleReport, []any{t.id, id}, &bytes)
	return bytes, err
}

// RecordCursor is a position in the records of a report: after this record of this share. The zero
// value is the start.
type RecordCursor struct {
	Share, N int
	// Begun distinguishes the position after the first record of the first share from the start.
	Begun bool
}

// Record is a stored record of a report.
type Record struct {
	Cursor RecordCursor
	// Domain is the team's domain that the record counts for, "" if unclaimed.
	Domain string
	aggregate.Record
}

// maxRecordsText limits the texts of the records or reports in one answer, in bytes.
const maxRecordsText = 4 << 20

// Records returns up to limit records of an aggregate report after the cursor, grouped by
// From domain, and whether there are more; fewer if their texts are long. Addr is not set; Source
// is its text. Records may expire before their report.
func (t *Team) Records(ctx context.Context, id dmarcd.ReportID, after RecordCursor, limit int) (records []Record, more bool, err error) {
	if !after.Begun {
		after.Share, after.N = -1, -1
	}
	text := 0
	// Without + 0 SQLite looks up the records of each share, including those before the cursor.
	err = t.store.Query(ctx, `SELECT records.share, records.n, COALESCE(domains.name, ''), records.source, records.count,
			records.disposition, records.dkim, records.spf, shares.header_from, records.details
		FROM records JOIN shares ON shares.team_id = records.team_id AND shares.report_id = records.report_id AND shares.n = records.share + 0
			JOIN reports ON reports.team_id = shares.team_id AND reports.id = shares.report_id AND reports.state <> 'deleted' AND reports.emptied_at <= 0 AND reports.cold = 0
			LEFT JOIN domains ON domains.id = shares.domain_id AND domains.team_id = shares.team_id
		WHERE records.team_id = $1 AND records.report_id = $2 AND (records.share, records.n) > ($3, $4) AND `+visibleShare+`
		ORDER BY records.share, records.n LIMIT $5`,
		[]any{t.id, id, after.Share, after.N, limit + 1}, func(scan db.Scanner) error {
			if more = len(records) == limit || text > maxRecordsText; more {
				return errEnough
			}
			var document string
			record, err := scanRecordDocument(scan, &document)
			records, text = append(records, record), text+len(document)
			return err
		})
	if errors.Is(err, errEnough) {
		err = nil
	}
	if err != nil || len(records) > 0 {
		return records, more, err
	}
	return t.coldRecords(ctx, id, after, limit)
}

func scanRecord(scan db.Scanner) (Record, error) {
	var text string
	return scanRecordDocument(scan, &text)
}

// scanRecordDocument reads a record, and its document into text.
func scanRecordDocument(scan db.Scanner, text *string) (Record, error) {
	r := Record{Cursor: RecordCursor{Begun: true}}
	err := scan(&r.Cursor.Share, &r.Cursor.N, &r.Domain, &r.Source, &r.Count,
		&r.Disposition, &r.DKIM, &r.SPF, &r.HeaderFrom, text)
	if err != nil {
		return r, err
	}
	return r, shape.DecodeRecord(*text, &r.Record)
}

// formatQuirks writes each quirk on a line, as "\n" name " " count, so that one can be found by
// substring; see quirkMark.
func formatQuirks(quirks []dmarcd.Quirk) string {
	var b strings.Builder
	for _, quirk := range quirks {
		b.WriteString("\n" + quirk.Name + " " + strconv.Itoa(quirk.Count))
	}
	return b.String()
}

// quirkMark returns the substring of formatQuirks that identifies a quirk.
func quirkMark(name string) string { return "\n" + name + " " }

func parseQuirks(text string) []dmarcd.Quirk {
	var quirks []dmarcd.Quirk
	for entry := range strings.SplitSeq(text, "\n") {
		if name, count, ok := strings.Cut(entry, " "); ok {
			n, _ := strconv.Atoi(count) // formatQuirks wrote it
			quirks = append(quirks, dmarcd.Quirk{Name: name, Count: n})
		}
	}
	return quirks
}

// genuine returns the result as stored: GenuineUnknown for none.
func genuine(v dmarcd.Authentication) dmarcd.Genuine {
	if v.Genuine == "" {
		return dmarcd.GenuineUnknown
	}
	return v.Genuine
}

// formatAuthentication writes the evidence of the authentication result, one item per line.
func formatAuthentication(v dmarcd.Authentication) string {
	return strings.Join([]string{line(v.From), line(v.DKIM), line(v.SPF), line(v.DMARC), line(v.Reason), line(v.Domain), line(v.Organization)}, "\n")
}

func parseAuthentication(answer dmarcd.Genuine, text string) dmarcd.Authentication {
	lines := append(strings.Split(text, "\n"), "", "", "", "", "", "", "")
	return dmarcd.Authentication{
		Genuine: answer, From: lines[0], DKIM: lines[1], SPF: lines[2], DMARC: lines[3], Reason: lines[4], Domain: lines[5], Organization: lines[6],
	}
}

// line returns storable text on a single line.
func line(text string) string {
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(db.Plain(text))
}
