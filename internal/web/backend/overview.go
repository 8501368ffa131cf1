package backend

import (
	"context"
	"errors"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web"
)

const (
	// maxNews and maxTasks bound what the overview tells beside its table.
	maxNews  = 20
	maxTasks = 6
)

// Overview implements web.Domains.
func (d domains) Overview(ctx context.Context, query web.OverviewQuery) (web.Overview, error) {
	rows, err := d.team.DomainRows(ctx, service.DomainFilter{
		Days: daysOf(query.Period), Search: query.Search, Policy: query.Policy, Trouble: query.Trouble,
		Sort: query.Sort, Offset: query.Offset, Limit: query.Limit,
	})
	if err != nil {
		return web.Overview{}, err
	}
	found := web.Overview{Matching: rows.Matching, All: rows.All}
	for _, row := range rows.Rows {
		found.Domains = append(found.Domains, web.DomainRow{
			Name: row.Name, Grade: row.Grade, Policy: row.Policy, Active: row.Active, Known: row.Known, Counts: row.Counts,
			Trend: trendOf(row.Days, query.Period),
		})
	}
	days, err := d.team.Daily(ctx, withBefore(query.Period), 2*query.Period.Len())
	if err != nil {
		return web.Overview{}, err
	}
	found.Days, found.Counts, found.Before = series(days, query.Period)
	if found.News, err = d.news(ctx); err != nil {
		return web.Overview{}, err
	}
	found.Tasks, found.Troubled, err = d.tasks(ctx)
	return found, err
}

// news returns what happened since yesterday began.
func (d domains) news(ctx context.Context) ([]dmarcd.Event, error) {
	yesterday := dayTime(dmarcd.DayOf(d.options.Now()) - 1)
	events, err := d.team.Events(ctx, service.EventFilter{}, service.Cursor{}, maxNews)
	return since(events, yesterday), err
}

// since keeps the events from a moment on of a list that begins with the latest.
func since(events []dmarcd.Event, moment time.Time) []dmarcd.Event {
	for i, e := range events {
		if e.At.Before(moment) {
			return events[:i]
		}
	}
	return events
}

// tasks returns the next step for each of the domains that need it most, and how many
// need one.
func (d domains) tasks(ctx context.Context) (tasks []web.Task, troubled int, err error) {
	worst, err := d.team.DomainRows(ctx, service.DomainFilter{Trouble: true, Sort: "-grade", Limit: maxTasks})
	if err != nil {
		return nil, 0, err
	}
	for _, row := range worst.Rows {
		task := web.Task{Domain: row.Name, Level: dmarcd.LevelInfo, What: "The DNS has not given an answer yet: nobody can tell what is to be done."}
		latest, err := checks(d).LatestCheck(ctx, row.Name)
		if err != nil && !errors.Is(err, dmarcd.ErrNotFound) {
			return nil, 0, err
		}
		switch next := latest.NextStep; {
		case next != nil:
			task.Level, task.What = dmarcd.Level(next.Level), next.What
		case err == nil && row.Known:
			continue // everything can stay as it is
		}
		tasks = append(tasks, task)
	}
	return tasks, worst.Matching, nil
}
