package web_test

import (
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web"
)

const (
	goodSession    = "session-secret"
	goodPassword   = "correct horse battery"
	goodInvitation = "invitation-secret"
	otherTeam      = "team_2"
	sampleDomain   = "example.com"
	// hostile is what a stranger may put into any text of a report or record.
	hostile = `"><script>alert('x')</script><img src=x onerror=alert(1)> javascript:alert(1)`
	formula = `=HYPERLINK("https://evil.example/","click")`
)

var now = time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)

func sampleViewer() web.Viewer {
	return web.Viewer{
		Name: "Ada Example", Email: "ada@example.com", Role: "owner", Access: web.AccessOwn, Operator: true,
		Team:  web.TeamChoice{ID: "team_1", Name: "Example & Sons"},
		Teams: []web.TeamChoice{{ID: "team_1", Name: "Example & Sons"}, {ID: otherTeam, Name: "Second <Team>"}},
	}
}

// sampleDays makes days with a weekly rhythm that need no randomness.
func sampleDays(p web.Period) []web.DayCounts {
	var days []web.DayCounts
	for day := p.From; day <= p.To; day++ {
		n := int64(day)
		total := 9000 + n*7919%2600
		if weekday := (n + 4) % 7; weekday == 0 || weekday == 6 {
			total /= 3
		}
		failing := total * (3 + n*31%9) / 100
		days = append(days, web.DayCounts{Day: day, Counts: dmarcd.Counts{
			Summary:     dmarcd.Summary{Compliant: total - failing, NonCompliant: failing},
			Quarantined: failing / 3, Rejected: failing / 4, DKIM: total - failing*2, SPF: total - failing*3,
		}})
	}
	return days
}

func sum(days []web.DayCounts) (counts dmarcd.Counts, trend []int64) {
	for _, d := range days {
		counts.Add(d.Counts)
		trend = append(trend, d.Total())
	}
	return counts, trend
}

// part is a share of counts, in hundredths, of which some are compliant.
func part(counts dmarcd.Counts, hundredths, compliant int64) dmarcd.Counts {
	total := counts.Total() * hundredths / 100
	passed := total * compliant / 100
	return dmarcd.Counts{
		Summary: dmarcd.Summary{Compliant: passed, NonCompliant: total - passed},
		DKIM:    passed * 95 / 100, SPF: passed * 80 / 100, Rejected: (total - passed) / 2,
	}
}

func sampleOverview(q web.OverviewQuery) web.Overview {
	days := sampleDays(q.Period)
	counts, trend := sum(days)
	before, _ := sum(sampleDays(q.Period.Before()))
	half := make([]int64, len(trend))
	for i, n := range trend {
		half[i] = n * int64(i%5) / 7
	}
	return web.Overview{
		Days: days, Counts: counts, Before: before, Matching: 128, All: 128,
		Domains: []web.DomainRow{
			{Name: "example.com", Grade: "B", Policy: "quarantine", Active: true, Known: true, Counts: part(counts, 62, 97), Trend: trend},
			{Name: "shop.example.net", Grade: "D", Policy: "none", Active: true, Known: true, Counts: part(counts, 30, 88), Trend: half},
			{Name: "parked.example.org", Grade: "A+", Policy: "reject", Active: true, Known: true, Counts: part(counts, 1, 0), Trend: half},
			{Name: "xn--bcher-kva.example", Grade: "C", Policy: "reject", Active: true, Known: true, Counts: part(counts, 4, 100), Trend: trend},
			{Name: "new.example", Grade: "F", Policy: "", Known: true},
			{Name: "unknown.example"},
		},
		News: []dmarcd.Event{
			{At: now.Add(-2 * time.Hour), Domain: "example.com", Kind: dmarcd.PolicyTightened, Before: "none", After: "quarantine"},
			{At: now.Add(-3 * time.Hour), Domain: "example.com", Kind: dmarcd.RecordChanged, Before: "v=DMARC1; p=none; rua=mailto:a@example.com", After: "v=DMARC1; p=quarantine; rua=mailto:a@example.com"},
			{At: now.Add(-9 * time.Hour), Domain: "shop.example.net", Kind: dmarcd.FindingAppeared, After: hostile},
		},
		Troubled: 17,
		Tasks: []web.Task{
			{Domain: "new.example", Level: dmarcd.LevelError, What: "There is no DMARC record at _dmarc.new.example."},
			{Domain: "shop.example.net", Level: dmarcd.LevelError, What: "The SPF record needs 13 look-ups, and receivers stop after 10."},
			{Domain: "example.com", Level: dmarcd.LevelWarning, What: "The key of the selector s1 has 1024 bits."},
		},
	}
}

