package web

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// figure is a number with its name and its context.
type figure struct{ Name, Value, Note string }

// figures are the counts of a period, compared with the previous one of as many days. Without
// messages before there is no comparison.
func figures(now, before dmarcd.Counts, days int) []figure {
	all := []figure{
		{"Messages", phrase.Number(now.Total()), ""},
		{"Passes DMARC", phrase.Percent(now.Compliant, now.Total()), ""},
		{"Fails DMARC", phrase.Number(now.NonCompliant), ""},
		{"Spam folder or rejected", phrase.Number(now.Quarantined + now.Rejected), "as reported by receivers"},
	}
	if now.Unverified > 0 {
		all = append(all, figure{"Share from unverified reports", phrase.Percent(now.Unverified, now.Total()), phrase.Count(now.Unverified, "message")})
	}
	if before.Total() > 0 {
		previous := "previous " + phrase.Count(int64(days), "day")
		all[0].Note = change(now.Total(), before.Total(), previous)
		all[1].Note = points(now, before, previous)
		all[2].Note = change(now.NonCompliant, before.NonCompliant, previous)
	}
	return all
}

// classFigures are the figures of the overview, of a period with that many days.
func classFigures(mail service.ClassSeries, days int) []figure {
	all, spoofed := mail.Sum.All(), mail.Sum.Spoofed
	figures := []figure{
		{"Messages", phrase.Number(all.Total()), ""},
		{"Yours passing", phrase.Percent(mail.Sum.Yours.Compliant, mail.Sum.Yours.Total()), "of " + phrase.Number(mail.Sum.Yours.Total())},
		{"Spoofed", phrase.Number(spoofed.Total()), phrase.Percent(spoofed.Total(), all.Total()) + " of all messages"},
		{"Blocked", phrase.Percent(spoofed.Quarantined+spoofed.Rejected, spoofed.Total()), "of spoofed mail went to spam or was rejected"},
	}
	if mail.Sum.Yours.Total() == 0 {
		figures[1].Note = "no mail of yours was reported"
	}
	if spoofed.Total() == 0 {
		figures[2].Note, figures[3].Note = "no spoofed mail was reported", "no spoofed mail"
	}
	if mail.Before.Total() > 0 {
		figures[0].Note = change(all.Total(), mail.Before.Total(), "previous "+phrase.Count(int64(days), "day"))
	}
	return figures
}

// change compares two numbers, such as "−7 % vs previous 30 days".
func change(now, before int64, previous string) string {
	const many = 10 // above it, a percentage means little
	switch {
	case before == 0:
		return "none in the " + previous
	case now >= many*before:
		return phrase.Number(before) + " in the " + previous
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
		Kind: "days", ID: "messages", Title: "Messages", Summary: summary, Marks: marks,
		Labels: []string{"Passes DMARC", "Fails DMARC"}, Tones: []string{"good", "bad"},
	}
	for _, d := range days {
		chart.Days = append(chart.Days, ui.ChartDay{Day: d.Day, Values: []int64{d.Compliant, d.NonCompliant}})
	}
	return chart.PerDay()
}

// classChart shows the messages of each day, stacked by the class of their sender and, for yours, by
// result.
func classChart(mail service.ClassSeries, marks []ui.Mark) ui.Chart {
	chart := ui.Chart{
		Kind: "days", ID: "messages", Title: "Messages", Summary: classSentence(mail.Sum), Marks: marks,
		Labels: []string{"Yours, passes", "Yours, fails", "Forwarded", "Spoofed", "Unknown"},
		Tones:  []string{"good", "bad", "forwarded", "spoofed", "warning"},
	}
	for _, d := range mail.Days {
		chart.Days = append(chart.Days, ui.ChartDay{Day: d.Day, Values: []int64{
			d.Yours.Compliant, d.Yours.NonCompliant, d.Forwarded.Total(), d.Spoofed.Total(), d.Unknown.Total(),
		}})
	}
	return chart.PerDay()
}

// classSentence says whose messages a chart shows.
func classSentence(c insight.ClassCounts) string {
	all := c.All()
	if all.Total() == 0 {
		return "No messages were reported in this period."
	}
	text := phrase.Count(all.Total(), "message") + ": "
	parts := []string{phrase.Number(c.Yours.Total()) + " yours"}
	for _, part := range []struct {
		counts dmarcd.Counts
		word   string
	}{{c.Forwarded, "forwarded"}, {c.Spoofed, "spoofed"}, {c.Unknown, "unknown"}} {
		if n := part.counts.Total(); n > 0 {
			parts = append(parts, phrase.Number(n)+" "+part.word)
		}
	}
	text += strings.Join(parts, ", ") + "."
	if n := c.Yours.Total(); n > 0 {
		text += " " + phrase.Percent(c.Yours.Compliant, n) + " of yours pass DMARC."
	}
	return text
}

