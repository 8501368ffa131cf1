package service

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/pdf"
	"github.com/dmarcd/dmarcd/internal/phrase"
)

// noValue stands for a figure that is not known, or that does not exist.
const noValue = "–"

// Title returns the name of the domain, or that a group stands for several.
func (r SummaryRow) Title() string {
	if r.Name != "" {
		return r.Name
	}
	return phrase.Number(int64(r.Domains)) + " more " + plural(int64(r.Domains), "domain", "domains")
}

// PolicyText returns the policy in words, "–" for a group.
func (r SummaryRow) PolicyText() string {
	switch {
	case r.Name == "":
		return noValue
	case r.Protection == UnknownYet:
		return "not known yet"
	case r.Policy == "":
		return "no policy"
	case r.Tests != "":
		return r.Policy + " (tests " + r.Tests + ")"
	}
	return r.Policy
}

// GradeText returns the grade, "–" if it is not known.
func (r SummaryRow) GradeText() string {
	if r.Grade == "" {
		return noValue
	}
	return r.Grade
}

// Share returns how much of the own mail passes, "–" if none was reported.
func (r SummaryRow) Share() string {
	own := r.Mail.Yours
	if own.Total() == 0 {
		return noValue
	}
	return phrase.Percent(own.Compliant, own.Total())
}

// BlockedText returns how much of the spoofed mail was blocked, "–" if none was reported.
func (r SummaryRow) BlockedText() string {
	spoofed := r.Mail.Spoofed.Total()
	if spoofed == 0 {
		return noValue
	}
	return phrase.Number(r.Blocked()) + " of " + phrase.Number(spoofed)
}

// Change returns by how many percentage points the share of own mail that passes differs from the
// previous period, "–" if one of them had no own mail or there is nothing to compare with.
func (r SummaryRow) Change() string {
	now, before := r.Mail.Yours, r.Before.Yours
	if now.Total() == 0 || before.Total() == 0 {
		return noValue
	}
	rate := func(c dmarcd.Counts) float64 { return float64(c.Compliant) / float64(c.Total()) * 100 }
	points := math.Round((rate(now)-rate(before))*10) / 10
	text := strconv.FormatFloat(math.Abs(points), 'f', 1, 64)
	switch {
	case points > 0:
		return "+" + text
	case points < 0:
		return "−" + text
	}
	return "±0"
}

// All returns the rows and groups.
func (s *ManagerSummary) All() []SummaryRow { return append(slices.Clone(s.Rows), s.Groups...) }

// SummaryFigure is a figure with its context.
type SummaryFigure struct{ Label, Value, Note string }

// Figures are the figures above the table.
func (s *ManagerSummary) Figures() []SummaryFigure {
	total := s.Total
	protected := SummaryFigure{"Domains protected", phrase.Number(int64(s.Count(Protected))) + " of " + phrase.Number(int64(total.Domains)), ""}
	own := SummaryFigure{"Own mail that passes", total.Share(), "of " + phrase.Count(total.Mail.Yours.Total(), "message")}
	if change := total.Change(); change != noValue {
		own.Note += ", " + change + " points"
	}
	spoofed := SummaryFigure{"Spoofed mail", phrase.Number(total.Mail.Spoofed.Total()), ""}
	if before := total.Before.Spoofed.Total(); s.Compared {
		spoofed.Note = phrase.Number(before) + " in the previous period"
	}
	blocked := SummaryFigure{"Spoofed mail blocked", noValue, ""}
	if n := total.Mail.Spoofed.Total(); n > 0 {
		blocked.Value, blocked.Note = phrase.Percent(total.Blocked(), n), total.BlockedText()
	}
	all := []SummaryFigure{own, spoofed, blocked}
	if s.Domain == "" {
		all = slices.Insert(all, 0, protected)
	}
	return all
}

// Heading returns the title of the report.
func (s *ManagerSummary) Heading() string {
	if s.Domain != "" {
		return "Email protection of " + s.Domain
	}
	return "Email protection of " + s.Team
}

// Period returns the days of the report in words.
func (s *ManagerSummary) Period() string {
	return phrase.Day(s.From) + " to " + phrase.Day(s.To) + " (UTC)"
}

// ChangeNote explains the column of changes.
func (s *ManagerSummary) ChangeNote() string {
	if !s.Compared {
		return "There are no reports about the previous period to compare with."
	}
	return fmt.Sprintf("Change: percentage points of own mail that passes, compared with the previous %d days.", s.To-s.From+1)
}

// EffectText returns what a stricter policy does, "" for other actions.
func (n SummaryNext) EffectText() string {
	if n.Action != dmarcd.ActionTighten {
		return ""
	}
	yours := "none"
	if n.Effect.LegitimateAffected > 0 {
		yours = phrase.Number(n.Effect.LegitimateAffected)
	}
	return "Of the mail of 30 days, it blocks " + phrase.Count(n.Effect.SpoofingStopped, "spoofed message") + " and " + yours + " of yours."
}

// SummaryColumns are the headings of the table of domains.
func SummaryColumns() []string {
	return []string{"Domain", "Grade", "Policy", "State", "Own mail passes", "Spoofed, blocked", "Change"}
}

// Glossary returns the terms as one text.
func (s *ManagerSummary) Glossary() string {
	parts := make([]string, len(s.Terms))
	for i, term := range s.Terms {
		parts[i] = term.Word + ": " + term.Meaning
	}
	return strings.Join(parts, ". ") + "."
}

