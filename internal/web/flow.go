package web

// Flow is how many messages of a sender went the same way.
type Flow struct {
	Sender string
	// SPF and DKIM tell which of them passed, aligned.
	SPF, DKIM bool
	// Disposition is what receivers did: none, quarantine or reject.
	Disposition string
	Messages    int64
}

// flowChart shows the way of mail from sender to what receivers did.
func flowChart(flows []Flow, csv string) Chart {
	chart := Chart{
		Kind: "flow", ID: "flow", Title: "From sender to inbox", CSV: csv,
		Summary: "How mail came from its senders, what authentication said, and what receivers did with it.",
		Labels:  []string{"Sender", "Authentication", "Receivers", "Messages"},
	}
	for _, f := range flows {
		chart.Flows = append(chart.Flows, ChartFlow{
			Stops:    []ChartStop{{f.Sender, "quiet"}, f.authentication(), f.fate()},
			Messages: f.Messages,
		})
	}
	return chart
}

func (f Flow) authentication() ChartStop {
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

func (f Flow) fate() ChartStop {
	switch f.Disposition {
	case "quarantine":
		return ChartStop{"quarantined", "warning"}
	case "reject":
		return ChartStop{"rejected", "bad"}
	}
	return ChartStop{"delivered", "good"}
}
