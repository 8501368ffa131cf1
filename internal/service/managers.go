package service

import (
	"cmp"
	"context"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/phrase"
)

// Limits of the lists in a summary for managers, so that it stays readable on paper.
const (
	// summaryRows is how many domains are listed one by one if there are more than a few more.
	summaryRows, fewMoreRows = 12, 3
	summaryDone              = 8
	summaryNext              = 6
	// summaryNames is how many domains a line names.
	summaryNames = 3
	// summaryEvents limits the events of each kind that are read, summaryAdvice the domains whose
	// next action is computed.
	summaryEvents, summaryAdvice = 1000, 1000
	// domainsPerRead is the size of a page of domains.
	domainsPerRead = 1000
)

// Protection is how well receivers protect a domain against spoofing, in words for managers.
type Protection string

// The protections, the worst first.
const (
	Unprotected     Protection = "not protected"
	PartlyProtected Protection = "partly protected"
	UnknownYet      Protection = "not known yet"
	Protected       Protection = "protected"
)

// protections lists all, in the order of a summary.
var protections = []Protection{Unprotected, PartlyProtected, UnknownYet, Protected}

// ManagerSummary is the report for managers: how well domains are protected, what was done in a period,
// and what is next. Its texts need no knowledge of email.
type ManagerSummary struct {
	// Team is the name of the team, Domain the domain that it is about, "" for all.
	Team, Domain string
	From, To     dmarcd.Day
	// Conclusion is one or two sentences.
	Conclusion string
	// Total counts all domains, Before their mail of the previous period of the same length. Compared
	// is false if reports do not cover that period.
	Total    SummaryRow
	Compared bool
	// Protections are the numbers of domains by protection, without zeros.
	Protections []ProtectionCount
	Days        []insight.ClassDay
	// Rows are the domains with the worst protection and the most mail first, Groups the others by
	// protection.
	Rows, Groups []SummaryRow
	// Done is what was done in the period, the latest first, Next what is to be done, the most urgent
	// first. MoreDone and MoreNext count what is left out.
	Done               []SummaryDone
	Next               []SummaryNext
	MoreDone, MoreNext int
	Terms              []Term
}

// SummaryRow is a domain, or several in a group.
type SummaryRow struct {
	// Name is "" for a group; Domains is the number of domains.
	Name    string
	Domains int
	// Grade is "" if it is not known, or for a group.
	Grade string
	// Policy is none, quarantine or reject, or "" if there is no usable record or it is not known.
	Policy string
	// Tests is the policy that the domain tries out, which receivers do not apply; "" for none.
	Tests      string
	Protection Protection
	Mail       insight.ClassCounts
	Before     insight.ClassCounts
}

// ProtectionCount is a number of domains.
type ProtectionCount struct {
	Protection Protection
	Domains    int
}

// Blocked returns how much spoofed mail receivers quarantined or rejected.
func (r SummaryRow) Blocked() int64 { return r.Mail.Spoofed.Quarantined + r.Mail.Spoofed.Rejected }

// SummaryDone is something that was done.
type SummaryDone struct {
	Day    dmarcd.Day // the latest
	Domain string     // "" for several
	Text   string
}

// SummaryNext is something to do for one or several domains.
type SummaryNext struct {
	Action dmarcd.ActionID
	Title  string
	// Who has to do it.
	Who string
	// Domains are some of Count domains.
	Domains []string
	Count   int
	// Effect adds up the effects of a stricter policy.
	Effect dmarcd.Effect
}

// Term explains a word.
type Term struct{ Word, Meaning string }

