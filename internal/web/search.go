package web

import (
	"net/http"
	"net/url"

	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// maxHits is the number of results listed per kind.
const maxHits = 20

func (s *Web) search(c *call) error {
	query := c.r.URL.Query()
	hits, err := c.team.Search(c.r.Context(), query.Get("q"), maxHits)
	if err != nil {
		return err
	}
	table := ui.Table{
		ID: "hits", Caption: "Search results", CSV: ui.WithQuery(Prefix+"/search", query, "csv", "hits"),
		Columns: []ui.Column{{Title: "Name", Wide: true, Note: "Detail"}, {Title: "Kind"}},
		Empty:   ui.Empty{Title: "Nothing found", Advice: "Search for part of a domain, a sender, an IP address, a reporter or a report id."},
	}
	if query.Get("q") == "" {
		table.Empty.Title = "Search"
	}
	for _, hit := range hits {
		table.Rows = append(table.Rows, []ui.Cell{ui.LinkTo(hit.Title, c.link(hitPath(hit))).Noted(hit.Detail), ui.Text(string(hit.Kind))})
	}
	return c.render(http.StatusOK, Page{Template: "search", Title: "Search"}, listView{Table: table}, table)
}

// hitPath is the page of a result.
func hitPath(hit service.Hit) string {
	switch hit.Kind {
	case service.HitDomain:
		return domainPath(hit.Key)
	case service.HitSender:
		return Prefix + "/senders/" + string(insight.GroupNetwork) + "/" + url.PathEscape(hit.Key)
	case service.HitAddress:
		return Prefix + "/senders/" + string(insight.GroupAddress) + "/" + url.PathEscape(hit.Key)
	}
	return Prefix + "/reports/" + hit.Key
}
