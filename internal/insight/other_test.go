package insight_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// manyTeam is the mail of so many addresses, reporters and From domains, the first of them
// with the most messages.
func manyTeam(n int) *team {
	t := &team{Identities: make([]rollup.Identity, 1), perBlock: 10_000}
	for i := range n {
		t.Addresses = append(t.Addresses, fmt.Sprintf("192.0.%d.%d", i>>8, i&255))
		t.Shares = append(t.Shares, rollup.Share{
			Report: dmarcd.ReportID(i + 1), Reporter: fmt.Sprint("reporter ", i), From: fmt.Sprintf("f%d.example", i),
			Records: []rollup.Record{{Count: int64(1 + (n-i)/10), Address: uint32(i), Outcome: dmarcd.Outcome(i % int(dmarcd.Outcomes))}},
		})
	}
	return t
}

// TestOthersAreOneRow walks through the pages of more sources than are listed one by one:
// those listed are the largest, and with the last row they add up to the total.
func TestOthersAreOneRow(t *testing.T) {
	if testing.Short() {
		return // takes seconds of processor time
	}
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
			if list, err = m.Sources(t.Context(), query); err != nil {
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
	whole, err := m.Sources(t.Context(), insight.Query{Group: insight.GroupNetwork, Limit: 10})
	if err != nil || len(whole.Sources) == 0 || whole.Sources[len(whole.Sources)-1].Other {
		t.Errorf("networks: got %+v, %v, want no row of others", whole.Sources, err)
	}
	if found, err := m.Sources(t.Context(), insight.Query{Group: insight.GroupAddress, Search: "192.0.0.1", Limit: 10}); err != nil || found.Sources[len(found.Sources)-1].Other {
		t.Errorf("a search: got %+v, %v, want no row of others", found.Sources, err)
	}
}

// TestPagesAgree walks through the pages of many sources with the same number of messages,
// while the order of the records changes: no source is on two of them.
func TestPagesAgree(t *testing.T) {
	if testing.Short() {
		return // takes seconds of processor time
	}
	t.Parallel()
	const n = insight.MaxListed * 3
	of, service := manyKeys(n), newService(t)
	for _, group := range []insight.Group{insight.GroupAddress, insight.GroupEnvelope} {
		seen := make(map[string]bool)
		var sum int64
		query := insight.Query{Group: group, Limit: 15_000}
		for more := true; more; more = query.After != "" {
			slices.Reverse(of.all)
			m := musttest.Get(service.Read(t.Context(), of, "", dmarcd.Days{}))(t)
			list := musttest.Get(m.Sources(t.Context(), query))(t)
			for _, row := range list.Sources {
				if seen[row.Key] {
					t.Fatalf("%s: %s is on two pages", group, row.Key)
				}
				seen[row.Key] = true
				sum += row.Counts.Total()
			}
			query.After = list.Next
			m.Close()
		}
		if want := int64(n + 100*999); sum != want || len(seen) < insight.MaxListed/2 {
			t.Errorf("%s: got %d messages in %d rows, want %d", group, sum, len(seen), want)
		}
	}
}

// TestReplicasAgree lists many sources with the same number of messages by two services, as
// two replicas have them: both list the same ones.
func TestReplicasAgree(t *testing.T) {
	if testing.Short() {
		return // takes seconds of processor time
	}
	t.Parallel()
	of := manyKeys(insight.MaxListed * 3)
	for _, group := range []insight.Group{insight.GroupAddress, insight.GroupSelector} {
		var lists [2][]string
		for i := range lists {
			m := musttest.Get(newService(t).Read(t.Context(), of, "", dmarcd.Days{}))(t)
			list, err := m.Sources(t.Context(), insight.Query{Group: group, Limit: insight.MaxListed})
			m.Close()
			musttest.Do(t, err)
			for _, row := range list.Sources {
				lists[i] = append(lists[i], row.Key)
			}
		}
		if len(lists[0]) < insight.MaxListed/2 || !slices.Equal(lists[0], lists[1]) {
			t.Errorf("%s: the lists of %d and %d sources differ", group, len(lists[0]), len(lists[1]))
		}
	}
}
