package web

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web/ui"
	"github.com/dmarcd/dmarcd/internal/wire"
)

type checkView struct {
	domainView
	// Check is nil before the first check of the domain.
	Check  *wire.StoredCheck
	Groups []findingGroup
	Parts  ui.Table
	// Points are the points of the findings, each kind counted once; Legend describes the
	// scale of grades.
	Points int
	Legend string
	// MaxLookups and MaxVoids are the SPF limits.
	MaxLookups, MaxVoids int
}

// The SPF limits of receivers (RFC 7208 §4.6.4).
const (
	maxSPFLookups = 10
	maxSPFVoids   = 2
)

type findingGroup struct {
	Title    string
	Level    string
	Findings []wire.Finding
}

// checkPart is the result for one protocol.
type checkPart struct {
	Name, Status string
	// Text is the record, or the result without one.
	Text   string
	Reason string
}

func (s *Web) check(c *call) error {
	page, head, err := s.domainPage(c, "check", "DNS")
	if err != nil {
		return err
	}
	view := checkView{domainView: head, MaxLookups: maxSPFLookups, MaxVoids: maxSPFVoids}
	latest, err := c.latestCheck(head.Head.Name)
	switch {
	case err == nil:
		view.Points, view.Legend = gradePoints(latest.Findings), gradeLegend()
		view.Check, view.Groups, view.Parts = &latest, groupFindings(latest), seenTable(checkParts(latest), domainPath(head.Head.Name)+"/dns?csv=seen")
	case !errors.Is(err, dmarcd.ErrNotFound):
		return err
	}
	return c.render(http.StatusOK, page, view, findingTable(latest.Findings), view.Parts)
}

// gradePoints sums the points of findings, each kind counted once.
func gradePoints(findings []wire.Finding) (points int) {
	counted := map[string]bool{}
	for _, f := range findings {
		if !counted[f.ID] {
			counted[f.ID] = true
			points += f.Points
		}
	}
	return points
}

// gradeLegend describes the points of each grade.
func gradeLegend() string {
	var b strings.Builder
	for i, step := range dmarcd.Grades() {
		if i == 0 {
			fmt.Fprintf(&b, "%s: %d points", step.Grade, step.Points)
			continue
		}
		fmt.Fprintf(&b, ", %s: up to %d", step.Grade, step.Points)
	}
	return b.String() + ", " + dmarcd.WorstGrade + ": more."
}

// groupFindings groups the findings by level, worst first, without the next step, which
// is shown above.
func groupFindings(check wire.StoredCheck) []findingGroup {
	groups := []findingGroup{
		{Title: "Fix now", Level: string(dmarcd.LevelError)},
		{Title: "Fix soon", Level: string(dmarcd.LevelWarning)},
		{Title: "Worth knowing", Level: string(dmarcd.LevelInfo)},
		{Title: "Looks good", Level: string(dmarcd.LevelGood)},
	}
	for i := range groups {
		for _, f := range check.Findings {
			isNext := check.NextStep != nil && f.ID == check.NextStep.ID && f.What == check.NextStep.What
			if f.Level == groups[i].Level && !isNext {
				groups[i].Findings = append(groups[i].Findings, f)
			}
		}
	}
	return groups
}

func checkParts(check wire.StoredCheck) []checkPart {
	parts := []checkPart{
		{"DMARC", check.DMARC.Status, check.DMARC.Record, check.DMARC.Reason},
		{"SPF", check.SPF.Status, check.SPF.Record, check.SPF.Reason},
	}
	for _, key := range check.DKIM {
		parts = append(parts, checkPart{"DKIM " + key.Selector, key.Status, key.Record, key.Reason})
	}
	for _, host := range check.MX {
		parts = append(parts, checkPart{"MX", host.Status, host.Host, ""})
	}
	return append(parts,
		checkPart{"MTA-STS", check.MTASTS.Status, check.MTASTS.Record, check.MTASTS.Reason},
		checkPart{"TLS-RPT", check.TLSRPT.Status, check.TLSRPT.Record, check.TLSRPT.Reason},
		checkPart{"BIMI", check.BIMI.Status, check.BIMI.Record, check.BIMI.Reason},
		checkPart{"DANE", check.DANE.Status, "", check.DANE.Reason},
		checkPart{"DNSSEC", check.DNSSEC.Status, check.DNSSEC.Zone, check.DNSSEC.Reason},
	)
}

func seenTable(parts []checkPart, csv string) ui.Table {
	t := ui.Table{
		ID: "seen", Caption: "Records found", CSV: csv,
		Columns: []ui.Column{{Title: "Part", Wide: true}, {Title: "Status"}, {Title: "Record", Wide: true, Note: "Reason"}},
	}
	for _, p := range parts {
		t.Rows = append(t.Rows, []ui.Cell{ui.Text(p.Name), ui.Badge(p.Status), ui.Code(p.Text).Noted(p.Reason)})
	}
	return t
}

func findingTable(findings []wire.Finding) ui.Table {
	t := ui.Table{ID: "findings", Columns: []ui.Column{
		{Title: "Finding"}, {Title: "Level"}, {Title: "What"}, {Title: "Why"}, {Title: "Fix"}, {Title: "Record"}, {Title: "Points"}, {Title: "RFC"},
	}}
	for _, f := range findings {
		t.Rows = append(t.Rows, []ui.Cell{ui.Text(f.ID), ui.Text(f.Level), ui.Text(f.What), ui.Text(f.Why), ui.Text(f.Fix), ui.Text(f.Record), ui.Count(int64(f.Points)), ui.Text(f.RFC)})
	}
	return t
}

func (s *Web) verify(c *call) error {
	domain, err := c.team.Domain(c.r.Context(), c.params.Get("domain"))
	if err != nil {
		return err
	}
	if err := c.team.Examine(c.r.Context(), domain.Name); err != nil {
		return err
	}
	checked, err := c.team.Domain(c.r.Context(), domain.Name)
	done := "domain-checked"
	if checked.KnownAt.Before(checked.CheckedAt) {
		done = "domain-unanswered"
	}
	return c.finish(err, domainPath(domain.Name)+"/dns", done)
}
