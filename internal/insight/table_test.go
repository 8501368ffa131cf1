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

// TestManySourcesTakeLittleMemory bounds the memory for sources of which no two are the
// same: it does not grow with their number. Those with many messages are listed.
func TestManySourcesTakeLittleMemory(t *testing.T) {
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
			list = musttest.Get(m.Sources(t.Context(), insight.Query{Group: group, Limit: 101}))(t)
		})
		if list.Counts.Total() != want || list.Matching < insight.MaxListed/2 {
			t.Errorf("%s: got %d messages and %d sources, want %d and %d", group, list.Counts.Total(), list.Matching, want, insight.MaxListed)
		}
		if list.Sources[99].Counts.Total() != 1000 || list.Sources[100].Counts.Total() != 1 {
			t.Errorf("%s: the sources with the most messages are not listed first", group)
		}
		if grown > 160<<20 { // the collector runs when the heap has doubled
			t.Errorf("%s: the heap grew by %d MiB", group, grown>>20)
		}
		t.Logf("%s: the heap grew by %d MiB for %d sources", group, grown>>20, n)
	}
	var list insight.List
	grown := peakHeap(func() {
		m := musttest.Get(service.Read(t.Context(), of, "", dmarcd.Days{}))(t)
		defer m.Close()
		list = musttest.Get(m.Sources(t.Context(), insight.Query{Group: insight.GroupNetwork, Limit: n, Assess: true}))(t)
	})
	if list.Counts.Total() != want || list.Matching < 2 || list.Matching > insight.MaxListed || grown > 160<<20 {
		t.Errorf("senders: got %d messages of %d senders, and the heap grew by %d MiB, want %d messages of some", list.Counts.Total(), list.Matching, grown>>20, want)
	}
	t.Logf("senders: the heap grew by %d MiB for %d addresses and %d senders", grown>>20, n, list.Matching)
	grown = peakHeap(func() {
		m := musttest.Get(service.Read(t.Context(), of, "", dmarcd.Days{}))(t)
		defer m.Close()
		source, err := m.Source(t.Context(), insight.Query{Group: insight.GroupFrom, Key: "example.com"})
		if err != nil || source.Counts.Total() != want {
			t.Errorf("got %d messages, %v, want %d", source.Counts.Total(), err, want)
		}
	})
	if grown > 256<<20 {
		t.Errorf("a source: the heap grew by %d MiB", grown>>20)
	}
	t.Logf("a source: the heap grew by %d MiB", grown>>20)
}

// TestListedSourcesAreExact compares what is listed of many sources, whose messages come
// in several records in any order, with what they have.
func TestListedSourcesAreExact(t *testing.T) {
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
	list, err := m.Sources(t.Context(), insight.Query{Group: insight.GroupAddress, Limit: n})
	if err != nil || len(list.Sources) != insight.MaxListed+1 || list.Counts.Total() != all {
		t.Fatalf("got %d rows with %d messages, %v; want %d with %d", len(list.Sources), list.Counts.Total(), err, insight.MaxListed+1, all)
	}
	var messages []int64
	for _, sum := range sums {
		messages = append(messages, sum)
	}
	slices.Sort(messages)
	slices.Reverse(messages)
	wrong := 0
	for _, row := range list.Sources[:insight.MaxListed] {
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
