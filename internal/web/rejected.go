package web

import (
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

type rejectedView struct {
	Table Table
	Pager Pager
	// What became of one that was read again.
	receiptsView
}

func rejectedFrame() Page {
	return Page{Template: "rejected", Title: "Rejected", Section: "Reports", Trail: []Link{{"Reports", Prefix + "/reports"}}}
}

const rejectedPath = Prefix + "/reports/rejected"

func (s *Web) rejected(c *call) error {
	part := func(after string) (wire.Page[dmarcd.Rejected], error) {
		return c.team.Rejected.Rejected(c.r.Context(), after)
	}
	if c.wantsCSV("rejected") {
		all, err := wholeList(part)
		if err != nil {
			return err
		}
		return c.csv(rejectedTable(all, true, ""))
	}
	return s.showRejected(c, receiptsView{})
}

// showRejected shows a part of the list, below what became of one of it.
func (s *Web) showRejected(c *call, receipts receiptsView) error {
	query := c.r.URL.Query()
	found, err := c.team.Rejected.Rejected(c.r.Context(), query.Get("after"))
	if err != nil {
		return err
	}
	return c.render(http.StatusOK, rejectedFrame(), rejectedView{
		Table:        rejectedTable(found.Items, c.viewer.MayEdit(), withQuery(rejectedPath, query, "csv", "rejected", "after", "")),
		Pager:        cursorPager(rejectedPath, query, next(found)),
		receiptsView: receipts,
	})
}

func rejectedTable(rejected []dmarcd.Rejected, mayRetry bool, csv string) Table {
	t := Table{
		ID: "rejected", Caption: "Rejected", CSV: csv,
		Columns: []Column{
			{Title: "Received"},
			{Title: "Name", Wide: true, Note: "Member"},
			{Title: "Came by"},
			{Title: "Looks like"},
			{Title: "Size"},
			{Title: "Reason", Wide: true},
			{Title: "Actions"},
		},
		Empty: Empty{"Nothing was rejected", "Everything that came in could be read.", Link{}},
	}
	for _, r := range rejected {
		path := Prefix + "/reports/rejected/" + r.ID.String()
		kind := string(r.Kind)
		if kind == "" {
			kind = "nothing known"
		}
		name := r.Name
		if name == "" {
			name = "without a name"
		}
		last := text("Original").linked(path + "/original")
		if mayRetry {
			last = actions(Action{Label: "Read again", Path: path + "/retry"}, Action{
				Label: "Delete", Path: path + "/delete", Danger: true, Question: "Delete this item and its original?",
			})
			last.Text, last.Href = "Original", path+"/original"
		}
		t.Rows = append(t.Rows, []Cell{
			at(r.ReceivedAt), text(name).noted(r.Member), text(string(r.Intake)), text(kind), text(size(r.Size)), text(r.Reason), last,
		})
	}
	return t
}

func (s *Web) rejectedOriginal(c *call) error {
	found, err := c.team.Rejected.RejectedOriginal(c.r.Context(), c.params["id"])
	if err != nil {
		return err
	}
	return c.download(found)
}

// retry reads it again, and shows what came of it above the list.
func (s *Web) retry(c *call) error {
	receipts, err := c.team.Rejected.Retry(c.r.Context(), c.params["id"])
	if err != nil {
		return err
	}
	return s.showRejected(c, receiptsView{receiptTable(readFile{receipts: receipts}), true})
}
