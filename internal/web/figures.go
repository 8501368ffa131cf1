package web

import (
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// messageChart shows the messages of each day, stacked by result.
func messageChart(summary string, days []insight.DayCounts, marks []ui.Mark) ui.Chart {
	chart := ui.Chart{
		Kind: "days", ID: "messages", Title: "Messages per day", Summary: summary, Marks: marks,
		Labels: []string{"Day (UTC)", "Passes DMARC", "Fails DMARC"}, Tones: []string{"good", "bad"},
	}
	for _, d := range days {
		chart.Days = append(chart.Days, ui.ChartDay{Day: d.Day, Values: []int64{d.Compliant, d.NonCompliant}})
	}
	return chart
}

// flowChart shows the flow of mail from senders to the actions of receivers.
func flowChart(flows []insight.Flow, asked mailQuery, csv string) ui.Chart {
	chart := ui.Chart{
		Kind: "flow", ID: "flow", Title: "From sender to inbox", CSV: csv,
		Summary: "How mail came from its senders, what authentication said, and what receivers did with it.",
		Labels:  []string{"Sender", "Authentication", "Receivers", "Messages"},
	}
	asked.Group = insight.GroupNetwork
	for _, f := range flows {
		sender := ui.ChartStop{Text: f.Sender, Tone: "quiet"}
		if f.Key != "" {
			sender.Href = sourcePath(asked, f.Key)
		}
		chart.Flows = append(chart.Flows, ui.ChartFlow{
			Stops:    []ui.ChartStop{sender, authentication(f), fate(f)},
			Messages: f.Messages,
		})
	}
	return chart
}

func authentication(f insight.Flow) ui.ChartStop {
	switch {
	case f.SPF && f.DKIM:
		return ui.ChartStop{Text: "SPF and DKIM pass", Tone: "good"}
	case f.SPF:
		return ui.ChartStop{Text: "SPF alone passes", Tone: "good"}
	case f.DKIM:
		return ui.ChartStop{Text: "DKIM alone passes", Tone: "good"}
	}
	return ui.ChartStop{Text: "fails DMARC", Tone: "bad"}
}

func fate(f insight.Flow) ui.ChartStop {
	switch f.Disposition {
	case "quarantine":
		return ui.ChartStop{Text: "quarantined", Tone: "warning"}
	case "reject":
		return ui.ChartStop{Text: "rejected", Tone: "bad"}
	}
	return ui.ChartStop{Text: "delivered", Tone: "good"}
}
