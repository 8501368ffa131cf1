package service

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
)

const (
	// exportReports and exportRecords are the numbers of reports and records per query of an export.
	exportReports, exportRecords = 100, 1000
	// exportBytes is the memory of a batch in the budget of large reads: a thousand records
	// with long texts, decoded and encoded.
	exportBytes = 8 << 20
	// settleTime is how long after its receipt a report is final: the transaction that stores
	// it takes less, and clocks of replicas differ less.
	settleTime = 10 * time.Second
)

// RecordFilter selects records of aggregate reports.
type RecordFilter struct {
	// Domain is a domain of the team, "" for all.
	Domain string
	// Days are the days that the records count on: those on which their reports begin.
	Days dmarcd.Days
	// All includes records that do not count: those of excluded, held or replaced reports, and those
	// about names without a domain of the team.
	All bool
	// Settled leaves out reports of the last seconds and those after one that is still being
	// written. Then a later export from the last position misses nothing.
	Settled bool
}

// RecordPosition is a position in an export: after a record of a report. The zero value is the
// start.
type RecordPosition struct {
	Report dmarcd.ReportID
	Record RecordCursor
}

// ReportRecord is a record with its report.
type ReportRecord struct {
	Report *dmarcd.Report
	Record
}

// Position returns the position after the record.
func (r ReportRecord) Position() RecordPosition {
	return RecordPosition{Report: r.Report.ID, Record: r.Cursor}
}

// RecordExport reads records in batches, in the order in which their reports were received. It
// is for one goroutine, and holds no resources between batches.
type RecordExport struct {
	team   *Team
	filter RecordFilter
	// reports are those to read next, and after is the position in the first. from is the
	// first id that follows them; ended means that none do.
	reports []dmarcd.Report
	after   RecordPosition
	from    dmarcd.ReportID
	ended   bool
}

// ExportRecords starts an export after a position, with an audit entry. A domain that the team
// does not have is dmarcd.ErrNotFound.
func (t *Team) ExportRecords(ctx context.Context, filter RecordFilter, after RecordPosition) (*RecordExport, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, err
	}
	if filter.Domain != "" {
		domain, err := t.named(ctx, dmarcd.RightSee, filter.Domain)
		if err != nil {
			return nil, err
		}
		filter.Domain = domain.Name
	}
	if err := t.team.Note(ctx, t.actor.to("record.export", cmp.Or(filter.Domain, "all domains"), "")); err != nil {
		return nil, err
	}
	return &RecordExport{team: t, filter: filter, after: after, from: after.Report}, nil
}

// Archive reads everything that a team has: the methods of Team, and those whose reads it notes as one
// export.
type Archive struct {
	*Team

	// Self is the team.
	Self dmarcd.Team
	// BaseURL is the public URL of the API, for links.
	BaseURL string
}

// Archive starts an export of all data of the team, with an audit entry. No token may.
func (t *Team) Archive(ctx context.Context) (*Archive, error) {
	team, err := t.whole(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.team.Note(ctx, t.actor.to("team.export", team.Name, "")); err != nil {
		return nil, err
	}
	return &Archive{Team: t, Self: team, BaseURL: t.service.options.BaseURL}, nil
}

// Records returns an export of all records, also of those that do not count.
func (a *Archive) Records() *RecordExport {
	return &RecordExport{team: a.Team, filter: RecordFilter{All: true}}
}

// Original returns the original of a report, or dmarcd.ErrNotFound after its retention.
func (a *Archive) Original(ctx context.Context, id dmarcd.ReportID) (dmarcd.StoredOriginal, error) {
	return a.team.ReportOriginal(ctx, id)
}

// RejectedOriginal returns the original of a rejected item, or dmarcd.ErrNotFound.
func (a *Archive) RejectedOriginal(ctx context.Context, id dmarcd.RejectedID) (dmarcd.StoredOriginal, error) {
	return a.team.RejectedOriginal(ctx, id)
}

// SenderClasses returns the classes that the team gave to senders of a domain, and of all domains.
func (a *Archive) SenderClasses(ctx context.Context, domain string) (map[string]dmarcd.Class, error) {
	return a.team.SenderClasses(ctx, domain)
}

// Next passes the next batch to use, and returns its length, 0 at the end. It waits for memory and
// for a turn like other large reads, and has both until use returns, which must not wait for a client.
// It may return memory.ErrBusy, and can be called again after an error, and at the end for what
// arrived since.
func (e *RecordExport) Next(ctx context.Context, use func([]ReportRecord) error) (n int, err error) {
	if e.team.service.stopping() {
		return 0, fmt.Errorf("%w: the process stops", dmarcd.ErrTemporary)
	}
	release, err := e.team.service.options.Memory.Acquire(ctx, e.team.team.ID(), exportBytes)
	if err != nil {
		return 0, err
	}
	defer release()
	defer e.team.team.ReadTurn(ctx)()
	var batch []ReportRecord
	for len(batch) < exportRecords/2 && (len(e.reports) > 0 || !e.ended) {
		if len(e.reports) == 0 {
			err = e.list(ctx)
		} else {
			batch, err = e.read(ctx, batch)
		}
		if err != nil {
			break
		}
	}
	if len(batch) > 0 {
		return len(batch), use(batch) // the next call meets the error again
	}
	e.ended = false
	return 0, err
}

// list lists the next reports.
func (e *RecordExport) list(ctx context.Context) (err error) {
	filter := ReportFilter{Kind: dmarcd.KindAggregate, Domain: e.filter.Domain, Days: e.filter.Days}
	if !e.filter.All {
		filter.State = dmarcd.ReportCounted
	}
	var settled time.Time
	if e.filter.Settled {
		settled = e.team.service.options.Now().Add(-settleTime)
	}
	e.reports, err = e.team.team.ReportsFrom(ctx, filter, e.from, settled, exportReports)
	if err != nil {
		return err
	}
	if n := len(e.reports); n > 0 {
		e.from = e.reports[n-1].ID + 1
	}
	e.ended = len(e.reports) == 0
	return nil
}

// read appends records of the first report to the batch.
func (e *RecordExport) read(ctx context.Context, batch []ReportRecord) ([]ReportRecord, error) {
	report := &e.reports[0]
	var after RecordCursor
	if e.after.Report == report.ID {
		after = e.after.Record
	}
	limit := exportRecords - len(batch)
	records, more, err := e.team.team.Records(ctx, report.ID, after, limit)
	if err != nil {
		return batch, err
	}
	for _, r := range records {
		e.after = RecordPosition{Report: report.ID, Record: r.Cursor}
		wanted := e.filter.All || r.Domain != ""
		if e.filter.Domain != "" {
			wanted = r.Domain == e.filter.Domain
		}
		if wanted {
			batch = append(batch, ReportRecord{Report: report, Record: r})
		}
	}
	if !more {
		e.reports = e.reports[1:]
	}
	return batch, nil
}
