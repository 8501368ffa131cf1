package web

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

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
func (c *call) dnsMarks(domain string, period ui.Period) ([]ui.Mark, error) {
	checks, err := c.team.Checks(c.r.Context(), dmarcd.Domain{Name: domain}, service.Cursor{At: (period.To + 1).Time()}, maxMarks)
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
		marks = append(marks, ui.Mark{Day: day, Text: text, Href: c.link(domainPath(domain) + "/changes")})
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
func (c *call) policyMarks(events []dmarcd.Event) []ui.Mark {
	var marks []ui.Mark
	for _, e := range events {
		if e.Kind != dmarcd.PolicyWeakened && e.Kind != dmarcd.PolicyStrengthened || len(marks) == maxMarks {
			continue
		}
		text := e.Domain + ": policy " + cmp.Or(e.Before, "nothing") + " → " + cmp.Or(e.After, "nothing")
		marks = append(marks, ui.Mark{Day: dmarcd.DayOf(e.At), Text: text, Href: c.link(domainPath(e.Domain) + "/changes")})
	}
	slices.Reverse(marks)
	return marks
}
