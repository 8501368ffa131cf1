package browser_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
)

// planting is the team default with domains that only the test checks.
type planting struct {
	*testing.T

	team *store.Team
	now  time.Time
}

func (s *site) plants(t *testing.T) planting {
	t.Helper()
	st := s.db.Open(t, store.Options{})
	team := musttest.Get(st.TeamByName(t.Context(), dmarcd.DefaultTeam))(t)
	return planting{t, st.Team(team.ID), time.Now().UTC().Truncate(time.Second)}
}

// check saves a full check that was made some days ago. The next one is due tomorrow.
func (p planting) check(domain string, daysAgo int, record string, found facts.Facts, problems ...dmarcd.Finding) {
	p.Helper()
	next := p.now.AddDate(0, 0, 1)
	found.Domain, found.DMARC.Record = domain, record
	check := facts.Check{
		At: p.now.AddDate(0, 0, -daysAgo), Conclusive: true, Usable: true, Record: record, RecordDomain: domain, Policy: "none", Facts: &found, Findings: problems,
	}
	musttest.Get(p.team.SaveCheck(p.Context(), domain, check, dmarcd.Plan{Next: next, NextFull: next}))(p)
}

func (p planting) add(domain string) {
	p.Helper()
	musttest.Get(p.team.AddDomain(p.Context(), domain, p.now.AddDate(0, 0, 1)))(p)
}

// rows returns the text of each row of the list.
func (b *tab) rows() []string {
	b.t.Helper()
	return read(b, evaluate[[]string](`[...document.querySelectorAll("table.activity tbody tr")].map((row) => row.innerText.replace(/\s+/g, " "))`))
}

