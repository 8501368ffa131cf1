package api

import (
	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

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
	return c.writeCacheable(wire.NewPage(reports, limit, func(r dmarcd.Report) string {
		return wire.FormatCursor(r.ReceivedAt, int64(r.ID))
	}, wire.NewStoredReport))
}

func readReportFilter(q *query) service.ReportFilter {
	return service.ReportFilter{
		Days: q.days(), Domain: q.domain(),
		Organization: q.text("org"), ExternalID: q.text("report_id"), Quirk: q.text("quirk"),
		Kind:      word(q, "kind", dmarcd.ReportKinds()...),
		Genuine:   word(q, "genuine", dmarcd.GenuineYes, dmarcd.GenuineNo, dmarcd.GenuineUnknown),
		State:     word(q, "state", dmarcd.ReportStates()...),
		Unclaimed: word(q, "unclaimed", "true", "false") == "true",
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
		c.query.fail(err)
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
		page.Next = new(wire.FormatRecordCursor(last.Share, last.N))
	}
	return page, nil
}
