package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/ui"
	"github.com/dmarcd/dmarcd/internal/wire"
)

const changesPerPage = 100

type teamChangesView struct {
	Filter ui.Form
	Table  ui.Table
	Pager  ui.Pager
}

// teamChanges shows the events of all domains of the team, newest first.
func (s *Web) teamChanges(c *call) error {
	const path = Prefix + "/changes"
	query := c.r.URL.Query()
	filter := service.EventFilter{Domain: normalDomain(query.Get("domain"))}
	part := func(after string) (page wire.Page[dmarcd.Event], err error) {
		var before int64
		if after != "" {
			if before, err = strconv.ParseInt(after, 10, 64); err != nil {
				return page, wire.ErrAfter
			}
		}
		events, err := c.team.Events(c.r.Context(), filter, before, changesPerPage+1)
		if err != nil {
			return page, err
		}
		return wire.NewPage(events, changesPerPage, func(e dmarcd.Event) string { return strconv.FormatInt(e.Seq, 10) }, asItIs)
	}
	if c.wantsCSV("events") {
		all, err := wholeList(part)
		if err != nil {
			return err
		}
		return c.csv(c.teamEventTable(all))
	}
	found, err := part(query.Get("after"))
	if err != nil {
		return err
	}
	tags, err := c.tags()
	if err != nil {
		return err
	}
	view := teamChangesView{Table: c.teamEventTable(found.Items), Pager: ui.CursorPager(path, query, next(found)), Filter: c.carrying(changesFilter(path, query, tags))}
	view.Table.CSV = ui.WithQuery(path, query, "csv", "events", "after", "")
	return c.render(http.StatusOK, Page{Template: "changes", Title: "Changes", Section: "Changes"}, view)
}

func changesFilter(path string, query url.Values, tags tagChoice) ui.Form {
	return ui.Form{Path: path, Method: "get", Submit: "Filter", Inline: true, Fields: append([]ui.Field{
		{Name: "domain", Label: "Domain", Type: "search", Value: query.Get("domain"), Placeholder: "example.com"},
	}, tags.fields()...)}
}

// teamEventTable is eventTable with a column for domains.
func (c *call) teamEventTable(events []dmarcd.Event) ui.Table {
	t := eventTable(events)
	t.Columns = slices.Insert(t.Columns, 1, ui.Column{Title: "Domain", Wide: true})
	for i, e := range events {
		t.Rows[i] = slices.Insert(t.Rows[i], 1, ui.LinkTo(e.Domain, c.link(domainPath(e.Domain))))
	}
	return t
}
