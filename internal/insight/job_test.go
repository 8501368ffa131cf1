package insight_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/rollup"
	"github.com/dmarcd/dmarcd/internal/senders"
)

// TestFirstAndLastSeen lists senders of some days with the days over all time that are
// stored, which may miss the latest.
func TestFirstAndLastSeen(t *testing.T) {
	t.Parallel()
	of := usual()
	of.senders = map[string]dmarcd.SeenDays{"AS64496:yours": {First: -7, Last: 2}, "Post Office:yours": {First: 2, Last: 90}}
	m := readMail(t, of, daysOf(1, 3))
	list := musttest.Get(m.List(t.Context(), insight.Query{Group: insight.GroupSender, Limit: 3}))(t)
	var got []string
	for _, row := range list.Rows {
		got = append(got, fmt.Sprintf("%s %d-%d %d-%d", row.Key, row.First, row.Last, row.Seen.First, row.Seen.Last))
	}
	want := []string{"AS64496:yours 1-3 -7-3", "Post Office:yours 2-2 2-90", "AS64497:others 2-2 2-2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	one, err := m.Breakdown(t.Context(), insight.Query{Group: insight.GroupSender, Key: "AS64496:yours"})
	if want := (insight.Fact{Name: "First seen", Value: "25 Dec 1969"}); err != nil || !slices.Contains(one.Facts, want) {
		t.Errorf("got the facts %v, %v; want %v among them", one.Facts, err, want)
	}
	if list, err = m.List(t.Context(), insight.Query{Group: insight.GroupAddress, Limit: 1}); err != nil || list.Rows[0].Seen != nil {
		t.Errorf("an address: got %+v, %v; want nothing over all time", list.Rows, err)
	}
}

// TestNamesOfKeysAreBounded finds the DKIM keys of a day, of which one has a name that the DNS
// could not have.
func TestNamesOfKeysAreBounded(t *testing.T) {
	t.Parallel()
	var w rollup.Writer
	w.Begin(rollup.Share{Report: 1, Domain: 1, Day: 1, Reporter: "receiver.example", From: "example.com"})
	for i, selector := range []string{"s", strings.Repeat("s", 253-len("._domainkey.example.com")), strings.Repeat("s", 254-len("._domainkey.example.com"))} {
		identity := w.Identity(rollup.Identity{Signatures: []rollup.Signature{{Domain: "example.com", Selector: selector, Result: rollup.Pass}}})
		w.Add(rollup.Record{N: uint32(i), Count: 1, Identity: identity, Address: w.Address("192.0.2.1")})
	}
	of := &team{all: []rollup.Part{{Block: w.Take()}}}
	var days []dmarcd.DomainDay
	musttest.Do(t, newService(t).FindSenders(t.Context(), of, dmarcd.Days{}, func([]dmarcd.Sender) error { return nil }, func(found []dmarcd.DomainDay) error {
		days = found
		return nil
	}))
	if len(days) != 1 || days[0].Messages != 3 || len(days[0].Selectors) != 2 {
		t.Errorf("got %+v, want 3 messages of a day, and 2 keys", days)
	}
}

// TestFindSenders finds the senders of each domain, and of all.
func TestFindSenders(t *testing.T) {
	t.Parallel()
	of := usual()
	for i := range of.Shares {
		of.Shares[i].Domain = dmarcd.DomainID(1 + i%2)
	}
	var got []string
	var days []dmarcd.DomainDay
	err := newService(t).FindSenders(t.Context(), of, dmarcd.Days{}, func(found []dmarcd.Sender) error {
		for _, s := range found {
			got = append(got, fmt.Sprintf("%d %s %d-%d", s.Domain, s.Key, s.First, s.Last))
		}
		return nil
	}, func(found []dmarcd.DomainDay) error {
		days = found
		return nil
	})
	want := []string{
		"0 -:as:relay.example 3-3", "0 -:others 3-3", "0 AS64496:yours 1-3", "0 AS64497:others 2-2", "0 Newsletters:rest 2-2", "0 Post Office:yours 2-2",
		"1 -:others 3-3", "1 AS64496:yours 1-1", "1 Newsletters:rest 2-2", "1 Post Office:yours 2-2",
		"2 -:as:relay.example 3-3", "2 AS64496:yours 3-3", "2 AS64497:others 2-2",
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v; -want +got\n%s", err, diff)
	}
	if of.jobTurns.Load() == 0 {
		t.Error("the job took no turn")
	}
	var messages int64
	for _, day := range days {
		of := func(parts []dmarcd.MailPart) (n int64) {
			for _, part := range parts {
				n += part.Messages
			}
			return n
		}
		if of(day.Senders) != day.Messages || of(day.Receivers) != day.Messages || day.Messages == 0 {
			t.Errorf("the parts of %+v do not add up", day)
		}
		messages += day.Messages
	}
	if len(days) != 5 || messages == 0 {
		t.Errorf("got the mail of %d days and domains, want 5", len(days))
	}
}

// TestJobLeavesMemoryToTheTeam reads as much as a team may while a job reads its records.
func TestJobLeavesMemoryToTheTeam(t *testing.T) {
	t.Parallel()
	budget := memory.NewBudget(64 << 20)
	of := usual()
	of.atJobTurn = func() {
		_, release, err := budget.AcquireAll(t.Context(), of.ID())
		if err != nil {
			t.Errorf("the team's own read: %v", err)
			return
		}
		release()
	}
	service := insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), hosts{}, budget)
	musttest.Do(t, service.FindSenders(t.Context(), of, dmarcd.Days{}, func([]dmarcd.Sender) error { return nil }, func([]dmarcd.DomainDay) error { return nil }))
	if of.jobTurns.Load() == 0 {
		t.Error("the job took no turn")
	}
}
