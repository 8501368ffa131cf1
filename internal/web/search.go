package web

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// maxHits is the number of results listed per kind.
const maxHits = 20

// maxSuggested is the number of results listed per kind while a user types.
const maxSuggested = 3

type searchView struct {
	listView
	// Hits are the results as links, for a script.
	Hits []suggestion
}

// suggestion is a result with its kind as a word.
type suggestion struct {
	ui.Link
	Detail, Kind string
}

func (s *Web) search(c *site.Call) error {
	query := c.R.URL.Query()
	limit := maxHits
	if c.WantsFragment() {
		limit = maxSuggested
	}
	hits, err := c.Team.Search(c.R.Context(), query.Get("q"), limit)
	if err != nil {
		return err
	}
	table := ui.Table{
		ID: "hits", Caption: "Search results", CSV: ui.WithQuery(Prefix+"/search", query, "csv", "hits"),
		Columns: []ui.Column{{Title: "Name", Wide: true, Note: "Detail"}, {Title: "Kind"}},
		Empty:   ui.Empty{Title: "Nothing found", Advice: "Search for part of a domain, of a sender, of a DKIM selector or of a report id, for a reporter, or for the beginning of an IP address. Mail and reports of the last 90 days are searched."},
	}
	if query.Get("q") == "" {
		table.Empty.Title = "Search"
	}
	view := searchView{}
	for _, hit := range hits {
		link := ui.Link{Text: hit.Title, Href: hitLink(c, hit)}
		table.Rows = append(table.Rows, []ui.Cell{ui.LinkTo(hit.Title, link.Href).Noted(hit.Detail), ui.Text(hitKind(hit.Kind))})
		view.Hits = append(view.Hits, suggestion{link, hit.Detail, hitKind(hit.Kind)})
	}
	page := site.Page{Template: "search", Title: "Search"}
	if c.WantsFragment() {
		return c.Fragment(page, "hits", view)
	}
	view.Table = table
	return c.Render(http.StatusOK, page, view, table)
}

// hitKind is the word for a kind of result.
func hitKind(kind service.HitKind) string {
	if kind == service.HitSelector {
		return "DKIM selector"
	}
	return string(kind)
}

// hitLink is the page of a result. Mail is shown in the period that was searched.
func hitLink(c *site.Call, hit service.Hit) string {
	switch hit.Kind {
	case service.HitSender, service.HitAddress, service.HitSelector:
		return c.Link(hitPath(hit), "from", "", "to", "", "days", strconv.Itoa(service.SearchDays+1))
	}
	return c.Link(hitPath(hit))
}

// hitPath is the page of a result.
func hitPath(hit service.Hit) string {
	switch hit.Kind {
	case service.HitDomain:
		return domainPath(hit.Key)
	case service.HitSender:
		return Prefix + "/senders/" + string(insight.GroupSender) + "/" + url.PathEscape(hit.Key)
	case service.HitSelector:
		return Prefix + "/senders/" + string(insight.GroupSelector) + "/" + url.PathEscape(hit.Key)
	case service.HitAddress:
		return Prefix + "/senders/" + string(insight.GroupAddress) + "/" + url.PathEscape(hit.Key)
	}
	return Prefix + "/reports/" + hit.Key
}
