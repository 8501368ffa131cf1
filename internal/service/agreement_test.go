package service_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/senders"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// randomState makes the DNS of a domain: records with and without mistakes, none, several,
// texts that are almost records, records of the domain above, and domains without mail.
func randomState(r *rand.Rand, domain, address string) (zone string) {
	word := func(words ...string) string { return words[r.IntN(len(words))] }
	some := func(one int, text string) string {
		if r.IntN(one) > 0 {
			return ""
		}
		return text
	}
	record := func() string {
		policy := func() string { return word("none", "quarantine", "reject", "none", "quarantine", "reject", "monitor") }
		text := word("v=DMARC1", "v=DMARC1", "v=DMARC1", "v=DMARC1", "v=dmarc1") + some(1, "; "+word("p", "p", "P")+"="+policy())
		text += some(4, "; sp="+policy()) + some(5, "; np="+policy()) + some(5, "; t=y") + some(5, "; pct="+word("0", "50", "100", "x"))
		text += some(4, "; adkim="+word("s", "r", "x")) + some(4, "; fo=1") + some(5, "; x-note=ours") + some(8, "; p=reject") + some(8, ";;") + some(9, "; ri=86400")
		rua := word("mailto:"+address, "mailto:other@elsewhere.example", "mailto:a@"+domain+",mailto:a@"+domain, "dmarc@"+domain, "mailto:"+address+"!10m")
		return text + some(2, "; rua="+rua) + some(5, "; ruf=mailto:f@"+domain)
	}
	var lines []string
	add := func(name, text string) { lines = append(lines, name+` TXT "`+text+`"`) }
	_, parent, _ := strings.Cut(domain, ".")
	switch r.IntN(7) {
	case 0: // none
	case 1:
		add("_dmarc."+domain, record())
		add("_dmarc."+domain, record())
	case 2:
		if parent == "example" { // a record of the suffix is not that of the domain
			parent = domain
		}
		add("_dmarc."+parent, record())
	case 3:
		add(domain, record())
	default:
		add("_dmarc."+domain, record())
	}
	switch r.IntN(4) {
	case 0:
		lines = append(lines, domain+` MX 0 .`)
		add(domain, word("v=spf1 -all", "v=spf1 mx ~all"))
	case 1:
		add(domain, "v=spf1 -all")
	default:
		lines = append(lines, domain+` MX 10 mx.`+domain, `mx.`+domain+` A 192.0.2.1`)
		add(domain, "v=spf1 mx -all")
	}
	return strings.Join(lines, "\n")
}

// TestProposalsAgree wants findings, setup guide and advice to propose the same DMARC record
// for a domain, whatever its DNS: the repaired one, or that with the next stricter policy.
func TestProposalsAgree(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	states := 80
	if os.Getenv("DMARCD_SOAK") != "" {
		states = 2000
	}
	for _, reportDomain := range []string{"reports.example", ""} {
		s := storetest.SQLite(t).Open(t, store.Options{})
		w := service.New(s, service.Options{
			Insight: insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), nameless{}, nil), ReportDomain: reportDomain,
		})
		acme := storetest.Team(t, s, "acme")
		r := rand.New(rand.NewPCG(3, 4))
		actions := map[dmarcd.ActionID]int{}
		for i := range states {
			name := fmt.Sprintf("mail.d%d.example", i)
			if i%2 == 0 {
				name = fmt.Sprintf("d%d.example", i)
			}
			advice := compareProposals(t, w.Team(acme.ID, service.CommandLine()), s.Team(acme.ID), name, reportDomain, r)
			if next := advice.Next(); next != nil {
				actions[next.ID]++
			}
		}
		for _, id := range []dmarcd.ActionID{dmarcd.ActionPublish, dmarcd.ActionRepair, dmarcd.ActionLock, dmarcd.ActionTighten} {
			if actions[id] == 0 {
				t.Errorf("report domain %q: no state leads to the action %s: %v", reportDomain, id, actions)
			}
		}
	}
}

// compareProposals adds a domain with some DNS and two weeks of mail, and compares what is
// proposed for it.
func compareProposals(t *testing.T, team *service.Team, stored *store.Team, name, reportDomain string, r *rand.Rand) dmarcd.Advice {
	t.Helper()
	domain := musttest.Get(stored.AddDomain(t.Context(), name, time.Now().Add(time.Hour)))(t)
	parked := r.IntN(4) == 0
	musttest.Do(t, stored.SetParked(t.Context(), name, parked))
	address := domain.ReportAddress(reportDomain)
	zone := randomState(r, name, address)
	checker := dnscheck.New(dnscheck.Options{Resolver: dnstest.New(zone), ReportDomain: reportDomain, Now: time.Now})
	check := checker.Examine(t.Context(), dnscheck.Request{Domain: name, ReportAddress: address, Parked: parked})
	musttest.Get(stored.SaveCheck(t.Context(), name, check, dmarcd.Plan{Next: time.Now().Add(time.Hour)}))(t)
	var mail []dmarcd.NewReport
	for day := range dmarcd.Day(15) {
		mail = append(mail, storetest.Aggregate(fmt.Sprint(day), name, dmarcd.DayOf(time.Now())-1-day, storetest.Passed(name, 20)))
	}
	musttest.Get(stored.Receive(t.Context(), []*dmarcd.Delivery{storetest.Delivery(mail...)}))(t)
	advice := musttest.Get(team.Advice(t.Context(), name))(t)
	simulated := musttest.Get(team.Simulate(t.Context(), name, dmarcd.Days{}, service.PolicyChange{}))(t)
	setup := musttest.Get(team.Setup(t.Context(), name))(t)
	latest := musttest.Get(team.LatestCheck(t.Context(), domain))(t)
	proposed := map[bool]map[string][]string{false: {}, true: {}} // by whether it tightens: the record, and who proposes it
	propose := func(tightens bool, record, by string) {
		proposed[tightens][record] = append(proposed[tightens][record], by)
	}
	for _, record := range setup.Records {
		if record.Purpose == dmarcd.SetupDMARC {
			propose(false, record.Value, "setup")
		}
	}
	for _, f := range latest.Check.Findings {
		if f.Record.Name == dmarc.QueryName(name) {
			tightens := slices.Contains([]string{
				"dmarc.policy_none", "dmarc.policy_quarantine", "dmarc.testing", "dmarc.percentage", "dmarc.subdomains_weaker", "dmarc.missing_names_weaker",
			}, f.ID)
			propose(tightens, f.Record.Data, f.ID)
		}
	}
	if next := advice.Next(); next != nil && next.Record != nil {
		propose(next.ID == dmarcd.ActionTighten, next.Record.Value, "advice")
	}
	for tightens, records := range proposed {
		if len(records) > 1 {
			t.Errorf("%s, tightens: %v: got the proposals %q for\n%s", name, tightens, records, zone)
		}
	}
	for record := range proposed[false] {
		if parsed, ok := dmarc.Parse(record); !ok || parsed.State != dmarc.OK {
			t.Errorf("%s: got %q, want a record without errors for\n%s", name, record, zone)
		}
	}
	if parsed, ok := dmarc.Parse(simulated.Record); !ok || parsed.State != dmarc.OK {
		t.Errorf("%s: got %q of a simulation, want a record without errors", name, simulated.Record)
	}
	return advice
}
