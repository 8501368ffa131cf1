package insight_test

import (
	"fmt"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
)

// manyTeam is the mail of so many addresses, reporters and From domains, the first of them
// with the most messages.
func manyTeam(n int) *team {
	t := &team{Identities: make([]dmarcd.SentIdentities, 1)}
	for i := range n {
		t.Addresses = append(t.Addresses, fmt.Sprintf("192.0.%d.%d", i>>8, i&255))
		t.Shares = append(t.Shares, dmarcd.SentShare{
			Report: dmarcd.ReportID(i + 1), Organization: fmt.Sprint("reporter ", i), HeaderFrom: fmt.Sprintf("f%d.example", i),
			Records: []dmarcd.Sent{{Count: int64(1 + (n-i)/10), Address: uint32(i), Outcome: dmarcd.Outcome(i % int(dmarcd.Outcomes))}},
		})
	}
	return t
}

// TestOthersAreOneRow walks through the pages of more sources than are listed one by one:
// those listed are the largest, and with the last row they add up to the total.
func TestOthersAreOneRow(t *testing.T) {
	t.Parallel()
	const n, unlisted = insight.MaxListed + 1000, 1000
	m := readMail(t, manyTeam(n), dmarcd.Days{})
	defer m.Close()
	for _, group := range []insight.Group{insight.GroupAddress, insight.GroupReporter, insight.GroupFrom} {
		var sum dmarcd.Counts
		var rows []insight.Row
		query := insight.Query{Group: group, Limit: 10_000}
		var list insight.List
		for more := true; more; more = list.Next != "" {
			var err error
			if list, err = m.Sources(query); err != nil {
				t.Fatal(err)
			}
			rows, query.After = append(rows, list.Sources...), list.Next
		}
		for _, row := range rows {
			sum.Add(row.Counts)
		}
		last := rows[len(rows)-1]
		if len(rows) != insight.MaxListed+1 || sum != list.Counts || list.Matching != insight.MaxListed {
			t.Errorf("%s: got %d rows that add up to %v, want %d and %v", group, len(rows), sum, insight.MaxListed+1, list.Counts)
		}
		if !last.Other || last.Key != "*" || last.Detail == "" || last.Counts.Total() > unlisted*(1+unlisted/10) {
			t.Errorf("%s: got the last row %+v, want the other %d", group, last, unlisted)
		}
		if rows[0].Other || rows[len(rows)-2].Other {
			t.Errorf("%s: the row of others is not the last", group)
		}
	}
	whole, err := m.Sources(insight.Query{Group: insight.GroupNetwork, Limit: 10})
	if err != nil || len(whole.Sources) == 0 || whole.Sources[len(whole.Sources)-1].Other {
		t.Errorf("networks: got %+v, %v, want no row of others", whole.Sources, err)
	}
	if found, err := m.Sources(insight.Query{Group: insight.GroupAddress, Search: "192.0.0.1", Limit: 10}); err != nil || found.Sources[len(found.Sources)-1].Other {
		t.Errorf("a search: got %+v, %v, want no row of others", found.Sources, err)
	}
}

// TestMergedAddresses groups mail whose addresses the store merged.
func TestMergedAddresses(t *testing.T) {
	t.Parallel()
	merged := usual()
	merged.MergedAddresses = make([]bool, len(merged.Addresses))
	merged.MergedAddresses[0], merged.UnlistedAddresses = true, 1234 // it stands for others in Network One
	merged.MergedIdentities = make([]bool, len(merged.Identities))
	merged.MergedIdentities[0], merged.UnlistedIdentities = true, 99
	m := readMail(t, merged, dmarcd.Days{})
	defer m.Close()
	for group, want := range map[insight.Group]string{
		insight.GroupAddress:  "Other addresses (1,234 addresses with fewer messages each): 100",
		insight.GroupSelector: "Other DKIM selectors (): 50",
		insight.GroupEnvelope: "Other envelope domains (): 50",
	} {
		list, err := m.Sources(insight.Query{Group: group, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		last := list.Sources[len(list.Sources)-1]
		got := fmt.Sprintf("%s (%s): %d", last.Name, last.Detail, last.Counts.Total())
		if got != want || list.Counts.Total() != 166 {
			t.Errorf("%s: got %s of %d, want %s of 166", group, got, list.Counts.Total(), want)
		}
	}
	networks, err := m.Sources(insight.Query{Group: insight.GroupNetwork, Limit: 100})
	if err != nil || networks.Sources[0].Name != "Network One" || networks.Sources[0].Counts.Total() != 100 {
		t.Errorf("networks: got %+v, %v, want Network One with its 100 messages first", networks.Sources, err)
	}
	others, err := m.Source(insight.Query{Group: insight.GroupAddress, Key: "*"})
	if err != nil || others.Counts.Total() != 100 || others.Name != "Other addresses" {
		t.Errorf("the others: got %+v, %v", others.Row, err)
	}
}