// ManagerSummary returns the report for managers about a domain, or about all if name is "".
func (t *Team) ManagerSummary(ctx context.Context, name string, from, to dmarcd.Day) (ManagerSummary, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return ManagerSummary{}, err
	}
	s := ManagerSummary{From: from, To: to}
	team, err := t.service.store.TeamByID(ctx, t.team.ID())
	if err != nil {
		return s, err
	}
	s.Team = team.Name
	var domains []dmarcd.Domain
	if name != "" {
		domain, err := t.named(ctx, dmarcd.RightSee, name)
		if err != nil {
			return s, err
		}
		s.Domain, domains = domain.Name, []dmarcd.Domain{domain}
	} else if domains, err = t.allDomains(ctx); err != nil {
		return s, err
	}
	if err := t.summarizeMail(ctx, &s, domains); err != nil {
		return s, err
	}
	if err := t.summarizeDone(ctx, &s, domains); err != nil {
		return s, err
	}
	advice, err := t.summarizeNext(ctx, &s)
	if err != nil {
		return s, err
	}
	s.Conclusion = s.conclusion()
	if s.Domain != "" && len(advice) == 1 {
		s.Conclusion = advice[0].Conclusion // as on all pages of the domain
	}
	s.Terms = summaryTerms
	return s, nil
}

// allDomains returns the domains of the team in order of name.
func (t *Team) allDomains(ctx context.Context) (all []dmarcd.Domain, err error) {
	after := ""
	for {
		some, err := t.team.Domains(ctx, after, domainsPerRead)
		if all = append(all, some...); err != nil || len(some) < domainsPerRead {
			return all, err
		}
		after = some[len(some)-1].Name
	}
}

// summarizeMail sets the figures.
func (t *Team) summarizeMail(ctx context.Context, s *ManagerSummary, domains []dmarcd.Domain) error {
	length := s.To - s.From + 1
	before := dmarcd.Days{From: new(s.From - length), To: new(s.From - 1)}
	series, err := t.Classes(ctx, s.Domain, s.From, s.To)
	if err != nil {
		return err
	}
	s.Days, s.Total.Mail = series.Days, series.Sum
	const reportEvery = 7 // days: a receiver that reports at all does so within a week
	earlier, err := t.daily(ctx, s.Domain, dmarcd.Days{From: new(*before.From - reportEvery), To: before.From}, 1)
	if err != nil {
		return err
	}
	s.Compared = len(earlier) > 0 && series.Before.Total() > 0
	now, err := t.domainClasses(ctx, s.Domain, dmarcd.Days{From: &s.From, To: &s.To})
	if err != nil {
		return err
	}
	var then map[dmarcd.DomainID]insight.ClassCounts
	if s.Compared {
		if then, err = t.domainClasses(ctx, s.Domain, before); err != nil {
			return err
		}
	}
	rows := make([]SummaryRow, len(domains))
	for i, domain := range domains {
		id := domain.ID
		if s.Domain != "" {
			id = 0 // of the only domain of the mail
		}
		rows[i] = summaryRow(domain)
		rows[i].Mail, rows[i].Before = now[id], then[id]
		s.Total.Before.Add(then[id])
	}
	s.Total.Domains = len(rows)
	slices.SortFunc(rows, func(a, b SummaryRow) int {
		return cmp.Or(slices.Index(protections, a.Protection)-slices.Index(protections, b.Protection),
			cmp.Compare(b.messages(), a.messages()), cmp.Compare(a.Name, b.Name))
	})
	s.Rows = rows
	if len(rows) > summaryRows+fewMoreRows {
		s.Rows, s.Groups = rows[:summaryRows], groupRows(rows[summaryRows:])
	}
	for _, protection := range protections {
		if n := countRows(rows, protection); n > 0 {
			s.Protections = append(s.Protections, ProtectionCount{protection, n})
		}
	}
	return nil
}

// domainClasses returns the mail of each domain by class.
func (t *Team) domainClasses(ctx context.Context, name string, days dmarcd.Days) (map[dmarcd.DomainID]insight.ClassCounts, error) {
	mail, err := t.Mail(ctx, name, days)
	if err != nil {
		return nil, err
	}
	defer mail.Close()
	return mail.DomainClasses(ctx)
}

// messages returns all messages of a row.
func (r SummaryRow) messages() int64 {
	all := r.Mail.All()
	return all.Total()
}