func sampleHead() web.DomainHead {
	return web.DomainHead{
		Domain: dmarcd.Domain{
			ID: 7, Name: sampleDomain, Active: true, Record: "v=DMARC1; p=quarantine; rua=mailto:r4x7@reports.example",
			RecordDomain: sampleDomain, Policy: "quarantine", Purpose: dmarcd.PurposeBusiness, Grade: "B",
			CreatedAt: now.AddDate(-1, 0, 0), UpdatedAt: now.AddDate(0, -1, 0), CheckedAt: now.Add(-20 * time.Minute), KnownAt: now.Add(-20 * time.Minute),
		},
		ReportAddress: "r4x7@reports.example", Applied: "quarantine",
	}
}

func sampleTimeline(p web.Period) web.Timeline {
	days := sampleDays(p)
	counts, _ := sum(days)
	before, _ := sum(sampleDays(p.Before()))
	return web.Timeline{Days: days, Counts: counts, Before: before, Events: []dmarcd.Event{
		{At: now.AddDate(0, 0, -6), Domain: sampleDomain, Kind: dmarcd.PolicyTightened, Before: "none", After: "quarantine"},
		{At: now.AddDate(0, 0, -6), Domain: sampleDomain, Kind: dmarcd.RecordChanged, Before: "v=DMARC1; p=none", After: "v=DMARC1; p=quarantine" + hostile},
		{At: now.AddDate(0, 0, -20), Domain: sampleDomain, Kind: dmarcd.PolicyLoosened, Before: "reject", After: "none"},
		{At: now.AddDate(0, 0, -25), Domain: sampleDomain, Kind: dmarcd.FindingMended, Before: "spf.too-many-lookups"},
	}}
}

func sampleSources(p web.Period) []web.SourceRow {
	counts, trend := sum(sampleDays(p))
	row := func(key, name, detail string, hundredths, compliant int64) web.SourceRow {
		return web.SourceRow{
			Key: key, Name: name, Detail: detail, Counts: part(counts, hundredths, compliant), Trend: trend,
			First: dmarcd.DayOf(now) - 240, Last: dmarcd.DayOf(now) - 1,
		}
	}
	return []web.SourceRow{
		row("AS64500", "Mailbox Example", "AS64500, mailbox provider, DE", 48, 100),
		row("AS64501", "Newsletter Example", "AS64501, marketing, IE", 30, 99),
		row("AS64502", "Hosting Example", "AS64502, hosting, US", 9, 61),
		row("unknown", "unknown network", "", 8, 2),
		row("a/b?c", hostile, formula, 1, 0),
	}
}

func sampleSource(p web.Period) web.Source {
	days := sampleDays(p)
	counts, _ := sum(days)
	rows := sampleSources(p)
	return web.Source{
		SourceRow: rows[1], Days: days,
		Facts: []web.Fact{{Name: "Network", Value: "AS64501, Newsletter Example"}, {Name: "Kind", Value: "marketing"}, {Name: "Country", Value: "Ireland"}},
		Parts: []web.SourcePart{
			{Group: web.GroupAddress, Rows: []web.SourceRow{
				{Key: "192.0.2.17", Name: "192.0.2.17", Detail: "mx1.newsletter.example", Counts: part(counts, 20, 100)},
				{Key: "2001:db8::25", Name: "2001:db8::25", Counts: part(counts, 10, 97)},
			}},
			{Group: web.GroupSelector, Rows: []web.SourceRow{{Key: "s1", Name: "s1", Detail: hostile, Counts: part(counts, 30, 99)}}},
			{Group: web.GroupEnvelope},
			{Group: web.GroupReporter, Rows: []web.SourceRow{{Key: "bigmail.example", Name: "bigmail.example", Counts: part(counts, 30, 99)}}},
		},
	}
}

func sampleFlows() []web.Flow {
	return []web.Flow{
		{Sender: "Mailbox Example", SPF: true, DKIM: true, Disposition: "none", Messages: 98211},
		{Sender: "Newsletter Example", DKIM: true, Disposition: "none", Messages: 61402},
		{Sender: "Hosting Example", SPF: true, Disposition: "none", Messages: 11200},
		{Sender: "Hosting Example", Disposition: "quarantine", Messages: 7100},
		{Sender: "unknown network", Disposition: "reject", Messages: 9020},
		{Sender: "unknown network", Disposition: "none", Messages: 6304},
		{Sender: hostile, Disposition: "none", Messages: 12},
	}
}
