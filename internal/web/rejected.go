package web

import (
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web/ui"
	"github.com/dmarcd/dmarcd/internal/wire"
)

type rejectedView struct {
	Table ui.Table
	Pager ui.Pager
	// The result of a retry.
	receiptsView
}

func rejectedFrame() Page {
	return Page{Template: "rejected", Title: "Rejected reports", Section: "Reports", Trail: []ui.Link{{Text: "Reports", Href: Prefix + "/reports"}}}
}

const rejectedPath = Prefix + "/reports/rejected"

const rejectedPerPage = 50

// rejectedList returns a page of the list after a cursor.
func (c *call) rejectedList(after string) (wire.Page[dmarcd.Rejected], error) {
	var page wire.Page[dmarcd.Rejected]
	before, err := parseCursor(after)
	if err != nil {
		return page, err
	}
	found, err := c.team.Rejected(c.r.Context(), dmarcd.RejectedID(before.ID), rejectedPerPage+1)
	if err != nil {
		return page, err
	}
	return wire.NewPage(found, rejectedPerPage, func(item dmarcd.Rejected) string {
		return wire.FormatCursor(item.ReceivedAt, int64(item.ID))
	}, asItIs)
}

func (s *Web) rejected(c *call) error {
	if c.wantsCSV("rejected") {
		all, err := wholeList(c.rejectedList)
		if err != nil {
			return err
		}
		return c.csv(rejectedTable(all, true, ""))
	}
	return s.showRejected(c, receiptsView{})
}

// showRejected shows a page of the list, below the result of a retry.
func (s *Web) showRejected(c *call, receipts receiptsView) error {
	query := c.r.URL.Query()
	found, err := c.rejectedList(query.Get("after"))
	if err != nil {
		return err
	}
	return c.render(http.StatusOK, rejectedFrame(), rejectedView{
		Table:        rejectedTable(found.Items, c.viewer.MayEdit(), ui.WithQuery(rejectedPath, query, "csv", "rejected", "after", "")),
		Pager:        ui.CursorPager(rejectedPath, query, next(found)),
		receiptsView: receipts,
	})
}

func rejectedTable(rejected []dmarcd.Rejected, mayRetry bool, csv string) ui.Table {
	t := ui.Table{
		ID: "rejected", Caption: "Rejected reports", CSV: csv,
		Columns: []ui.Column{
			{Title: "Received"},
			{Title: "Name", Wide: true, Note: "Member"},
			{Title: "Received by"},
			{Title: "Looks like"},
			{Title: "Size"},
			{Title: "Reason", Wide: true},
			{Title: "Actions"},
		},
		Empty: ui.Empty{Title: "No rejected reports", Advice: "Every report that was received could be read.", Action: ui.Link{}},
	}
	for _, r := range rejected {
		path := Prefix + "/reports/rejected/" + r.ID.String()
		kind := string(r.Kind)
		if kind == "" {
			kind = "unknown"
		}
		name := r.Name
		if name == "" {
			name = "unnamed"
		}
		last := ui.Text("Original").Linked(path + "/original")
		if mayRetry {
			last = ui.Actions(ui.Action{Label: "Retry", Path: path + "/retry"}, ui.Action{
				Label: "Delete", Path: path + "/delete", Danger: true, Question: "Delete this item and its original?",
			})
			last.Text, last.Href = "Original", path+"/original"
		}
		t.Rows = append(t.Rows, []ui.Cell{
			ui.At(r.ReceivedAt), ui.Text(name).Noted(r.Member), ui.Text(string(r.Intake)), ui.Text(kind), ui.Text(ui.Size(r.Size)), ui.Text(r.Reason), last,
		})
	}
	return t
}

func (s *Web) rejectedOriginal(c *call) error {
	id, err := dmarcd.ParseRejectedID(c.params.Get("id"))
	if err != nil {
		return dmarcd.ErrNotFound
	}
	original, err := c.team.RejectedOriginal(c.r.Context(), id)
	if err != nil {
		return err
	}
	return c.download(id.String(), original)
}

// retry retries a rejected item, and shows the result above the list.
func (s *Web) retry(c *call) error {
	id, err := dmarcd.ParseRejectedID(c.params.Get("id"))
	if err != nil {
		return dmarcd.ErrNotFound
	}
	_, receipts, err := c.team.Retry(c.r.Context(), id)
	if err != nil {
		return err
	}
	return s.showRejected(c, receiptsView{receiptTable(readFile{receipts: receipts}), true})
}