// ProtectionOf returns how well the published policy protects a domain, and the policy that receivers apply to it.
func ProtectionOf(domain dmarcd.Domain) (Protection, dmarc.Policy) {
	published := insight.Published{
		Record: domain.Record, Own: domain.RecordDomain == domain.Name, Parked: domain.Parked, Unchecked: domain.KnownAt.IsZero(),
	}
	stage, policy, full := published.Protection()
	switch {
	case published.Unchecked:
		return UnknownYet, dmarc.Unstated
	case full:
		return Protected, policy
	case stage == dmarcd.StagePartial:
		return PartlyProtected, policy
	}
	return Unprotected, policy
}

// summaryRow returns the row of a domain without mail.
func summaryRow(domain dmarcd.Domain) SummaryRow {
	protection, policy := ProtectionOf(domain)
	r := SummaryRow{Name: domain.Name, Domains: 1, Grade: domain.Grade, Policy: policy.String(), Protection: protection}
	if domain.RecordDomain == domain.Name && policy != dmarc.Unstated && domain.Policy != r.Policy {
		r.Tests = domain.Policy
	}
	return r
}

func countRows(rows []SummaryRow, protection Protection) (n int) {
	for _, r := range rows {
		if r.Protection == protection {
			n++
		}
	}
	return n
}

// groupRows adds up rows by protection.
func groupRows(rows []SummaryRow) (groups []SummaryRow) {
	for _, protection := range protections {
		group := SummaryRow{Protection: protection}
		for _, r := range rows {
			if r.Protection == protection {
				group.Domains++
				group.Mail.Add(r.Mail)
				group.Before.Add(r.Before)
			}
		}
		if group.Domains > 0 {
			groups = append(groups, group)
		}
	}
	return groups
}

// Count returns the number of domains with a protection.
func (s *ManagerSummary) Count(protection Protection) int {
	for _, c := range s.Protections {
		if c.Protection == protection {
			return c.Domains
		}
	}
	return 0
}

// conclusion concludes about all domains.
func (s *ManagerSummary) conclusion() string {
	all, protected := int64(s.Total.Domains), int64(s.Count(Protected))
	if all == 0 {
		return "No domain is monitored yet."
	}
	verb := "are"
	if protected == 1 || all == 1 {
		verb = "is"
	}
	text := phrase.Number(protected) + " of " + phrase.Count(all, "domain") + " " + verb + " protected against spoofing"
	if partly := s.Count(PartlyProtected); partly > 0 {
		text += ", " + phrase.Number(int64(partly)) + " partly"
	}
	text += "."
	if unknown := s.Count(UnknownYet); unknown > 0 {
		text += " " + phrase.Count(int64(unknown), "domain") + " could not be checked yet."
	}
	return text + " " + s.spoofing()
}

// spoofing says what receivers did with spoofed mail.
func (s *ManagerSummary) spoofing() string {
	total := s.Total.messages()
	spoofed, blocked := s.Total.Mail.Spoofed.Total(), s.Total.Blocked()
	switch {
	case total == 0:
		return "No mail was reported in this period."
	case spoofed == 0:
		return "No spoofed mail was reported."
	case blocked == spoofed:
		return "Receivers blocked all " + phrase.Count(spoofed, "spoofed message") + "."
	}
	return phrase.Number(spoofed-blocked) + " of " + phrase.Count(spoofed, "spoofed message") + " were delivered."
}

// summaryTerms are the words that a summary uses.
var summaryTerms = []Term{
	{"Domain", "the part of an email address after the @"},
	{"Spoofed mail", "mail by others that claims to come from your domain"},
	{"Own mail", "mail of your servers and of the services that send for you"},
	{"Passes", "receivers can verify that the mail is yours"},
	{"Blocked", "put into the spam folder or rejected"},
	{"Policy", "what your domain asks receivers to do with mail that fails: none (deliver it), quarantine (spam folder) or reject"},
	{"Protected", "the policy is reject for the domain and its subdomains"},
	{"Grade", "how well the domain is set up, from A+ to F"},
	{"DNS", "where the settings of a domain are published"},
}
