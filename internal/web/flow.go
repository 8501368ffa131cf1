package web

import "github.com/dmarcd/dmarcd/internal/insight"

// flowChart shows the way of mail from sender to what receivers did.
func flowChart(flows []insight.Flow, csv string) Chart {
	chart := Chart{
		Kind: "flow", ID: "flow", Title: "From sender to inbox", CSV: csv,
		Summary: "How mail came from its senders, what authentication said, and what receivers did with it.",
		Labels:  []string{"Sender", "Authentication", "Receivers", "Messages"},
	}
	for _, f := range flows {
		chart.Flows = append(chart.Flows, ChartFlow{
			Stops:    []ChartStop{{f.Sender, "quiet"}, authentication(f), fate(f)},
			Messages: f.Messages,
		})
	}
	return chart
}

func authentication(f insight.Flow) ChartStop {
	switch {
	case f.SPF && f.DKIM:
		return ChartStop{"SPF and DKIM pass", "good"}
	case f.SPF:
		return ChartStop{"SPF alone passes", "good"}
	case f.DKIM:
		return ChartStop{"DKIM alone passes", "good"}
	}
	return ChartStop{"nothing passes", "bad"}
}

func fate(f insight.Flow) ChartStop {
	switch f.Disposition {
	case "quarantine":
		return ChartStop{"quarantined", "warning"}
	case "reject":
		return ChartStop{"rejected", "bad"}
	}
	return ChartStop{"delivered", "good"}
}
