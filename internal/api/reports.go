package api

import (
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func (a *API) domainSummary(c *call) error {
	days := c.query.days()
	if c.query.err != nil {
		return c.query.err
	}
	sum, err := c.service.DomainSummary(c.r.Context(), c.params.Get("domain"), days)
	if err != nil {
		return missing(err, errNoSuchDomain)
	}
	return c.writeCacheable(wire.NewSummary(sum))
}

func (a *API) teamSummary(c *call) error {
	days := c.query.days()
	if c.query.err != nil {
		return c.query.err
	}
	sum, err := c.service.Summary(c.r.Context(), days)
	if err != nil {
		return err
	}
	return c.writeCacheable(wire.NewSummary(sum))
}

func (a *API) listReports(c *call) error {
	limit, after := c.query.cursor()
	filter, team := readReportFilter(c.query), tagged(c)
	if err := c.reserveRows(limit); err != nil {
		return err
	}
	reports, err := team.Reports(c.r.Context(), filter, dmarcd.ReportID(after.ID), limit+1)
	if err != nil {
		return err
	}
	return writePage(c, wire.NewPage(reports, limit, func(r dmarcd.Report) string {
		return wire.FormatCursor(r.ReceivedAt, int64(r.ID))
	}, wire.NewStoredReport))
}

func readReportFilter(q *query) service.ReportFilter {
	return service.ReportFilter{
		Days: q.days(), Domain: q.domain(),
		Organization: q.text("organization"), ExternalID: q.text("report_id"), Quirk: q.text("quirk"),
		Kind:      word(q, "kind", dmarcd.ReportKinds()...),
		Genuine:   word(q, "genuine", dmarcd.GenuineYes, dmarcd.GenuineNo, dmarcd.GenuineUnknown),
		State:     word(q, "state", dmarcd.ReportStates()...),
		Unclaimed: q.flag("unclaimed"),
	}
}

// namedReport returns the report of the path.
func namedReport(c *call) (dmarcd.Report, error) {
	id, err := reservedReport(c)
	if err != nil {
		return dmarcd.Report{}, err
	}
	report, err := c.service.Report(c.r.Context(), id)
	return report, missing(err, errNoSuchReport)
}

// reservedReport returns the id of the report of the path, and reserves the memory for a response
// with it.
func reservedReport(c *call) (dmarcd.ReportID, error) {
	id, err := dmarcd.ParseReportID(c.params.Get("id"))
	if err != nil {
		return 0, errNoSuchReport
	}
	ctx, release, err := c.service.ReserveReport(c.r.Context(), id)
	if err != nil {
		return 0, missing(err, errNoSuchReport)
	}
	c.r, c.release = c.r.WithContext(ctx), release
	return id, nil
}

func (a *API) getReport(c *call) error {
	report, err := namedReport(c)
	if err != nil {
		return err
	}
	records, err := readRecords(c, report.ID, service.RecordCursor{}, maxPage)
	if err != nil {
		return err
	}
	return c.writeCacheable(wire.NewFullReport(report, records))
}

func (a *API) listRecords(c *call) error {
	limit, text := c.query.part()
	var after service.RecordCursor
	if text != "" {
		var err error
		after.Begun = true
		after.Share, after.N, err = wire.ParseRecordCursor(text)
		c.query.fail("after", err)
	}
	if c.query.err != nil {
		return c.query.err
	}
	report, err := namedReport(c)
	if err != nil {
		return err
	}
	page, err := readRecords(c, report.ID, after, limit)
	if err != nil {
		return err
	}
	return c.writeCacheable(page)
}

// pathRecords is the list of the records of a report, which the report itself begins.
const pathRecords = "/insights/reports/{id}/records"

func readRecords(c *call, id dmarcd.ReportID, after service.RecordCursor, limit int) (wire.Page[wire.StoredRecord], error) {
	if err := c.awaitTurn(limit); err != nil {
		return wire.Page[wire.StoredRecord]{}, err
	}
	records, more, err := c.service.Records(c.r.Context(), id, after, limit)
	if err != nil {
		return wire.Page[wire.StoredRecord]{}, err
	}
	page := wire.Page[wire.StoredRecord]{Items: []wire.StoredRecord{}}
	for _, r := range records {
		page.Items = append(page.Items, wire.NewStoredRecord(r.Domain, wire.NewAggregateRecord(r.Record)))
	}
	if more {
		last := records[len(records)-1].Cursor
		page.Next = new(listMark(c.teamID, pathRecords, c.params) + wire.FormatRecordCursor(last.Share, last.N))
	}
	return page, nil
}

// setCounted includes a report in the counters or excludes it.
func (a *API) setCounted(c *call) error {
	body := readObject(c, "counted", `{"counted": false}`)
	counted := body.flag("counted")
	if body.err != nil {
		return body.err
	}
	id, err := reservedReport(c)
	if err != nil {
		return err
	}
	report, err := c.service.SetCounted(c.r.Context(), id, counted)
	if err != nil {
		return missing(err, errNoSuchReport)
	}
	records, err := readRecords(c, report.ID, service.RecordCursor{}, maxPage)
	if err != nil {
		return err
	}
	full := wire.NewFullReport(report, records)
	return c.writeJSON(http.StatusOK, full)
}

// setCountedAll is setCounted for all reports of a reporter, of a range of days, or both.
func (a *API) setCountedAll(c *call) error {
	body := readObject(c, "reporter", `{"reporter": "receiver.example", "counted": false}`)
	var selected service.Selection
	if body.states("reporter") {
		selected.Reporter = body.text("reporter")
		if selected.Reporter == "" || !storable(selected.Reporter) {
			body.reject("reporter", `The member "reporter" must be the name of a reporter.`)
		}
	}
	selected.Days = dmarcd.Days{From: body.day("from"), To: body.day("to")}
	counted := body.has("counted") && body.flag("counted")
	if body.err != nil {
		return body.err
	}
	changed, err := c.service.SetCountedAll(c.r.Context(), selected, counted)
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, struct {
		Changed int `json:"changed"`
	}{changed})
}

