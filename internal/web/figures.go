package web

import (
	"math"
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// figure is a number with its name and its context.
type figure struct{ Name, Value, Note string }

// figures are the counts of a period, compared with the previous one of as many days. Without
// messages before there is no comparison.
func figures(now, before dmarcd.Counts, days int) []figure {
	all := []figure{
		{"Messages", dmarcd.FormatNumber(now.Total()), ""},
		{"Passes DMARC", dmarcd.FormatShare(now.Compliant, now.Total()), ""},
		{"Fails DMARC", dmarcd.FormatNumber(now.NonCompliant), ""},
		{"Spam folder or rejected", dmarcd.FormatNumber(now.Quarantined + now.Rejected), "as reported by receivers"},
		{"From unverified reports", dmarcd.FormatShare(now.Unverified, now.Total()), "of all messages"},
	}
	if before.Total() > 0 {
		previous := "previous " + dmarcd.FormatCount(int64(days), "day")
		all[0].Note = change(now.Total(), before.Total(), previous)
		all[1].Note = points(now, before, previous)
		all[2].Note = change(now.NonCompliant, before.NonCompliant, previous)
	}
	return all
}

// change compares two numbers, such as "−7 % vs previous 30 days".
func change(now, before int64, previous string) string {
	const many = 10 // above it, a percentage means little
	switch {
	case before == 0:
		return "none in the " + previous
	case now >= many*before:
		return dmarcd.FormatNumber(before) + " in the " + previous
	}
	return signed(math.Round(float64(now-before)/float64(before)*100), 0) + " % vs " + previous
}

// points compares two pass rates, in percentage points. There were messages before.
func points(now, before dmarcd.Counts, previous string) string {
	if now.Total() == 0 {
		return "no mail in this period"
	}
	rate := func(c dmarcd.Counts) float64 { return float64(c.Compliant) / float64(c.Total()) * 100 }
	return signed(math.Round((rate(now)-rate(before))*10)/10, 1) + " points vs " + previous
}

// signed writes a rounded number with its sign.
func signed(n float64, digits int) string {
	switch text := strconv.FormatFloat(math.Abs(n), 'f', digits, 64); {
	case n > 0:
		return "+" + text
	case n < 0:
		return "−" + text
	}
	return "±0"
}

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
		Summary: "Who sent the mail, how it was authenticated, and what receivers did with it.",
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
		return ui.ChartStop{Text: "only SPF passes", Tone: "good"}
	case f.DKIM:
		return ui.ChartStop{Text: "only DKIM passes", Tone: "good"}
	}
	return ui.ChartStop{Text: "fails DMARC", Tone: "bad"}
}

func fate(f insight.Flow) ui.ChartStop {
	switch f.Disposition {
	case "quarantine":
		return ui.ChartStop{Text: "spam folder", Tone: "warning"}
	case "reject":
		return ui.ChartStop{Text: "rejected", Tone: "bad"}
	}
	return ui.ChartStop{Text: "delivered", Tone: "good"}
}
