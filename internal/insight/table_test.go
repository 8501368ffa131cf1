package insight_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// peakHeap runs f and returns by how much the heap grew at most.
func peakHeap(f func()) int64 {
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	done, peak := make(chan struct{}), make(chan int64)
	go func() {
		highest := before.HeapInuse
		for {
			select {
			case <-done:
				peak <- int64(highest) - int64(before.HeapInuse)
				return
			case <-time.After(5 * time.Millisecond):
				runtime.ReadMemStats(&now)
				highest = max(highest, now.HeapInuse)
			}
		}
	}()
	f()
	close(done)
	return <-peak
}

// manyKeys is the mail of n addresses with n envelope domains and selectors, each with a
// message, and of some with more.
func manyKeys(n int) *team {
	of := &team{all: []rollup.Part{}}
	var w rollup.Writer
	w.Begin(rollup.Share{Report: 1, Domain: 1, Day: 1, Reporter: "receiver.example", From: "example.com"})
	for i := range n {
		if w.Full() {
			of.all = append(of.all, rollup.Part{Block: w.Take()})
		}
		name := fmt.Sprintf("e%d.example", i)
		r := rollup.Record{N: uint32(i), Count: 1, Identity: w.Identity(rollup.Identity{
			Envelope: name, Signatures: []rollup.Signature{{Domain: name, Selector: "s", Result: rollup.Pass}},
		})}
		if i%(n/100) == n/200 {
			r.Count = 1000
		}
		r.Address = w.Address(fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255))
		w.Add(r)
	}
	of.all = append(of.all, rollup.Part{Block: w.Take()})
	return of
}

// TestManyRowsTakeLittleMemory bounds the memory for rows of which no two are the
// same: it does not grow with their number. Those with many messages are listed.
func TestManyRowsTakeLittleMemory(t *testing.T) {
	if testing.Short() {
		return // takes seconds of processor time
	}
	n := 300_000
	if os.Getenv("DMARCD_SOAK") != "" {
		n = 1_000_000
	}
	of, service := manyKeys(n), newService(t)
	want := int64(n + 100*999)
	for _, group := range []insight.Group{insight.GroupAddress, insight.GroupSelector} {
		var list insight.List
		grown := peakHeap(func() {
			m := musttest.Get(service.Read(t.Context(), of, "", dmarcd.Days{}))(t)
			defer m.Close()
			list = musttest.Get(m.List(t.Context(), insight.Query{Group: group, Limit: 101}))(t)
		})
		if list.Counts.Total() != want || list.Matching < insight.MaxListed/2 {
			t.Errorf("%s: got %d messages and %d rows, want %d and %d", group, list.Counts.Total(), list.Matching, want, insight.MaxListed)
		}
		if list.Rows[99].Counts.Total() != 1000 || list.Rows[100].Counts.Total() != 1 {
			t.Errorf("%s: the rows with the most messages are not listed first", group)
		}
		if grown > 160<<20 { // the collector runs when the heap has doubled
			t.Errorf("%s: the heap grew by %d MiB", group, grown>>20)
		}
		t.Logf("%s: the heap grew by %d MiB for %d rows", group, grown>>20, n)
	}
	var list insight.List
	grown := peakHeap(func() {
		m := musttest.Get(service.Read(t.Context(), of, "", dmarcd.Days{}))(t)
		defer m.Close()
		list = musttest.Get(m.List(t.Context(), insight.Query{Group: insight.GroupSender, Limit: n, Assess: true}))(t)
	})
	if list.Counts.Total() != want || list.Matching < 2 || list.Matching > insight.MaxListed || grown > 160<<20 {
		t.Errorf("senders: got %d messages of %d senders, and the heap grew by %d MiB, want %d messages of some", list.Counts.Total(), list.Matching, grown>>20, want)
	}
	t.Logf("senders: the heap grew by %d MiB for %d addresses and %d senders", grown>>20, n, list.Matching)
	grown = peakHeap(func() {
		m := musttest.Get(service.Read(t.Context(), of, "", dmarcd.Days{}))(t)
		defer m.Close()
		one, err := m.Breakdown(t.Context(), insight.Query{Group: insight.GroupFrom, Key: "example.com"})
		if err != nil || one.Counts.Total() != want {
			t.Errorf("got %d messages, %v, want %d", one.Counts.Total(), err, want)
		}
	})
	if grown > 256<<20 {
		t.Errorf("a breakdown: the heap grew by %d MiB", grown>>20)
	}
	t.Logf("a breakdown: the heap grew by %d MiB", grown>>20)
}

