package web

import (
	"cmp"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

type rejectedView struct {
	Table ui.Table
	Pager ui.Pager
	// Receipts is the result of a retry.
	Receipts ui.Table
}

func rejectedFrame() site.Page {
	return site.Page{Template: "rejected", Title: "Rejected reports", Section: "Reports", Trail: []ui.Link{{Text: "Reports", Href: Prefix + "/reports"}}}
}

const rejectedPath = Prefix + "/reports/rejected"

const rejectedPerPage = 50

func (s *Web) rejected(c *site.Call) error { return s.showRejected(c, ui.Table{}) }

// showRejected shows a page of the list, below the result of a retry.
func (s *Web) showRejected(c *site.Call, receipts ui.Table) error {
	found, err := requested(c, "rejected", pages(rejectedPerPage, func(before service.Cursor, limit int) ([]dmarcd.Rejected, error) {
		return c.Team.Rejected(c.R.Context(), dmarcd.RejectedID(before.ID), limit)
	}, func(item dmarcd.Rejected) (time.Time, int64) { return item.ReceivedAt, int64(item.ID) }))
	if err != nil {
		return err
	}
	query := c.R.URL.Query()
	table := rejectedTable(found.Items, c.Viewer.MayEdit() || c.WantsCSV("rejected"), ui.WithQuery(rejectedPath, query, "csv", "rejected", "after", ""))
	return c.Render(http.StatusOK, rejectedFrame(), rejectedView{table, ui.CursorPager(rejectedPath, query, next(found)), receipts}, table)
}

func rejectedTable(rejected []dmarcd.Rejected, mayRetry bool, csv string) ui.Table {
	t := ui.Table{
		ID: "rejected", Caption: "Rejected reports", CSV: csv,
		Columns: []ui.Column{
			{Title: "Name", Wide: true, Note: "Member"},
			{Title: "Received"},
			{Title: "Arrived"},
			{Title: "Looks like"},
			{Title: "Size", Numeric: true},
			{Title: "Reason", Wide: true},
			{Title: "Actions"},
		},
		Empty: ui.Empty{Title: "No rejected reports", Advice: "Every report that was received could be read.", Action: ui.Link{}},
	}
	for _, r := range rejected {
		path := Prefix + "/reports/rejected/" + r.ID.String()
		kind := cmp.Or(string(r.Kind), "unknown")
		name := cmp.Or(r.Name, "unnamed")
		last := ui.Text("Original").Linked(path + "/original")
		if mayRetry {
			last = ui.Actions(ui.Action{Label: "Retry", Path: path + "/retry"}, ui.Action{
				Label: "Delete", Path: path + "/delete", Danger: true, Question: "Delete this item and its original?",
			})
			last.Text, last.Href = "Original", path+"/original"
		}
		t.Rows = append(t.Rows, []ui.Cell{
			ui.Text(name).Noted(r.Member), ui.At(r.ReceivedAt), ui.Text(arrival(r.Intake)), ui.Text(kind), ui.Figure(ui.Size(r.Size)), ui.Text(reasonSentence(r.Reason)), last,
		})
	}
	return t
}

// reasonSentence writes why a report was rejected as a sentence, without the kind of report, which has a column.
func reasonSentence(reason string) string {
	if kind, why, ok := strings.Cut(reason, " report rejected: "); ok && !strings.Contains(kind, " ") {
		reason = why
	}
	if reason == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(reason)
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(reason[size:], ".") + "."
}

func (s *Web) rejectedOriginal(c *site.Call, id dmarcd.RejectedID) error {
	original, err := c.Team.RejectedOriginal(c.R.Context(), id)
	if err != nil {
		return err
	}
	return download(c, id.String(), original)
}

// retry retries a rejected item, and shows the result above the list.
func (s *Web) retry(c *site.Call, id dmarcd.RejectedID) error {
	_, receipts, err := c.Team.Retry(c.R.Context(), id)
	if err != nil {
		return err
	}
	return s.showRejected(c, receiptTable(readFile{receipts: receipts}))
}
