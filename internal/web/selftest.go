package web

import (
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

type selfTestView struct {
	domainView
	Test  dmarcd.SelfTest
	Table ui.Table
}

// selfTest shows the progress of a synthetic report.
func (s *Web) selfTest(c *call) error {
	page, head, err := s.domainPage(c, "selftest", "Self-test")
	if err != nil {
		return err
	}
	test, err := c.team.SelfTest(c.r.Context(), head.Head.Name)
	if err != nil {
		return err
	}
	t := ui.Table{
		ID: "stages", Caption: "Stages",
		Columns: []ui.Column{{Title: "Stage"}, {Title: "Result"}, {Title: "Detail", Wide: true}, {Title: "Milliseconds", Numeric: true}},
	}
	for _, stage := range test.Stages {
		result := ui.Cell{Kind: ui.CellBadge, Text: "failed", Tone: "bad"}
		if stage.Passed {
			result = ui.Cell{Kind: ui.CellBadge, Text: "passed", Tone: "good"}
		}
		t.Rows = append(t.Rows, []ui.Cell{ui.Text(stage.Name), result, ui.Text(stage.Detail), ui.Count(stage.Took.Milliseconds())})
	}
	return c.render(http.StatusOK, page, selfTestView{head, test, t})
}
