package web

import (
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// Timeline contains the messages and events of a domain.
type Timeline struct {
	service.Series
	// Marks are the changes of DNS and of the policy in the period.
	Marks []ui.Mark
}

func (c *call) timeline(domain string, period ui.Period) (Timeline, error) {
	var found Timeline
	daily := func(days dmarcd.Days, limit int) ([]service.DailyCounts, error) {
		return c.team.DomainDaily(c.r.Context(), domain, days, limit)
	}
	counted, err := daily(period.WithBefore(), 2*period.Len())
	if err != nil {
		return found, err
	}
	found.Series = service.NewSeries(counted, period.From, period.To)
	if err := compare(&found.Series, period, daily); err != nil {
		return found, err
	}
	found.Marks, err = c.dnsMarks(domain, period)
	return found, err
}

// dispositionChart shows the actions of receivers, as reported.
func dispositionChart(found Timeline) ui.Chart {
	chart := ui.Chart{
		Kind: "days", ID: "disposition", Title: "What happened to mail",
		Summary: dmarcd.FormatNumber(found.Counts.Rejected) + " messages were rejected and " + dmarcd.FormatNumber(found.Counts.Quarantined) + " went to the spam folder.",
		Labels:  []string{"Day (UTC)", "Delivered", "Spam folder", "Rejected"}, Tones: []string{"quiet", "warning", "bad"},
	}
	for _, d := range found.Days {
		delivered := d.Total() - d.Quarantined - d.Rejected
		chart.Days = append(chart.Days, ui.ChartDay{Day: d.Day, Values: []int64{delivered, d.Quarantined, d.Rejected}})
	}
	return chart
}

// eventDiff is the difference between the records before and after an event, nil if it is
// not about a record: the summary of other events says everything.
func eventDiff(e dmarcd.Event) []ui.DiffPart {
	switch e.Kind {
	case dmarcd.RecordAppeared, dmarcd.RecordChanged, dmarcd.RecordRemoved:
		return ui.DiffWords(e.Before, e.After)
	}
	return nil
}

// eventCell is the name of an event kind.
func eventCell(kind dmarcd.EventKind) ui.Cell {
	cell := ui.Cell{Kind: ui.CellBadge}
	switch kind {
	case dmarcd.RecordAppeared:
		cell.Text, cell.Tone = "record appeared", "info"
	case dmarcd.RecordChanged:
		cell.Text, cell.Tone = "record changed", "info"
	case dmarcd.RecordRemoved:
		cell.Text, cell.Tone = "record removed", "bad"
	case dmarcd.PolicyWeakened:
		cell.Text, cell.Tone = "policy weakened", "warning"
	case dmarcd.PolicyStrengthened:
		cell.Text, cell.Tone = "policy strengthened", "good"
	case dmarcd.FindingAppeared:
		cell.Text, cell.Tone = "new finding", "warning"
	case dmarcd.FindingResolved:
		cell.Text, cell.Tone = "finding ended", "info"
	case dmarcd.ChecksSuspended:
		cell.Text, cell.Tone = "checks suspended", "bad"
	case dmarcd.HeldReport:
		cell.Text, cell.Tone = "report held", "warning"
	case dmarcd.WebhookDisabled:
		cell.Text, cell.Tone = "webhook disabled", "bad"
	case dmarcd.WebhookTest:
		cell.Text, cell.Tone = "webhook test", "info"
	default: // incidents: their kind is readable
		cell.Text = strings.NewReplacer(".", " ", "_", " ").Replace(string(kind))
		cell.Tone = map[dmarcd.Level]string{dmarcd.LevelError: "bad", dmarcd.LevelWarning: "warning", dmarcd.LevelInfo: "info"}[kind.Level()]
	}
	return cell
}
