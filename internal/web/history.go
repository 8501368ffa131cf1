package web

import (
	"net/http"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/ui"
	"github.com/dmarcd/dmarcd/internal/wire"
)

type historyView struct {
	domainView
	Checks []historyEntry
	Pager  ui.Pager
	CSV    string
}

// historyEntry is a check with a description of its changes.
type historyEntry struct {
	wire.StoredCheck
	Lines []changeLine
}

const checksPerPage = 20

// latestCheck returns the latest check of a domain, or dmarcd.ErrNotFound.
func (c *call) latestCheck(domain string) (wire.StoredCheck, error) {
	stored, err := c.team.LatestCheck(c.r.Context(), dmarcd.Domain{Name: domain})
	if err != nil {
		return wire.StoredCheck{}, err
	}
	return wire.NewStoredCheck(stored), nil
}

func (s *Web) history(c *call) error {
	page, head, err := s.domainPage(c, "history", "Changes")
	if err != nil {
		return err
	}
	found, err := requested(c, "changes", pages(checksPerPage, func(before service.Cursor, limit int) ([]facts.StoredCheck, error) {
		return c.team.Checks(c.r.Context(), head.Head.Domain, before, limit)
	}, func(k facts.StoredCheck) (time.Time, int64) { return k.FirstAt, int64(k.ID) }))
	if err != nil {
		return err
	}
	var checks []wire.StoredCheck
	for _, check := range found.Items {
		checks = append(checks, wire.NewStoredCheck(check))
	}
	path, query := domainPath(head.Head.Name)+"/changes", c.r.URL.Query()
	view := historyView{
		domainView: head, Pager: ui.CursorPager(path, query, next(found)), CSV: ui.WithQuery(path, query, "csv", "changes", "after", ""),
	}
	for _, check := range checks {
		if lines := changeLines(check.Changes); len(lines) > 0 || len(check.Changes) == 0 {
			view.Checks = append(view.Checks, historyEntry{check, lines})
		}
	}
	return c.render(http.StatusOK, page, view, changeTable(checks))
}

func changeTable(checks []wire.StoredCheck) ui.Table {
	t := ui.Table{ID: "changes", Columns: []ui.Column{{Title: "When"}, {Title: "What"}, {Title: "Before"}, {Title: "After"}}}
	for _, check := range checks {
		for _, change := range check.Changes {
			t.Rows = append(t.Rows, []ui.Cell{ui.Text(check.FirstAt), ui.Text(change.Path), ui.Text(change.Before), ui.Text(change.After)})
		}
	}
	return t
}