// flowChart shows the flow of mail from senders to the actions of receivers. classes are those of the
// senders by key, where they are known.
func flowChart(flows []insight.Flow, classes map[string]dmarcd.Class, asked mailQuery, csv string) ui.Chart {
	chart := ui.Chart{
		Kind: "flow", ID: "flow", Title: "From sender to inbox", CSV: csv,
		Summary: "Who sent the mail, how it was authenticated, and what receivers did with it.",
		Labels:  []string{"Sender", "Authentication", "Receivers", "Messages"},
	}
	asked.Group = insight.GroupSender
	for _, f := range flows {
		sender := ui.ChartStop{Text: f.Sender, Tone: "quiet"}
		if f.Key != "" {
			sender.Href = senderPath(asked, f.Key)
		}
		chart.Flows = append(chart.Flows, ui.ChartFlow{
			Stops:    []ui.ChartStop{sender, authentication(f, classes[f.Key]), fate(f)},
			Messages: f.Messages,
		})
	}
	return chart
}

// failing is how charts show mail that fails DMARC, by the class of its sender: only your own is red.
func failing(class dmarcd.Class) ui.ChartStop {
	switch class {
	case dmarcd.ClassYours, dmarcd.ClassService:
		return ui.ChartStop{Text: "yours, fails DMARC", Tone: "bad"}
	case dmarcd.ClassForwarder:
		return ui.ChartStop{Text: "forwarded, fails DMARC", Tone: "forwarded"}
	case dmarcd.ClassSpoofing:
		return ui.ChartStop{Text: "spoofed, fails DMARC", Tone: "spoofed"}
	case dmarcd.ClassUnknown:
		return ui.ChartStop{Text: "unknown, fails DMARC", Tone: "warning"}
	}
	return ui.ChartStop{Text: "fails DMARC", Tone: "quiet"}
}

func authentication(f insight.Flow, class dmarcd.Class) ui.ChartStop {
	switch {
	case f.SPF && f.DKIM:
		return ui.ChartStop{Text: "SPF and DKIM pass", Tone: "good"}
	case f.SPF:
		return ui.ChartStop{Text: "only SPF passes", Tone: "good"}
	case f.DKIM:
		return ui.ChartStop{Text: "only DKIM passes", Tone: "good"}
	}
	return failing(class)
}

func fate(f insight.Flow) ui.ChartStop {
	switch f.Disposition {
	case "quarantine":
		return ui.ChartStop{Text: "spam folder", Tone: "warning"}
	case "reject":
		return ui.ChartStop{Text: "rejected", Tone: "bad"}
	}
	return ui.ChartStop{Text: "delivered", Tone: "quiet"}
}

// countsSentence summarizes a chart of messages.
func countsSentence(c dmarcd.Counts) string {
	if c.Total() == 0 {
		return "No messages were reported in this period."
	}
	return phrase.Number(c.Total()) + " messages were reported; " + phrase.Percent(c.Compliant, c.Total()) + " pass DMARC."
}

// Timeline contains the messages and events of a domain.
type Timeline struct {
	service.Series
	// Marks are the changes of DNS and of the policy in the period.
	Marks []ui.Mark
}

func newTimeline(c *site.Call, domain string, period ui.Period) (Timeline, error) {
	var found Timeline
	daily := func(days dmarcd.Days, limit int) ([]service.DailyCounts, error) {
		return c.Team.DomainDaily(c.R.Context(), domain, days, limit)
	}
	counted, err := daily(period.WithBefore(), 2*period.Len())
	if err != nil {
		return found, err
	}
	found.Series = service.NewSeries(counted, period.From, period.To)
	if err := compare(&found.Before, period, daily); err != nil {
		return found, err
	}
	found.Marks, err = dnsMarks(c, domain, period)
	return found, err
}

// dispositionChart shows the actions of receivers, as reported.
func dispositionChart(found Timeline) ui.Chart {
	chart := ui.Chart{
		Kind: "days", ID: "disposition", Title: "What receivers did",
		Summary: phrase.Number(found.Counts.Rejected) + " messages were rejected and " + phrase.Number(found.Counts.Quarantined) + " went to the spam folder.",
		Labels:  []string{"Delivered", "Spam folder", "Rejected"}, Tones: []string{"quiet", "warning", "bad"},
	}
	for _, d := range found.Days {
		delivered := d.Total() - d.Quarantined - d.Rejected
		chart.Days = append(chart.Days, ui.ChartDay{Day: d.Day, Values: []int64{delivered, d.Quarantined, d.Rejected}})
	}
	return chart.PerDay()
}

