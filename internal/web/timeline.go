package web

import (
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/service"
)

// Timeline is how the messages of a domain moved, and what happened to it.
type Timeline struct {
	// Days has a value for each day of the period, Counts their sum, Before that
	// of the period before it.
	Days           []insight.DayCounts
	Counts, Before dmarcd.Counts
	// Events are those of the period, the latest first.
	Events []dmarcd.Event
}

// maxTimelineEvents bounds the events of a timeline.
const maxTimelineEvents = 200

func (c *call) timeline(domain string, period Period) (Timeline, error) {
	var found Timeline
	counted, err := c.team.DomainDaily(c.r.Context(), domain, period.withBefore(), 2*period.Len())
	if err != nil {
		return found, err
	}
	found.Days, found.Counts, found.Before = series(counted, period)
	until := service.Cursor{At: dayTime(period.To + 1)}
	events, err := c.team.Events(c.r.Context(), service.EventFilter{Domain: domain}, until, maxTimelineEvents)
	found.Events = since(events, dayTime(period.From))
	return found, err
}

type timelineView struct {
	domainView
	Timeline
	Period      PeriodChoice
	Chart       Chart
	Disposition Chart
	Events      Table
	// Empty is shown where no mail was reported.
	Empty Empty
}

func (s *Web) timeline(c *call) error {
	page, head, err := s.domainPage(c, "timeline", "Timeline")
	if err != nil {
		return err
	}
	page.Charts = true
	path, query := domainPath(head.Head.Name), c.r.URL.Query()
	period := periodOf(query, s.options.Now())
	found, err := c.timeline(head.Head.Name, period)
	if err != nil {
		return err
	}
	view := timelineView{
		domainView: head, Timeline: found,
		Period: periodChoice(path, query, period, s.options.Now()),
		Chart:  messageChart("messages", countsSentence(found.Counts), found.Days, policyMarks(found.Events)),
		Events: eventTable(found.Events),
		Empty: Empty{
			"No messages were reported", "Choose more days, or see in the set-up guide whether reports come here.",
			Link{"Set-up guide", path + "/setup"},
		},
	}
	view.Disposition = dispositionChart(found)
	view.Chart.CSV = withQuery(path, query, "csv", "messages")
	view.Disposition.CSV = withQuery(path, query, "csv", "disposition")
	view.Events.CSV = withQuery(path, query, "csv", "events")
	switch {
	case c.wantsCSV("messages"):
		return c.csv(view.Chart.table())
	case c.wantsCSV("disposition"):
		return c.csv(view.Disposition.table())
	case c.wantsCSV("events"):
		return c.csv(view.Events)
	}
	return c.render(http.StatusOK, page, view)
}

// dispositionChart shows what receivers did, by their own word.
func dispositionChart(found Timeline) Chart {
	chart := Chart{
		Kind: "days", ID: "disposition", Title: "What receivers did",
		Summary: number(found.Counts.Rejected) + " messages were rejected and " + number(found.Counts.Quarantined) + " quarantined.",
		Labels:  []string{"Day (UTC)", "Delivered", "Quarantined", "Rejected"}, Tones: []string{"quiet", "warning", "bad"},
	}
	for _, d := range found.Days {
		delivered := d.Total() - d.Quarantined - d.Rejected
		chart.Days = append(chart.Days, ChartDay{d.Day, []int64{delivered, d.Quarantined, d.Rejected}})
	}
	return chart
}

// policyMarks are the changes of the policy, the earliest first.
func policyMarks(events []dmarcd.Event) []Mark {
	var marks []Mark
	for i := len(events) - 1; i >= 0; i-- {
		e := events[i]
		if e.Kind == dmarcd.PolicyLoosened || e.Kind == dmarcd.PolicyTightened {
			marks = append(marks, Mark{dmarcd.DayOf(e.At), orNothing(e.Before) + " → " + orNothing(e.After)})
		}
	}
	return marks
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

func eventTable(events []dmarcd.Event) Table {
	t := Table{
		ID: "events", Caption: "What happened",
		Columns: []Column{{Title: "When"}, {Title: "What"}, {Title: "Before", Wide: true}, {Title: "After", Wide: true}},
		Empty:   Empty{"Nothing happened", "No record, policy or finding changed in this time.", Link{}},
	}
	for _, e := range events {
		t.Rows = append(t.Rows, []Cell{at(e.At), eventCell(e.Kind), code(e.Before), code(e.After)})
	}
	return t
}

// eventCell puts the kind of an event into words.
func eventCell(kind dmarcd.EventKind) Cell {
	cell := Cell{Kind: CellBadge}
	switch kind {
	case dmarcd.RecordAppeared:
		cell.Text, cell.Tone = "record appeared", "info"
	case dmarcd.RecordChanged:
		cell.Text, cell.Tone = "record changed", "info"
	case dmarcd.RecordVanished:
		cell.Text, cell.Tone = "record vanished", "bad"
	case dmarcd.PolicyLoosened:
		cell.Text, cell.Tone = "policy loosened", "warning"
	case dmarcd.PolicyTightened:
		cell.Text, cell.Tone = "policy tightened", "good"
	case dmarcd.FindingAppeared:
		cell.Text, cell.Tone = "new finding", "warning"
	case dmarcd.FindingMended:
		cell.Text, cell.Tone = "mended", "good"
	case dmarcd.ChecksSuspended:
		cell.Text, cell.Tone = "checks suspended", "bad"
	case dmarcd.HeldReport:
		cell.Text, cell.Tone = "report held", "warning"
	default:
		cell.Text = string(kind)
	}
	return cell
}