// SummarySeries are the series of the chart, and ChartValues the values of a day.
func SummarySeries() []string {
	return []string{"Own mail, passes", "Own mail, fails", "Forwarded", "Spoofed", "Unknown"}
}

// ChartValues returns the messages of each of SummarySeries.
func ChartValues(c insight.ClassCounts) []int64 {
	return []int64{c.Yours.Compliant, c.Yours.NonCompliant, c.Forwarded.Total(), c.Spoofed.Total(), c.Unknown.Total()}
}

// chartColors are the colors of SummarySeries on paper.
var chartColors = []pdf.Color{{0x2f, 0x9e, 0x5b}, {0xd6, 0x45, 0x45}, {0x7f, 0x97, 0xb2}, {0x9b, 0x89, 0xa9}, {0xe0, 0xa0, 0x30}}

// summaryPDFBytes is about what drawing a PDF takes, in bytes.
const summaryPDFBytes = 16 << 20

// SummaryPDF returns the report as a PDF file.
func (t *Team) SummaryPDF(ctx context.Context, s ManagerSummary) ([]byte, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, err
	}
	release, err := t.service.options.Memory.Acquire(ctx, t.team.ID(), summaryPDFBytes)
	if err != nil {
		return nil, err
	}
	defer release()
	return s.document(t.service.options.Now()).Bytes()
}

// document returns the report in the form of a PDF.
func (s *ManagerSummary) document(now time.Time) pdf.Document {
	d := pdf.Document{
		Title: s.Heading(), Lead: s.Period() + ". Made by dmarcd on " + now.UTC().Format("2 Jan 2006, 15:04") + " UTC.", Conclusion: s.Conclusion,
		Notes: []string{s.Glossary()}, Created: now.UTC(),
	}
	for _, f := range s.Figures() {
		d.Figures = append(d.Figures, pdf.Figure(f))
	}
	if title, chart := s.pdfChart(); chart != nil {
		d.Sections = append(d.Sections, pdf.Section{Title: title, Chart: chart})
	}
	table := pdf.Table{}
	for i, width := range []float64{4.8, 1.2, 2.2, 2.6, 2.9, 3, 1.5} {
		table.Columns = append(table.Columns, pdf.Column{Title: SummaryColumns()[i], Width: width, Numbers: i > 3})
	}
	for _, r := range s.All() {
		table.Rows = append(table.Rows, []string{r.Title(), r.GradeText(), r.PolicyText(), string(r.Protection), r.Share(), r.BlockedText(), r.Change()})
	}
	if len(table.Rows) > 0 {
		d.Sections = append(d.Sections, pdf.Section{Title: "Domains", Table: &table, Note: s.ChangeNote()})
	}
	done := pdf.Table{Columns: []pdf.Column{{Title: "Day", Width: 2}, {Title: "What", Width: 12}}}
	for _, line := range s.Done {
		done.Rows = append(done.Rows, []string{line.When(), line.Text})
	}
	d.Sections = append(d.Sections, listed("What was done", done, "Nothing changed in this period.", s.MoreDone))
	next := pdf.Table{Columns: []pdf.Column{{Title: "What", Width: 7.7}, {Title: "Domains", Width: 6}, {Title: "Who", Width: 3.3}}}
	for _, n := range s.Next {
		next.Rows = append(next.Rows, []string{strings.TrimSpace(n.Title + ". " + n.EffectText()), n.Where(), n.Who})
	}
	d.Sections = append(d.Sections, listed("What is next", next, "Nothing to do.", s.MoreNext))
	return d
}

// listed returns a section with a table, or with a text if it is empty.
func listed(title string, table pdf.Table, empty string, more int) pdf.Section {
	if len(table.Rows) == 0 {
		return pdf.Section{Title: title, Note: empty}
	}
	s := pdf.Section{Title: title, Table: &table}
	if more > 0 {
		s.Note = phrase.Number(int64(more)) + " more."
	}
	return s
}

// pdfChart returns the chart with its title, by week if there are many days, nil if there is no mail.
func (s *ManagerSummary) pdfChart() (title string, chart *pdf.Chart) {
	const maxBars = 120
	perBar, unit := 1, "on the busiest day"
	title = "Messages per day"
	if len(s.Days) > maxBars {
		title, perBar, unit = "Messages per week", 7, "in the busiest week"
	}
	chart = &pdf.Chart{First: phrase.Day(s.From), Last: phrase.Day(s.To)}
	for i, name := range SummarySeries() {
		chart.Series = append(chart.Series, pdf.Series{Name: name, Color: chartColors[i]})
	}
	var most int64
	for days := range slices.Chunk(s.Days, perBar) {
		var sum insight.ClassCounts
		for _, day := range days {
			sum.Add(day.ClassCounts)
		}
		all := sum.All()
		most = max(most, all.Total())
		chart.Bars = append(chart.Bars, ChartValues(sum))
	}
	if most == 0 {
		return title, nil
	}
	chart.Most = phrase.Count(most, "message") + " " + unit
	return title, chart
}

// FileName returns the name of the report as a file.
func (s *ManagerSummary) FileName() string {
	return "dmarc-" + cmp.Or(s.Domain, "report") + "-" + s.To.String() + ".pdf"
}

// When returns the day in words.
func (d SummaryDone) When() string { return phrase.Day(d.Day) }
