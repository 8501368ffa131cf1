package web

import (
	"net/http"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

const changesPerPage = 100

// teamChanges shows the events of all domains of the team, newest first.
func (s *Web) teamChanges(c *call) error {
	const path = Prefix + "/changes"
	query := c.r.URL.Query()
	filter := service.EventFilter{Domain: normalDomain(query.Get("domain"))}
	if kind := dmarcd.EventKind(query.Get("kind")); slices.Contains(dmarcd.EventKinds(), kind) {
		filter.Kind = kind
	}
	found, err := requested(c, "events", pages(changesPerPage, func(before service.Cursor, limit int) ([]dmarcd.Event, error) {
		return c.team.Events(c.r.Context(), filter, before.ID, limit)
	}, func(e dmarcd.Event) (time.Time, int64) { return e.At, e.Seq }))
	if err != nil {
		return err
	}
	if c.wantsCSV("events") {
		return c.csv(withVersions(c.eventTable(found.Items), found.Items))
	}
	tags, err := c.tags()
	if err != nil {
		return err
	}
	view := listView{Table: c.eventTable(found.Items), Pager: ui.CursorPager(path, query, next(found)), Form: c.carrying(changesFilter(path, filter, tags))}
	view.Table.CSV = ui.WithQuery(path, query, "csv", "events", "after", "")
	return c.render(http.StatusOK, Page{Template: "changes", Title: "Changes", Section: "Changes"}, view)
}

func changesFilter(path string, asked service.EventFilter, tags tagChoice) ui.Form {
	kinds := []ui.Choice{{Value: "", Label: "any"}}
	for _, kind := range dmarcd.EventKinds() {
		kinds = append(kinds, ui.Choice{Value: string(kind), Label: eventCell(kind).Text})
	}
	return ui.Form{Path: path, Method: "get", Submit: "Filter", Inline: true, Fields: append([]ui.Field{
		{Name: "domain", Label: "Domain", Type: "search", Value: asked.Domain, Placeholder: "example.com"},
		{Name: "kind", Label: "Kind", Type: "select", Value: string(asked.Kind), Choices: kinds},
	}, tags.fields()...)}
}

// eventTable describes each event in a sentence.
func (c *call) eventTable(events []dmarcd.Event) ui.Table {
	t := ui.Table{
		ID: "events", Caption: "Changes",
		Columns: []ui.Column{{Title: "When"}, {Title: "Domain"}, {Title: "Kind"}, {Title: "Change", Wide: true}},
		Empty:   ui.Empty{Title: "No changes", Advice: "No record, policy or finding changed, or none matches the filter.", Action: ui.Link{}},
	}
	for _, e := range events {
		domain, what := ui.Text("–"), ui.Text(e.Summary())
		if e.Domain != "" {
			domain = ui.LinkTo(e.Domain, c.link(domainPath(e.Domain)))
		}
		what.Diff = eventDiff(e)
		t.Rows = append(t.Rows, []ui.Cell{ui.At(e.At), domain, eventCell(e.Kind), what})
	}
	return t
}

// withVersions adds the values before and after each event, for a file.
func withVersions(t ui.Table, events []dmarcd.Event) ui.Table {
	t.Columns = append(t.Columns, ui.Column{Title: "Before"}, ui.Column{Title: "After"})
	for i, e := range events {
		t.Rows[i] = append(t.Rows[i], ui.Text(e.Before), ui.Text(e.After))
	}
	return t
}