// trendOf returns a value for each day of the period.
func trendOf(counted []dmarcd.DayCount, p ui.Period) []int64 {
	trend := make([]int64, p.Len())
	for _, c := range counted {
		trend[c.Day-p.From] = c.Total()
	}
	return trend
}

// compare removes the counts of the previous period unless messages were reported on its first
// day or in the week before: a partly covered period must not be compared. daily returns the
// days with messages.
func compare(counted *dmarcd.Counts, period ui.Period, daily func(dmarcd.Days, int) ([]service.DailyCounts, error)) error {
	if counted.Total() == 0 {
		return nil
	}
	first := period.Before().From
	from := first - 7
	earlier, err := daily(dmarcd.Days{From: &from, To: &first}, 1)
	if len(earlier) == 0 {
		*counted = dmarcd.Counts{}
	}
	return err
}

// teamClasses returns the messages of the team by class, with the previous period if it can be compared.
func teamClasses(c *site.Call, period ui.Period) (service.ClassSeries, error) {
	found, err := c.Team.Classes(c.R.Context(), "", period.From, period.To)
	if err != nil {
		return found, err
	}
	err = compare(&found.Before, period, func(days dmarcd.Days, limit int) ([]service.DailyCounts, error) {
		return c.Team.Daily(c.R.Context(), days, limit)
	})
	return found, err
}

// maxMarks limits the marks of a chart.
const maxMarks = 30

// markedFacts are the DNS changes that charts mark, with their descriptions.
var markedFacts = map[facts.Name]string{
	facts.NameDMARCRecord:  "DMARC record",
	facts.NameSPFRecord:    "SPF record",
	facts.NameSPFIncluded:  "SPF record of",
	facts.NameDKIMRecord:   "DKIM key",
	facts.NameMXHost:       "mail server",
	facts.NameMTASTSRecord: "MTA-STS record",
	facts.NameTLSRPTRecord: "TLS-RPT record",
	facts.NameBIMIRecord:   "BIMI record",
}

// dnsMarks are the days of a period on which the DNS or the policy of a domain changed,
// oldest first.
func dnsMarks(c *site.Call, domain string, period ui.Period) ([]ui.Mark, error) {
	checks, err := c.Team.Checks(c.R.Context(), dmarcd.Domain{Name: domain}, service.Times{}, service.Cursor{At: (period.To + 1).Time()}, maxMarks)
	if err != nil {
		return nil, err
	}
	var marks []ui.Mark
	for _, check := range slices.Backward(checks) {
		text := markText(check.Changes)
		if text == "" || check.FirstAt.Before(period.From.Time()) {
			continue
		}
		day := dmarcd.DayOf(check.FirstAt)
		if last := len(marks) - 1; last >= 0 && marks[last].Day == day {
			marks[last].Text += "; " + text
			continue
		}
		marks = append(marks, ui.Mark{Day: day, Text: text, Href: c.Link(domainPath(domain) + "/changes")})
	}
	return marks, nil
}

// markText describes the changes of a check, the policy first.
func markText(changes []facts.Change) string {
	var policy, others []string
	for _, change := range changes {
		words, marked := markedFacts[change.Fact]
		switch {
		case change.Fact == facts.NameDMARCApplied:
			policy = append(policy, "policy "+cmp.Or(change.Before, "nothing")+" → "+cmp.Or(change.After, "nothing"))
		case marked:
			others = append(others, strings.Join(strings.Fields(words+" "+change.Of+" "+changeVerb(change)), " "))
		}
	}
	return strings.Join(append(policy, others...), ", ")
}

func changeVerb(change facts.Change) string {
	switch {
	case change.Before == "":
		return "added"
	case change.After == "":
		return "removed"
	}
	return "changed"
}

// policyMarks are the latest policy changes among events, which are newest first.
func policyMarks(c *site.Call, events []dmarcd.Event) []ui.Mark {
	var marks []ui.Mark
	for _, e := range events {
		if e.Kind != dmarcd.PolicyWeakened && e.Kind != dmarcd.PolicyStrengthened || len(marks) == maxMarks {
			continue
		}
		text := e.Domain + ": policy " + cmp.Or(e.Before, "nothing") + " → " + cmp.Or(e.After, "nothing")
		marks = append(marks, ui.Mark{Day: dmarcd.DayOf(e.At), Text: text, Href: c.Link(domainPath(e.Domain) + "/changes")})
	}
	slices.Reverse(marks)
	return marks
}
