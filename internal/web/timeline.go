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

// eventBadges are the name and the color of events about records, findings and settings.
var eventBadges = map[dmarcd.EventKind][2]string{
	dmarcd.RecordAppeared:     {"record appeared", "info"},
	dmarcd.RecordChanged:      {"record changed", "info"},
	dmarcd.RecordRemoved:      {"record removed", "bad"},
	dmarcd.PolicyWeakened:     {"policy weakened", "warning"},
	dmarcd.PolicyStrengthened: {"policy strengthened", "good"},
	dmarcd.FindingAppeared:    {"new finding", "warning"},
	dmarcd.FindingResolved:    {"finding ended", "info"},
	dmarcd.ChecksSuspended:    {"checks suspended", "bad"},
	dmarcd.HeldReport:         {"report held", "warning"},
	dmarcd.WebhookDisabled:    {"webhook disabled", "bad"},
	dmarcd.WebhookTest:        {"webhook test", "info"},
}

// eventCell is the name of an event kind. That of an incident is readable.
func eventCell(kind dmarcd.EventKind) ui.Cell {
	badge, ok := eventBadges[kind]
	if !ok {
		badge = [2]string{strings.NewReplacer(".", " ", "_", " ").Replace(string(kind)), levelTones[kind.Level()]}
	}
	return ui.Cell{Kind: ui.CellBadge, Text: badge[0], Tone: badge[1]}
}

// levelTones are the colors of levels.
var levelTones = map[dmarcd.Level]string{dmarcd.LevelError: "bad", dmarcd.LevelWarning: "warning", dmarcd.LevelInfo: "info"}
