package web

import (
	"errors"
	"net/http"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

type testMailView struct {
	// Address is the test address, "" if this server receives no mail; Missing says why.
	Address, Missing string
	ExpiresAt        time.Time
	Most             int
	Mails            []testMailResult
	// Results is the path of the results alone.
	Results string
}

// testMailResult is how one mail authenticates.
type testMailResult struct {
	At               time.Time
	Conclusion, Tone string
	Advice           []string
	Methods          ui.Table
	// Relayed says that SPF cannot be judged.
	Relayed bool
}

func (s *Web) testMail(c *site.Call) error {
	view, err := s.testMails(c)
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, testMailPage(), view)
}

func testMailPage() site.Page {
	return site.Page{Template: "testmail", Title: "Test mail", Section: "Tools", Trail: toolsTrail()}
}

// testMailResults is the part of the page that changes.
func (s *Web) testMailResults(c *site.Call) error {
	view, err := s.testMails(c)
	if err != nil {
		return err
	}
	return c.Fragment(testMailPage(), "testmails", view)
}

func (s *Web) testMails(c *site.Call) (testMailView, error) {
	view := testMailView{Most: dmarcd.MaxTestMails, Results: toolsPath + "/mail/results"}
	address, err := c.Team.TestAddress(c.R.Context())
	if invalid := (*dmarcd.InvalidError)(nil); errors.As(err, &invalid) {
		view.Missing = invalid.Message
		return view, nil
	}
	if err != nil {
		return view, err
	}
	view.Address, view.ExpiresAt = address.Mailbox+"@"+s.options.ReportDomain, address.ExpiresAt
	for _, m := range address.Mails {
		view.Mails = append(view.Mails, newTestMailResult(m))
	}
	return view, nil
}

func newTestMailResult(m dmarcd.TestMail) testMailResult {
	r := testMailResult{At: m.At, Conclusion: phrase.TestMail(m), Advice: phrase.TestAdvice(m), Relayed: m.Relayed, Tone: "warning"}
	switch m.DMARC {
	case "pass":
		r.Tone = "good"
	case "fail":
		r.Tone = "bad"
	}
	if m.Problem == "" {
		r.Methods = methodTable(m)
	}
	return r
}

// methodTable shows the result of each method. A method that passes for another domain is never
// shown as a pass alone.
func methodTable(m dmarcd.TestMail) ui.Table {
	t := ui.Table{ID: "methods", Caption: "Results of the methods", Columns: []ui.Column{
		{Title: "Method"}, {Title: "Result"}, {Title: "Domain", Wide: true}, {Title: "Aligned with " + m.From}, {Title: "Reason", Wide: true},
	}}
	aligned := func(yes bool) ui.Cell {
		if yes {
			return ui.Cell{Kind: ui.CellBadge, Text: "aligned", Tone: "good"}
		}
		return ui.Cell{Kind: ui.CellBadge, Text: "not aligned", Tone: "warning"}
	}
	for _, s := range m.Signatures {
		t.Rows = append(t.Rows, []ui.Cell{ui.Text("DKIM").Noted("selector " + s.Selector), ui.Badge(s.Result), ui.Code(s.Domain), aligned(s.Aligned), ui.Text(s.Reason)})
	}
	if len(m.Signatures) == 0 {
		t.Rows = append(t.Rows, []ui.Cell{ui.Text("DKIM"), ui.Badge("none"), ui.Text("–"), ui.Text("–"), ui.Text("The mail is not signed.")})
	}
	if m.Relayed {
		t.Rows = append(t.Rows, []ui.Cell{ui.Text("SPF"), ui.Badge("unknown"), ui.Text("–"), ui.Text("–"), ui.Text("Cannot be judged: the mail came through a relay.")})
	} else {
		t.Rows = append(t.Rows, []ui.Cell{ui.Text("SPF"), ui.Badge(m.SPF), ui.Code(m.SPFDomain), aligned(m.SPFAligned), ui.Text("Sent from " + m.Client.String() + ".")})
	}
	record := ui.Text("There is no record.")
	if m.RecordDomain != "" {
		record = ui.Text("Policy: " + m.Policy + ".")
	}
	result := m.DMARC
	if result == "" {
		result = "unknown"
	}
	return ui.Table{ID: t.ID, Caption: t.Caption, Columns: t.Columns, Rows: append(t.Rows, []ui.Cell{ui.Text("DMARC"), ui.Badge(result), ui.Code(m.RecordDomain), ui.Text("–"), record})}
}
