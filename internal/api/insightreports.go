package api

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func (a *API) listReports(c *call) error {
	limit, after, err := readCursor(c)
	if err != nil {
		return err
	}
	filter, err := readReportFilter(c)
	if err != nil {
		return err
	}
	team, err := tagged(c)
	if err != nil {
		return err
	}
	reports, err := team.Reports(c.r.Context(), filter, dmarcd.ReportID(after.ID), limit+1)
	if err != nil {
		return err
	}
	return c.writeCacheable(wire.NewPage(reports, limit, func(r dmarcd.Report) string {
		return wire.FormatCursor(r.ReceivedAt, int64(r.ID))
	}, wire.NewKeptReport))
}

func readReportFilter(c *call) (filter service.ReportFilter, err error) {
	if filter.Days, err = readDays(c); err != nil {
		return filter, err
	}
	if filter.Domain, err = readDomain(c); err != nil {
		return filter, err
	}
	for _, text := range []struct {
		name string
		to   *string
	}{{"org", &filter.Organization}, {"report_id", &filter.ExternalID}, {"quirk", &filter.Quirk}} {
		if *text.to = c.query.Get(text.name); !storable(*text.to) {
			return filter, &dmarcd.InvalidError{Field: text.name, Message: "The parameter " + text.name + " must be text in UTF-8."}
		}
	}
	if filter.Kind, err = readWord(c, "kind", dmarcd.ReportKinds()...); err != nil {
		return filter, err
	}
	if filter.Genuine, err = readWord(c, "genuine", dmarcd.GenuineYes, dmarcd.GenuineNo, dmarcd.GenuineUnknown); err != nil {
		return filter, err
	}
	if filter.State, err = readWord(c, "state", dmarcd.ReportStates()...); err != nil {
		return filter, err
	}
	unclaimed, err := readWord(c, "unclaimed", "true", "false")
	filter.Unclaimed = unclaimed == "true"
	return filter, err
}

// readWord returns a parameter with one of the allowed values, "" if absent.
func readWord[T ~string](c *call, name string, words ...T) (T, error) {
	word := T(c.query.Get(name))
	if !c.query.Has(name) || slices.Contains(words, word) {
		return word, nil
	}
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = string(w)
	}
	message := "The parameter " + name + " must be one of " + strings.Join(quoted, ", ") + "."
	return "", &dmarcd.InvalidError{Field: name, Message: message}
}

// storable reports whether a text can be in the database. Others must not be queried:
// PostgreSQL rejects them.
func storable(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

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
	limit, text, err := readPart(c)
	if err != nil {
		return err
	}
	var after service.RecordCursor
	if text != "" {
		after.Begun = true
		if after.Share, after.N, err = wire.ParseRecordCursor(text); err != nil {
			return err
		}
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

func readRecords(c *call, id dmarcd.ReportID, after service.RecordCursor, limit int) (wire.Page[wire.KeptRecord], error) {
	records, more, err := c.service.Records(c.r.Context(), id, after, limit)
	if err != nil {
		return wire.Page[wire.KeptRecord]{}, err
	}
	page := wire.Page[wire.KeptRecord]{Items: []wire.KeptRecord{}}
	for _, r := range records {
		page.Items = append(page.Items, wire.NewKeptRecord(r.Domain, wire.NewAggregateRecord(r.Record)))
	}
	if more {
		last := records[len(records)-1].Cursor
		page.Next = new(wire.FormatRecordCursor(last.Share, last.N))
	}
	return page, nil
}
