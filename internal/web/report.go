package web

import (
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/ui"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// ReportDocument is a report for display.
type ReportDocument struct {
	dmarcd.Report
	// Facts are the metadata and the policy of the report, in order.
	Facts []insight.Fact
	// Records are the records of an aggregate report, up to the limit; Next is the cursor
	// after them, "" at the end.
	Records []aggregate.Record
	Next    string
	// Policies are the policies of a TLS report.
	Policies []wire.TLSPolicy
}

type reportView struct {
	Report   ReportDocument
	Table    ui.Table
	Policies ui.Table
	Failures ui.Table
	Original string
	Actions  []ui.Action
	Pager    ui.Pager
}

const recordsPerPage = 250

// backToReports links to the list that contains the report: that of the domain in the
// query, or that of the team.
func (c *call) backToReports() ui.Link {
	if domain := normalDomain(c.r.URL.Query().Get("domain")); domain != "" {
		return ui.Link{Text: "Reports of " + domain, Href: c.link(domainPath(domain) + "/reports")}
	}
	return ui.Link{Text: "Reports", Href: c.link(Prefix + "/reports")}
}

func (s *Web) report(c *call, id dmarcd.ReportID) error {
	query := c.r.URL.Query()
	after, limit := query.Get("after"), recordsPerPage
	if c.wantsCSV("records") {
		after, limit = "", maxCSVRows
	}
	found, err := c.reportDocument(id, after, limit)
	if err != nil {
		return err
	}
	path := Prefix + "/reports/" + found.ID.String()
	view := reportView{
		Report: found, Original: path + "/original", Actions: reportActions(c, found.Report, path), Pager: ui.CursorPager(path, query, found.Next),
		Table:    recordTable(found.Records, path+"?csv=records"),
		Policies: policyTable(found.Policies, path+"?csv=policies"), Failures: failureTable(found.Policies, path+"?csv=failures"),
	}
	return c.render(http.StatusOK, Page{
		Template: "report", Title: "Report by " + found.Organization, Section: "Reports",
		Trail: []ui.Link{c.backToReports()},
	}, view, view.Table, view.Policies, view.Failures)
}

// reportByID returns a report, and reserves its memory.
func (c *call) reportByID(id dmarcd.ReportID) (dmarcd.Report, error) {
	if c.mail.reserved == nil {
		ctx, release, err := c.team.ReserveReport(c.r.Context(), id)
		if err != nil {
			return dmarcd.Report{}, err
		}
		c.r, c.mail.reserved = c.r.WithContext(ctx), release
	}
	return c.team.Report(c.r.Context(), id)
}

// reportDocument returns a report with up to limit records after a cursor.
func (c *call) reportDocument(id dmarcd.ReportID, after string, limit int) (ReportDocument, error) {
	position, err := parseRecordCursor(after)
	if err != nil {
		return ReportDocument{}, err
	}
	report, err := c.reportByID(id)
	if err != nil {
		return ReportDocument{}, err
	}
	document := newDocument(report)
	if report.Kind != dmarcd.KindAggregate {
		return document, nil
	}
	more := true
	for part := 0; more && len(document.Records) < limit && part < maxRecordParts; part++ {
		var records []service.Record
		if records, more, err = c.team.Records(c.r.Context(), report.ID, position, limit-len(document.Records)); err != nil {
			return ReportDocument{}, err
		}
		for _, stored := range records {
			document.Records = append(document.Records, stored.Record)
			position = stored.Cursor
		}
	}
	if more {
		document.Next = wire.FormatRecordCursor(position.Share, position.N)
	}
	return document, nil
}

// maxRecordParts limits the memory of records with long texts, of which few are read at once.
const maxRecordParts = 16

func policyTable(policies []wire.TLSPolicy, csv string) ui.Table {
	t := ui.Table{
		ID: "policies", Caption: "Policies", CSV: csv,
		Columns: []ui.Column{
			{Title: "Policy", Wide: true, Note: "Text"},
			{Title: "Domain"},
			{Title: "Mail servers", Wide: true},
			{Title: "Successful", Numeric: true},
			{Title: "Failed", Numeric: true},
		},
	}
	for _, p := range policies {
		t.Rows = append(t.Rows, []ui.Cell{
			ui.Text(p.Type).Noted(strings.Join(p.Strings, " ")), ui.Text(p.Domain), ui.Text(strings.Join(p.MXHosts, ", ")), ui.Count(p.Successful), ui.Count(p.Failed),
		})
	}
	return t
}

func failureTable(policies []wire.TLSPolicy, csv string) ui.Table {
	t := ui.Table{
		ID: "failures", Caption: "Failed sessions", CSV: csv,
		Columns: []ui.Column{
			{Title: "Policy"},
			{Title: "Domain"},
			{Title: "Result"},
			{Title: "Server", Wide: true},
			{Title: "Sent from"},
			{Title: "Sessions", Numeric: true},
		},
		Empty: ui.Empty{Title: "No session failed", Advice: "Every session was encrypted as the policy asks for.", Action: ui.Link{}},
	}
	for _, p := range policies {
		for _, f := range p.DetailList {
			t.Rows = append(t.Rows, []ui.Cell{
				ui.Text(p.Type), ui.Text(p.Domain), {Kind: ui.CellBadge, Text: f.ResultType, Tone: "bad"}, ui.Code(f.ReceivingMXHostname), ui.Code(f.SendingMTAIP), ui.Count(f.FailedSessions),
			})
		}
	}
	return t
}

func (s *Web) original(c *call, id dmarcd.ReportID) error {
	report, err := c.reportByID(id)
	if err != nil {
		return err
	}
	original, err := c.team.ReportOriginal(c.r.Context(), report.ID)
	if err != nil {
		return err
	}
	return c.download(report.ID.String(), original)
}

// download sends untrusted content, always as a file.
func (c *call) download(name string, original dmarcd.StoredOriginal) error {
	h := c.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.FormatInt(original.Size, 10))
	if c.r.Method == http.MethodHead {
		return nil
	}
	if _, err := io.Copy(c.w, intake.Unpack(original.Packed)); err != nil {
		panic(http.ErrAbortHandler) // a truncated file must not look complete
	}
	return nil
}
