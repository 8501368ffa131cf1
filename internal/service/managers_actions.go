package service

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/phrase"
)

// doneKinds are the events that a summary for managers mentions.
var doneKinds = []dmarcd.EventKind{dmarcd.PolicyStrengthened, dmarcd.PolicyWeakened, dmarcd.RecordAppeared, dmarcd.RecordRemoved, dmarcd.FindingResolved}

// summarizeDone sets what was done in the period. Equal events are one line.
func (t *Team) summarizeDone(ctx context.Context, s *ManagerSummary, domains []dmarcd.Domain) error {
	var done doneList
	tests := make(map[string]string)
	for _, domain := range domains {
		tests[domain.Name] = summaryRow(domain).Tests
		if day := dmarcd.DayOf(domain.CreatedAt); day >= s.From && day <= s.To {
			done.add(day, domain.Name, "was added to the monitoring")
		}
	}
	for _, kind := range doneKinds {
		events, err := t.team.Events(ctx, EventFilter{Domain: s.Domain, Kinds: []dmarcd.EventKind{kind}, Times: TimesOf(dmarcd.Days{From: &s.From, To: &s.To})}, Cursor{}, summaryEvents)
		if err != nil {
			return err
		}
		for _, e := range events {
			text := doneText(e)
			if kind == dmarcd.PolicyStrengthened && e.After == tests[e.Domain] {
				text = "tests the policy " + e.After + ", which receivers do not apply yet"
			}
			done.add(dmarcd.DayOf(e.At), e.Domain, text)
		}
	}
	slices.SortStableFunc(done, func(a, b *doneLine) int { return cmp.Compare(b.day, a.day) })
	for i, line := range done {
		if i == summaryDone {
			s.MoreDone = len(done) - summaryDone
			break
		}
		s.Done = append(s.Done, line.done())
	}
	return nil
}

// doneText says what happened to a domain.
func doneText(e dmarcd.Event) string {
	switch e.Kind {
	case dmarcd.PolicyStrengthened:
		return "has a stricter policy: " + cmp.Or(e.After, "none") + " instead of " + cmp.Or(e.Before, "no policy")
	case dmarcd.PolicyWeakened:
		return "has a weaker policy: " + cmp.Or(e.After, "no policy") + " instead of " + cmp.Or(e.Before, "none")
	case dmarcd.RecordAppeared:
		return "has a DMARC record now"
	case dmarcd.RecordRemoved:
		return "lost its DMARC record"
	}
	return fixedProblem
}

// fixedProblem is the text of resolved findings: their own text is for administrators.
const fixedProblem = "has a problem less in its DNS"

// doneLine is the same event of one or several domains.
type doneLine struct {
	day     dmarcd.Day
	text    string
	domains []string
	events  int64
}

type doneList []*doneLine

func (l *doneList) add(day dmarcd.Day, domain, text string) {
	at := slices.IndexFunc(*l, func(line *doneLine) bool { return line.text == text })
	if at < 0 {
		at = len(*l)
		*l = append(*l, &doneLine{text: text})
	}
	line := (*l)[at]
	line.day, line.events = max(line.day, day), line.events+1
	if !slices.Contains(line.domains, domain) {
		line.domains = append(line.domains, domain)
	}
}

