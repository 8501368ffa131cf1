package web

import (
	"net/http"

	"github.com/dmarcd/dmarcd"
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
	kept, err := c.team.LatestCheck(c.r.Context(), dmarcd.Domain{Name: domain})
	if err != nil {
		return wire.StoredCheck{}, err
	}
	return wire.NewKeptCheck(kept), nil
}

// checkHistory returns a page of the checks of a domain after a cursor, newest first.
func (c *call) checkHistory(domain dmarcd.Domain, after string) (page wire.Page[wire.StoredCheck], err error) {
	before, err := parseCursor(after)
	if err != nil {
		return page, err
	}
	kept, err := c.team.Checks(c.r.Context(), domain, before, checksPerPage+1)
	if err != nil {
		return page, err
	}
	return wire.NewPage(kept, checksPerPage, func(k dmarcd.StoredCheck) string {
		return wire.FormatCursor(k.FirstAt, int64(k.ID))
	}, func(k dmarcd.StoredCheck) (wire.StoredCheck, error) { return wire.NewKeptCheck(k), nil })
}

func (s *Web) history(c *call) error {
	page, head, err := s.domainPage(c, "history", "Changes")
	if err != nil {
		return err
	}
	query := c.r.URL.Query()
	part := func(after string) (wire.Page[wire.StoredCheck], error) {
		return c.checkHistory(head.Head.Domain, after)
	}
	if c.wantsCSV("changes") {
		all, err := wholeList(part)
		if err != nil {
			return err
		}
		return c.csv(changeTable(all))
	}
	found, err := part(query.Get("after"))
	if err != nil {
		return err
	}
	path := domainPath(head.Head.Name) + "/changes"
	view := historyView{
		domainView: head, Pager: ui.CursorPager(path, query, next(found)), CSV: ui.WithQuery(path, query, "csv", "changes", "after", ""),
	}
	for _, check := range found.Items {
		if lines := changeLines(check.Changes); len(lines) > 0 || len(check.Changes) == 0 {
			view.Checks = append(view.Checks, historyEntry{check, lines})
		}
	}
	return c.render(http.StatusOK, page, view)
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
