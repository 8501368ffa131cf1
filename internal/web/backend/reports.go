package backend

import (
	"context"
	"fmt"
	"io"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// reports implements web.Reports.
type reports struct{ desk }

func (r reports) Reports(ctx context.Context, query web.ReportQuery) (wire.Page[dmarcd.Report], error) {
	var page wire.Page[dmarcd.Report]
	after, err := parseCursor(query.After)
	if err != nil {
		return page, err
	}
	found, err := r.team.Reports(ctx, service.ReportFilter{
		Kind: query.Kind, Domain: query.Domain, Organization: query.Organization, ExternalID: query.ID,
		Genuine: query.Genuine, State: query.State, Quirks: query.Quirks, Days: daysOf(query.Period),
	}, dmarcd.ReportID(after.ID), query.Limit+1)
	if err != nil {
		return page, err
	}
	return wire.NewPage(found, query.Limit, func(report dmarcd.Report) string {
		return wire.FormatCursor(report.ReceivedAt, int64(report.ID))
	}, asItIs)
}

// byID returns the report with an id that somebody wrote in an address.
func (r reports) byID(ctx context.Context, id string) (dmarcd.Report, error) {
	parsed, err := dmarcd.ParseReportID(id)
	if err != nil {
		return dmarcd.Report{}, dmarcd.ErrNotFound
	}
	return r.team.Report(ctx, parsed)
}

func (r reports) Report(ctx context.Context, id, after string, limit int) (web.ReportDocument, error) {
	place, err := parseRecordCursor(after)
	if err != nil {
		return web.ReportDocument{}, err
	}
	report, err := r.byID(ctx, id)
	if err != nil {
		return web.ReportDocument{}, err
	}
	document, err := newDocument(report)
	if err != nil || report.Kind != dmarcd.KindAggregate {
		return document, err
	}
	records, err := r.team.Records(ctx, report.ID, place, limit+1)
	if err != nil {
		return web.ReportDocument{}, err
	}
	if len(records) > limit {
		records = records[:limit]
		last := records[limit-1].Cursor
		document.Next = wire.FormatRecordCursor(last.Share, last.N)
	}
	for _, kept := range records {
		record := newRecord(kept.Record)
		record.Reporter, record.Begin = report.Organization, report.Begin
		document.Records = append(document.Records, record)
	}
	return document, nil
}

func (r reports) Original(ctx context.Context, id string) (web.Original, error) {
	report, err := r.byID(ctx, id)
	if err != nil {
		return web.Original{}, err
	}
	kept, err := r.team.ReportOriginal(ctx, report.ID)
	return newOriginal(report.ID.String(), kept, err)
}

// newOriginal returns what was sent as a file to download.
func newOriginal(name string, kept dmarcd.KeptOriginal, err error) (web.Original, error) {
	if err != nil {
		return web.Original{}, err
	}
	return web.Original{Name: name, Size: kept.Size, Body: io.NopCloser(intake.Unpack(kept.Packed))}, nil
}

func (r reports) Upload(ctx context.Context, name string, body io.Reader) ([]dmarcd.Receipt, error) {
	content, err := intake.CopyOf(body, r.options.Acceptor.Limits.Containers.Folder, r.options.MaxUpload)
	if err != nil {
		return nil, fmt.Errorf("take an upload: %w", err)
	}
	defer content.Close()
	return r.team.Upload(ctx, name, content)
}