// TestTask05 plants changes of every record type, and finds those of last week in two
// clicks: one row for each domain and check, with the terms that changed.
func TestTask05(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	p := s.plants(t)
	const none = "v=DMARC1; p=none; rua=mailto:a@reports.example"
	for _, domain := range []string{"alpha.example", "beta.example", "gamma.example", "quiet.example"} {
		p.add(domain)
	}
	key := facts.DKIM{Keys: []facts.DKIMKey{{Selector: "s1", Status: "ok", Record: "v=DKIM1; p=AAAA"}}}
	p.check("alpha.example", 40, none, facts.Facts{SPF: facts.SPF{Record: "v=spf1 -all"}})
	p.check("alpha.example", 20, none, facts.Facts{SPF: facts.SPF{Record: "v=spf1 mx include:old.example ~all"}})
	p.check("alpha.example", 3, "v=DMARC1; rua=mailto:a@reports.example; p=none; sp=reject", facts.Facts{SPF: facts.SPF{Record: "v=spf1 include:new.example mx ~all"}})
	p.check("beta.example", 40, none, facts.Facts{DKIM: key})
	p.check("beta.example", 5, none, facts.Facts{
		DKIM: facts.DKIM{Keys: append(key.Keys, facts.DKIMKey{Selector: "s2", Status: "ok", Record: "v=DKIM1; p=BBBB"})},
		MX:   facts.MX{Hosts: []facts.MXHost{{Name: "mx.beta.example", Preference: 10}}},
	})
	p.check("beta.example", 2, none, facts.Facts{
		DKIM: facts.DKIM{Keys: key.Keys}, MX: facts.MX{Hosts: []facts.MXHost{{Name: "mx.beta.example", Preference: 10}}},
		DNSSEC: facts.DNSSEC{Status: "signed", Zone: "beta.example"}, DANE: facts.DANE{Status: "ok"},
	})
	p.check("gamma.example", 40, none, facts.Facts{})
	p.check("gamma.example", 1, none, facts.Facts{
		MTASTS: facts.MTASTS{Record: "v=STSv1; id=20261101"}, TLSRPT: facts.TLSRPT{Record: "v=TLSRPTv1; rua=mailto:tls@gamma.example"},
		BIMI: facts.BIMI{Record: "v=BIMI1; l=https://gamma.example/logo.svg"},
	})
	p.check("quiet.example", 40, none, facts.Facts{})
	p.check("quiet.example", 1, none, facts.Facts{}, dmarcd.Finding{ID: "spf.none", Level: dmarcd.LevelError, What: "quiet.example has no SPF record."})

	inBothWays(t, s.shared, func(t *testing.T, b *task) {
		b.click(`nav.main a[href="/app/activity"]`)
		b.click(`.tabs a[href="/app/activity/dns"]`)
		b.took(2)
		rows := b.rows()
		for i, words := range [][]string{
			{"gamma.example", "MTA-STS", "TLS-RPT", "BIMI", "v=STSv1; id=20261101", "v=TLSRPTv1; rua=mailto:tls@gamma.example", "v=BIMI1;"},
			{"beta.example", "DKIM", "DANE", "DNSSEC", "DKIM key s2", "v=DKIM1; p=BBBB"},
			{"alpha.example", "DMARC", "SPF", "DMARC record", "sp=reject", "SPF record", "include:new.example"},
			{"beta.example", "DKIM", "MX", "DKIM key s2", "mx.beta.example"},
		} {
			for _, word := range words {
				if i >= len(rows) || !strings.Contains(rows[i], word) {
					t.Fatalf("got the rows %q, want %s in row %d", rows, word, i+1)
				}
			}
		}
		if len(rows) != 4 {
			t.Errorf("got %d rows, want 4: %q", len(rows), rows)
		}
		// The order of terms does not matter: only these differ.
		changed := read(b.tab, evaluate[[]string](`[...document.querySelectorAll("table.activity tbody tr:nth-child(3) dl :is(ins, del)")].map((e) => e.innerText)`))
		if got := strings.Join(changed, " | "); got != "sp=reject | include:old.example | include:new.example" {
			t.Errorf("got the differences %s, want the tag and the terms that changed", got)
		}
		b.inspect("changes of last week")
		b.click(`.segments a[href*="days=30"]`)
		if got := len(b.rows()); got != 5 {
			t.Errorf("got %d rows in 30 days, want 5", got)
		}
		b.visit("/app/activity/dns?kind=spf", http.StatusOK)
		if rows := b.rows(); len(rows) != 1 || !strings.Contains(rows[0], "alpha.example") {
			t.Errorf("SPF alone: got %q, want alpha.example", rows)
		}
		b.visit("/app/domains/beta.example/changes", http.StatusOK)
		if rows := b.rows(); len(rows) != 2 || !strings.Contains(rows[0], "DNSSEC") {
			t.Errorf("a domain: got %q, want its two checks", rows)
		}
		b.visit("/app/activity/everything?domain=quiet.example", http.StatusOK)
		if rows := b.rows(); len(rows) != 1 || !strings.Contains(rows[0], "New problem: quiet.example has no SPF record.") {
			t.Errorf("everything about a domain: got %q, want its problem", rows)
		}
	})
}

// TestAcknowledgeAll acknowledges the alerts of a group and then all others, with the keyboard alone.
func TestAcknowledgeAll(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	p := s.plants(t)
	p.add("alpha.example")
	problem := func(id string) dmarcd.Finding {
		return dmarcd.Finding{ID: id, Level: dmarcd.LevelError, What: "alpha.example has the problem " + id + "."}
	}
	p.check("alpha.example", 3, "v=DMARC1; p=none", facts.Facts{})
	p.check("alpha.example", 2, "v=DMARC1; p=none", facts.Facts{}, problem("spf.none"), problem("mx.none"), problem("dkim.none"))
	musttest.Do(t, p.team.SaveDetections(t.Context(), []dmarcd.Detection{
		{Kind: dmarcd.MailboxFailing, Day: 1, Subject: "a", Name: "a@mail.example", Reason: "the password is wrong."},
		{Kind: dmarcd.MailboxFailing, Day: 1, Subject: "b", Name: "b@mail.example", Reason: "the password is wrong."},
	}, nil))
	b := &task{tab: s.open(t), keyboard: true}
	b.acceptInvitation(s.link, "ada@example.com")
	b.click(`nav.main a[href="/app/activity"]`)
	b.wants("5 alerts need you", "Mailbox fails", "New DNS problem", "not sent")
	b.inspect("what needs you")
	b.click(`form:has(input[name=kind][value="finding.appeared"]) button`)
	b.wants("The alerts were acknowledged.", "2 alerts need you")
	b.click(`.head form[action="/app/activity/acknowledge"] button`)
	b.wants("Nothing needs you")
}