func (l *doneLine) done() SummaryDone {
	if l.text == fixedProblem {
		return SummaryDone{Day: l.day, Text: phrase.Count(l.events, "problem") + " in the DNS of " + someNames(l.domains, len(l.domains)) + " " + plural(l.events, "was", "were") + " fixed."}
	}
	d := SummaryDone{Day: l.day, Text: someNames(l.domains, len(l.domains)) + " " + l.text + "."}
	if len(l.domains) == 1 {
		d.Domain = l.domains[0]
		return d
	}
	d.Text = someNames(l.domains, len(l.domains)) + " " + strings.NewReplacer("was ", "were ", "has ", "have ", "its ", "their ").Replace(l.text) + "."
	return d
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// someNames names the first of count domains.
func someNames(names []string, count int) string {
	if count <= summaryNames {
		switch count {
		case 1:
			return names[0]
		default:
			return strings.Join(names[:count-1], ", ") + " and " + names[count-1]
		}
	}
	return strings.Join(names[:summaryNames], ", ") + " and " + phrase.Number(int64(count-summaryNames)) + " more"
}

// Where names the domains of an action.
func (n SummaryNext) Where() string { return someNames(n.Domains, n.Count) }

// summarizeNext sets what is to be done, and returns the advice that it follows from.
func (t *Team) summarizeNext(ctx context.Context, s *ManagerSummary) ([]dmarcd.Advice, error) {
	var all []dmarcd.Advice
	var err error
	if s.Domain != "" {
		all = make([]dmarcd.Advice, 1)
		all[0], err = t.Advice(ctx, s.Domain)
	} else {
		all, _, err = t.AllAdvice(ctx, 0, summaryAdvice)
	}
	if err != nil {
		return nil, err
	}
	var next []*SummaryNext
	for i := range all {
		action := all[i].Next()
		if action == nil {
			continue
		}
		title, who := managerAction(action)
		at := slices.IndexFunc(next, func(n *SummaryNext) bool { return n.Title == title })
		if at < 0 {
			at = len(next)
			next = append(next, &SummaryNext{Action: action.ID, Title: title, Who: who})
		}
		n := next[at]
		n.Count++
		if len(n.Domains) < summaryNames {
			n.Domains = append(n.Domains, all[i].Domain)
		}
		n.Effect.LegitimateAffected = dmarcd.AddCount(n.Effect.LegitimateAffected, action.LegitimateAffected)
		n.Effect.ForwarderAffected = dmarcd.AddCount(n.Effect.ForwarderAffected, action.ForwarderAffected)
		n.Effect.UnknownAffected = dmarcd.AddCount(n.Effect.UnknownAffected, action.UnknownAffected)
		n.Effect.SpoofingStopped = dmarcd.AddCount(n.Effect.SpoofingStopped, action.SpoofingStopped)
	}
	slices.SortStableFunc(next, func(a, b *SummaryNext) int { return cmp.Compare(waits(a.Action), waits(b.Action)) })
	s.MoreNext = max(0, len(next)-summaryNext)
	for _, n := range next[:min(len(next), summaryNext)] {
		s.Next = append(s.Next, *n)
	}
	return all, nil
}

// waits returns 1 for actions that happen by themselves.
func waits(action dmarcd.ActionID) int {
	if action == dmarcd.ActionWait || action == dmarcd.ActionCheck {
		return 1
	}
	return 0
}

// managerAction returns an action in words for managers, and who has to do it.
func managerAction(a *dmarcd.Action) (title, who string) {
	const dns, mail = "DNS administrator", "Email administrator"
	switch a.ID {
	case dmarcd.ActionCheck:
		return "Wait until the DNS of the domain answers", "Happens by itself"
	case dmarcd.ActionPublish:
		return a.Title, dns
	case dmarcd.ActionRepair:
		return "Correct the DMARC record: receivers cannot use it", dns
	case dmarcd.ActionLock:
		return "Publish the policy reject for a domain that sends no mail", dns
	case dmarcd.ActionReports:
		return "Have receivers send their reports to dmarcd", dns
	case dmarcd.ActionWait:
		return "Wait for more reports", "Happens by itself"
	case dmarcd.ActionAnswer:
		return "Decide whether a sender works for you", mail
	case dmarcd.ActionFix:
		return "Fix your senders whose mail fails", mail
	case dmarcd.ActionAccept:
		return "Decide about forwarded mail that the policy affects", mail
	case dmarcd.ActionTighten:
		return strings.Replace(a.Title, "p=", "the policy ", 1), dns
	}
	return a.Title, mail
}
