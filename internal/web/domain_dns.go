package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
	"github.com/dmarcd/dmarcd/internal/wire"
	"github.com/dmarcd/dmarcd/spf"
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

type findingGroup struct {
	Title    string
	Level    string
	Findings []wire.Finding
}

func (s *Web) check(c *site.Call) error {
	page, head, err := s.domainPage(c, "domain_dns", "DNS")
	if err != nil {
		return err
	}
	view := checkView{domainView: head, MaxLookups: spf.MaxLookups, MaxVoids: spf.MaxVoids}
	latest, err := latestCheck(c, head.Head.Name)
	switch {
	case err == nil:
		view.Points, view.Legend = gradePoints(latest.Findings), gradeLegend()
		view.Check, view.Groups, view.Parts = &latest, groupFindings(latest), seenTable(latest, domainPath(head.Head.Name)+"/dns?csv=seen")
	case !errors.Is(err, dmarcd.ErrNotFound):
		return err
	}
	return c.Render(http.StatusOK, page, view, findingTable(latest.Findings), view.Parts)
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

// seenTable shows the result for each protocol: the record, or what was found instead.
func seenTable(check wire.StoredCheck, csv string) ui.Table {
	t := ui.Table{
		ID: "seen", Caption: "Records found", CSV: csv,
		Columns: []ui.Column{{Title: "Part", Wide: true}, {Title: "Status"}, {Title: "Record", Wide: true, Note: "Reason"}},
	}
	add := func(name, status string, text, reason wire.Text) {
		t.Rows = append(t.Rows, []ui.Cell{ui.Text(name), ui.Badge(status), ui.Code(string(text)).Noted(string(reason))})
	}
	add("DMARC", check.DMARC.Status, check.DMARC.Record, check.DMARC.Reason)
	add("SPF", check.SPF.Status, check.SPF.Record, check.SPF.Reason)
	for _, key := range check.DKIM {
		add("DKIM "+key.Selector, key.Status, key.Record, key.Reason)
	}
	for _, host := range check.MX {
		add("MX", strings.ReplaceAll(host.Status, "_", " "), wire.Text(host.Host), "")
	}
	add("MTA-STS", check.MTASTS.Status, check.MTASTS.Record, check.MTASTS.Reason)
	add("TLS-RPT", check.TLSRPT.Status, check.TLSRPT.Record, check.TLSRPT.Reason)
	add("BIMI", check.BIMI.Status, check.BIMI.Record, check.BIMI.Reason)
	add("DANE", check.DANE.Status, "", check.DANE.Reason)
	add("DNSSEC", check.DNSSEC.Status, check.DNSSEC.Zone, check.DNSSEC.Reason)
	return t
}

func findingTable(findings []wire.Finding) ui.Table {
	t := ui.Table{ID: "findings", Columns: []ui.Column{
		{Title: "Finding"}, {Title: "Level"}, {Title: "What"}, {Title: "Why"}, {Title: "Fix"}, {Title: "Record"}, {Title: "Points"}, {Title: "RFC"},
	}}
	for _, f := range findings {
		t.Rows = append(t.Rows, []ui.Cell{ui.Text(f.ID), ui.Text(f.Level), ui.Text(f.What), ui.Text(f.Why), ui.Text(string(f.Fix)), ui.Text(string(f.Record)), ui.Count(int64(f.Points)), ui.Text(f.RFC)})
	}
	return t
}

func (s *Web) verify(c *site.Call, domain dmarcd.Domain, _ url.Values) error {
	if err := c.Team.Examine(c.R.Context(), domain.Name); err != nil {
		return err
	}
	checked, err := c.Team.Domain(c.R.Context(), domain.Name)
	done := "domain-checked"
	if checked.KnownAt.Before(checked.CheckedAt) {
		done = "domain-unanswered"
	}
	return c.Finish(err, domainPath(domain.Name)+"/dns", done)
}

// latestCheck returns the latest check of a domain, or dmarcd.ErrNotFound.
func latestCheck(c *site.Call, domain string) (wire.StoredCheck, error) {
	stored, err := c.Team.LatestCheck(c.R.Context(), dmarcd.Domain{Name: domain})
	if err != nil {
		return wire.StoredCheck{}, err
	}
	return wire.NewStoredCheck(stored), nil
}