// TestListedRowsAreExact compares what is listed of many rows, whose messages come
// in several records in any order, with what they have.
func TestListedRowsAreExact(t *testing.T) {
	if testing.Short() {
		return // takes seconds of processor time
	}
	t.Parallel()
	const n = insight.MaxListed * 3
	of := &team{Identities: make([]rollup.Identity, 1), perBlock: 1}
	random := rand.New(rand.NewPCG(1, 2))
	sums := make(map[string]int64)
	for i := range n {
		of.Addresses = append(of.Addresses, fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255))
	}
	var all int64
	for day := range dmarcd.Day(5) {
		share := rollup.Share{Report: dmarcd.ReportID(day + 1), Day: day, From: "example.com"}
		for record, i := range random.Perm(n) {
			r := rollup.Record{N: uint32(record), Address: uint32(i), Count: 1 + int64(random.ExpFloat64()*20)}
			sums[of.Addresses[i]] += r.Count
			all += r.Count
			share.Records = append(share.Records, r)
		}
		of.Shares = append(of.Shares, share)
	}
	m := readMail(t, of, dmarcd.Days{})
	defer m.Close()
	list, err := m.List(t.Context(), insight.Query{Group: insight.GroupAddress, Limit: n})
	if err != nil || len(list.Rows) != insight.MaxListed+1 || list.Counts.Total() != all {
		t.Fatalf("got %d rows with %d messages, %v; want %d with %d", len(list.Rows), list.Counts.Total(), err, insight.MaxListed+1, all)
	}
	var messages []int64
	for _, sum := range sums {
		messages = append(messages, sum)
	}
	slices.Sort(messages)
	slices.Reverse(messages)
	wrong := 0
	for _, row := range list.Rows[:insight.MaxListed] {
		if row.Counts.Total() != sums[row.Key] {
			t.Fatalf("%s: got %d messages, want %d", row.Key, row.Counts.Total(), sums[row.Key])
		}
		if row.Counts.Total() < messages[insight.MaxListed-1] {
			wrong++
		}
	}
	if wrong > insight.MaxListed/100 {
		t.Errorf("%d of the rows have fewer messages than others that are not listed", wrong)
	}
	t.Logf("%d rows are listed by chance", wrong)
}

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

// TestOthersAreOneRow walks through the pages of more rows than are listed one by one:
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
			if list, err = m.List(t.Context(), query); err != nil {
				t.Fatal(err)
			}
			rows, query.After = append(rows, list.Rows...), list.Next
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
	whole, err := m.List(t.Context(), insight.Query{Group: insight.GroupSender, Limit: 10})
	if err != nil || len(whole.Rows) == 0 || whole.Rows[len(whole.Rows)-1].Other {
		t.Errorf("networks: got %+v, %v, want no row of others", whole.Rows, err)
	}
	if found, err := m.List(t.Context(), insight.Query{Group: insight.GroupAddress, Search: "192.0.0.1", Limit: 10}); err != nil || found.Rows[len(found.Rows)-1].Other {
		t.Errorf("a search: got %+v, %v, want no row of others", found.Rows, err)
	}
}

// TestPagesAgree walks through the pages of many rows with the same number of messages,
// while the order of the records changes: no row is on two of them.
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
			list := musttest.Get(m.List(t.Context(), query))(t)
			for _, row := range list.Rows {
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

// TestReplicasAgree lists many rows with the same number of messages by two services, as
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
			list, err := m.List(t.Context(), insight.Query{Group: group, Limit: insight.MaxListed})
			m.Close()
			musttest.Do(t, err)
			for _, row := range list.Rows {
				lists[i] = append(lists[i], row.Key)
			}
		}
		if len(lists[0]) < insight.MaxListed/2 || !slices.Equal(lists[0], lists[1]) {
			t.Errorf("%s: the lists of %d and %d rows differ", group, len(lists[0]), len(lists[1]))
		}
	}
}
