package backend

import (
	"context"

	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/web"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// sources implements web.Sources; the timeline stands in timeline.go. What one page
// asks of the same mail is read once, so that a value is for one request and not
// safe for concurrent use.
type sources struct {
	desk
	read *insight.Mail // nil before it is read
	of   mailQuery
	// release gives back what was reserved, nil if nothing was.
	release func()
}

// Reserve implements web.Memory.
func (s *sources) Reserve(ctx context.Context) (context.Context, error) {
	held, release, err := s.options.Memory.AcquireAll(ctx, s.id)
	if err != nil {
		return nil, err
	}
	s.release = release
	return held, nil
}

// Release implements web.Memory.
func (s *sources) Release() {
	if s.read != nil {
		s.read.Close()
		s.read = nil
	}
	if s.release != nil {
		s.release()
	}
}

// mailQuery says which mail was read.
type mailQuery struct {
	domain string
	period web.Period
}

// mail returns the mail that a query is about. One for a domain that the team does
// not have is dmarcd.ErrNotFound.
func (s *sources) mail(ctx context.Context, query web.SourceQuery) (*insight.Mail, error) {
	asked := mailQuery{query.Domain, query.Period}
	if s.read != nil && s.of == asked {
		return s.read, nil
	}
	if s.read != nil {
		s.read.Close()
		s.read = nil
	}
	var name string
	if query.Domain != "" {
		domain, err := s.named(ctx, query.Domain)
		if err != nil {
			return nil, err
		}
		name = domain.Name
	}
	mail, err := s.team.Mail(ctx, name, daysOf(query.Period))
	if err != nil {
		return nil, err
	}
	s.read, s.of = mail, asked
	return mail, nil
}

func insightQuery(q web.SourceQuery) insight.Query {
	return insight.Query{
		Group: insight.Group(q.Group), Key: q.Key, Search: q.Search, Failing: q.Failing, Sort: q.Sort, After: q.After, Limit: q.Limit, Parts: q.Parts, Trends: true,
	}
}

func (s *sources) Sources(ctx context.Context, query web.SourceQuery) (web.SourceList, error) {
	mail, err := s.mail(ctx, query)
	if err != nil {
		return web.SourceList{}, err
	}
	found, err := mail.Sources(ctx, insightQuery(query))
	if err != nil {
		return web.SourceList{}, err
	}
	list := web.SourceList{Sources: sourceRows(found.Sources), Next: found.Next, Counts: found.Counts}
	if query.Domain != "" {
		ready, err := mail.Readiness(ctx)
		if err != nil {
			return web.SourceList{}, err
		}
		list.Readiness = &web.Readiness{
			Ready: ready.Ready, Reasons: ready.Reasons,
			All: ready.All.Total(), Affected: ready.Affected.Total(), Known: ready.Known.Total(),
		}
	}
	return list, nil
}

func sourceRows(rows []insight.Row) []web.SourceRow {
	shown := make([]web.SourceRow, len(rows))
	for i, row := range rows {
		shown[i] = sourceRow(row)
	}
	return shown
}

func sourceRow(row insight.Row) web.SourceRow {
	return web.SourceRow{
		Key: row.Key, Name: row.Name, Detail: row.Detail, Counts: row.Counts, Trend: row.Trend,
		First: row.First, Last: row.Last, Other: row.Other,
	}
}

func (s *sources) Source(ctx context.Context, query web.SourceQuery) (web.Source, error) {
	mail, err := s.mail(ctx, query)
	if err != nil {
		return web.Source{}, err
	}
	found, err := mail.Source(ctx, insightQuery(query))
	if err != nil {
		return web.Source{}, err
	}
	source := web.Source{SourceRow: sourceRow(found.Row)}
	for _, fact := range found.Facts {
		source.Facts = append(source.Facts, web.Fact(fact))
	}
	for _, day := range found.Days {
		source.Days = append(source.Days, web.DayCounts(day))
	}
	for _, part := range found.Parts {
		source.Parts = append(source.Parts, web.SourcePart{Group: web.Group(part.Group), Rows: sourceRows(part.Rows), More: part.More})
	}
	return source, nil
}

func (s *sources) Flows(ctx context.Context, query web.SourceQuery) ([]web.Flow, error) {
	mail, err := s.mail(ctx, query)
	if err != nil {
		return nil, err
	}
	found, err := mail.Flows(ctx, insightQuery(query))
	if err != nil {
		return nil, err
	}
	var flows []web.Flow
	for _, f := range found {
		flows = append(flows, web.Flow{
			Sender: f.Sender, SPF: f.SPF, DKIM: f.DKIM, Disposition: string(f.Disposition), Messages: f.Messages,
		})
	}
	return flows, nil
}

func (s *sources) Records(ctx context.Context, query web.SourceQuery) (wire.Page[web.Record], error) {
	mail, err := s.mail(ctx, query)
	if err != nil {
		return wire.Page[web.Record]{}, err
	}
	found, err := mail.Records(ctx, insightQuery(query))
	if err != nil {
		return wire.Page[web.Record]{}, err
	}
	page := wire.Page[web.Record]{Items: make([]web.Record, len(found.Records))}
	for i, r := range found.Records {
		page.Items[i] = newRecord(r.Record)
		page.Items[i].Report, page.Items[i].Reporter, page.Items[i].Begin = r.Place.Report.String(), r.Organization, dayTime(r.Day)
	}
	if found.Next != "" {
		page.Next = &found.Next
	}
	return page, nil
}
