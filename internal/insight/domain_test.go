package insight_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// TestOneResult wants the job that finds senders, and the list of all domains of a team, to have the
// senders and classes of the list of the domain, in all scenarios.
func TestOneResult(t *testing.T) {
	t.Parallel()
	service := scenarioService(t)
	first, last := dmarcd.Day(20000), dmarcd.Day(20029)
	days := dmarcd.Days{From: &first, To: &last}
	for i, s := range slices.Concat(ownScenarios, serviceScenarios, relayScenarios, spoofScenarios, teamScenarios, linkScenarios, divisionScenarios, classifiedScenarios) {
		reports := s.reports()
		for i := range reports.Shares {
			reports.Shares[i].Domain = 1
		}
		s.facts.Domain = "example.com"
		check := dmarcd.CheckID(i + 1)
		reports.domains = []dmarcd.SenderDomain{{ID: 1, Name: "example.com", Check: check, Classes: s.team}}
		reports.facts = map[dmarcd.CheckID]*facts.Facts{check: &s.facts}
		list := func(domain string, know func(*insight.Mail)) map[string]string {
			m := musttest.Get(service.Read(t.Context(), reports, domain, days))(t)
			defer m.Close()
			know(m)
			found := make(map[string]string)
			for _, row := range musttest.Get(m.List(t.Context(), insight.Query{Group: insight.GroupSender, Limit: 100, Assess: true}))(t).Rows {
				found[row.Key] = fmt.Sprint(row.Name, ", ", row.Assessment.Class)
			}
			return found
		}
		want := list("example.com", func(m *insight.Mail) {
			m.SetDomains(insight.Domain{ID: 1, Name: "example.com", Facts: &s.facts, Checks: s.checks, Classes: s.team})
		})
		for range 2 { // the second time from the cache
			if diff := cmp.Diff(want, list("", func(m *insight.Mail) { musttest.Do(t, m.LoadDomains(t.Context())) })); diff != "" {
				t.Errorf("%s, all domains (-want +got):\n%s", s.name, diff)
			}
			reports.facts = nil
		}
		job, seen := make(map[string]string), make(map[string]string)
		musttest.Do(t, service.FindSenders(t.Context(), reports, days, func(found []dmarcd.Sender) error {
			for _, sender := range found {
				seen[sender.Key] = want[sender.Key]
			}
			return nil
		}, func(found []dmarcd.DomainDay) error {
			for _, day := range found {
				for _, sender := range day.Senders {
					job[sender.Key] = fmt.Sprint(sender.Name, ", ", sender.Class)
				}
			}
			return nil
		}))
		if diff := cmp.Diff(want, job); diff != "" {
			t.Errorf("%s, the job (-want +got):\n%s", s.name, diff)
		}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("%s, first and last days (-want +got):\n%s", s.name, diff)
		}
	}
}

// TestFirstDayOfAMovedAddress has the SPF record list an address: the sender that it belongs to since
// is as old as the address.
func TestFirstDayOfAMovedAddress(t *testing.T) {
	t.Parallel()
	service := scenarioService(t)
	reports := scenario{mail: []flow{office(100), rented("198.51.100.77")}}.reports()
	for i := range reports.Shares {
		reports.Shares[i].Domain = 1
	}
	last := dmarcd.Day(20029)
	for check, want := range map[dmarcd.CheckID]string{1: "AS64497:others 20000", 2: "AS64497:yours 20000"} {
		checked := &facts.Facts{Domain: "example.com"}
		if check == 2 {
			checked.SPF.Tree = []facts.SPFTerm{{Term: "ip4:198.51.100.77", Addresses: []netip.Prefix{netip.MustParsePrefix("198.51.100.77/32")}}}
		}
		reports.domains = []dmarcd.SenderDomain{{ID: 1, Name: "example.com", Check: check}}
		reports.facts = map[dmarcd.CheckID]*facts.Facts{check: checked}
		var got []string
		musttest.Do(t, service.FindSenders(t.Context(), reports, dmarcd.Days{From: &last, To: &last}, func(found []dmarcd.Sender) error {
			for _, s := range found {
				got = append(got, fmt.Sprintf("%s %d", s.Key, s.First))
			}
			return nil
		}, func([]dmarcd.DomainDay) error { return nil }))
		if !slices.Contains(got, want) {
			t.Errorf("got %v, want %s among them", got, want)
		}
	}
}

// TestAddressesOfManyDomains assesses the same addresses for more domains than profiles are remembered
// for.
func TestAddressesOfManyDomains(t *testing.T) {
	t.Parallel()
	const domains, addresses = 400, 100
	of := &team{perBlock: domains, Identities: []rollup.Identity{{}}}
	for i := range addresses {
		of.Addresses = append(of.Addresses, fmt.Sprintf("100.64.0.%d", i))
	}
	for id := range dmarcd.DomainID(domains) {
		share := rollup.Share{Report: dmarcd.ReportID(id + 1), Domain: id + 1, Day: 20000, Reporter: "receiver.example", From: "example.com"}
		for i := range uint32(addresses) {
			share.Records = append(share.Records, rollup.Record{N: i, Count: 10, Address: i})
		}
		of.Shares = append(of.Shares, share)
		of.domains = append(of.domains, dmarcd.SenderDomain{ID: id + 1, Name: fmt.Sprintf("d%d.example", id)})
	}
	m := musttest.Get(scenarioService(t).Read(t.Context(), of, "", dmarcd.Days{}))(t)
	defer m.Close()
	musttest.Do(t, m.LoadDomains(t.Context()))
	list := musttest.Get(m.List(t.Context(), insight.Query{Group: insight.GroupAddress, Limit: addresses, Assess: true}))(t)
	for _, row := range list.Rows {
		if row.Assessment.Class != dmarcd.ClassSpoofing {
			t.Fatalf("%s: got %+v, want spoofing", row.Key, row.Assessment)
		}
	}
}