func (a *API) deleteReport(c *call) error {
	id, err := dmarcd.ParseReportID(c.params.Get("id"))
	if err != nil {
		return errNoSuchReport
	}
	return c.deleted(c.service.DeleteReport(c.r.Context(), id), errNoSuchReport)
}

func (a *API) deleteRejected(c *call) error {
	id, err := dmarcd.ParseRejectedID(c.params.Get("id"))
	if err != nil {
		return errNoSuchRejected
	}
	return c.deleted(c.service.DeleteRejected(c.r.Context(), id), errNoSuchRejected)
}

// missing replaces dmarcd.ErrNotFound with a message.
func missing(err error, words *failure) error {
	if errors.Is(err, dmarcd.ErrNotFound) {
		return words
	}
	return err
}

func (a *API) getReportOriginal(c *call) error {
	report, err := namedReport(c)
	if err != nil {
		return err
	}
	original, err := c.service.ReportOriginal(c.r.Context(), report.ID)
	if err != nil {
		return missing(err, errOriginalGone)
	}
	return a.writeOriginal(c, report.ID.String(), original)
}

func (a *API) getRejectedOriginal(c *call) error {
	rejected, err := namedRejected(c)
	if err != nil {
		return err
	}
	original, err := c.service.RejectedOriginal(c.r.Context(), rejected.ID)
	if err != nil {
		return missing(err, errOriginalGone)
	}
	return a.writeOriginal(c, rejected.ID.String(), original)
}

// originalPart is the size of a part.
const originalPart = 64 << 10

// writeOriginal sends the original bytes. They are not trusted: browsers must not render them,
// and we choose the file name.
func (a *API) writeOriginal(c *call, name string, original dmarcd.StoredOriginal) error {
	content := intake.Unpack(original.Packed)
	part := make([]byte, originalPart)
	// Read the first part before the status, so that a database error can still be reported.
	n, err := io.ReadFull(content, part)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	header := c.w.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	header.Set("Content-Length", strconv.FormatInt(original.Size, 10))
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "private, no-cache")
	if c.r.Method == http.MethodHead {
		return nil
	}
	control, deadline := http.NewResponseController(c.w), a.partDeadline()
	for n > 0 {
		// Writers in tests have no deadlines.
		_ = control.SetWriteDeadline(deadline())
		if _, failed := c.w.Write(part[:n]); failed != nil {
			return nil //nolint:nilerr // the client has disconnected
		}
		if err != nil {
			return nil //nolint:nilerr // this was the end
		}
		n, err = io.ReadFull(content, part)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			// The status is sent. Only a broken connection can show that the file is
			// incomplete.
			a.options.Log.WarnContext(c.r.Context(), "sending an original failed", "error", err)
			panic(http.ErrAbortHandler)
		}
	}
	return nil
}

func (a *API) listRejected(c *call) error {
	limit, after := c.query.cursor()
	if err := c.reserveRows(limit); err != nil {
		return err
	}
	rejected, err := c.service.Rejected(c.r.Context(), dmarcd.RejectedID(after.ID), limit+1)
	if err != nil {
		return err
	}
	return writePage(c, wire.NewPage(rejected, limit, func(r dmarcd.Rejected) string {
		return wire.FormatCursor(r.ReceivedAt, int64(r.ID))
	}, wire.NewRejected))
}

// namedRejected returns the rejected item of the path.
func namedRejected(c *call) (dmarcd.Rejected, error) {
	id, err := dmarcd.ParseRejectedID(c.params.Get("id"))
	if err != nil {
		return dmarcd.Rejected{}, errNoSuchRejected
	}
	rejected, err := c.service.RejectedByID(c.r.Context(), id)
	return rejected, missing(err, errNoSuchRejected)
}

// retryRejected reads the original again.
func (a *API) retryRejected(c *call) error {
	rejected, err := namedRejected(c)
	if err != nil {
		return err
	}
	answer := a.bodyRead(c.w)
	_, receipts, err := c.service.Retry(c.r.Context(), rejected.ID)
	answer()
	if err != nil {
		return missing(err, errOriginalGone)
	}
	writeReceipts(c.w, receipts)
	return nil
}
