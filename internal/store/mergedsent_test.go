package store_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// randomRecords are records of few and of many addresses and envelope domains.
func randomRecords(random *rand.Rand, n int) []aggregate.Record {
	records := make([]aggregate.Record, n)
	for i := range records {
		r := storetest.Passed(ours, 1+random.Int64N(50))
		if random.IntN(2) == 0 {
			r = storetest.Failed("a."+ours, 1+random.Int64N(50))
		}
		r.Source = netip.AddrFrom4([4]byte{192, 0, byte(random.IntN(3)), byte(random.ExpFloat64() * 20)}).String()
		switch random.IntN(10) {
		case 0:
			r.Source = fmt.Sprintf("2001:db8::%x", random.IntN(50))
		case 1:
			r.Source = "unknown"
		}
		r.EnvelopeFrom = fmt.Sprintf("e%d.example", int(random.ExpFloat64()*10))
		records[i] = r
	}
	return records
}

// sentSums adds up messages by address, by envelope domain and by outcome. Those that are
// merged count for the group of their address or domain.
func sentSums(mail *dmarcd.SentMail) (sums map[string]int64, listed int) {
	sums = make(map[string]int64)
	for _, share := range mail.Shares {
		for _, r := range share.Records {
			sums[fmt.Sprint("outcome ", r.Outcome)] += r.Count
			sums[fmt.Sprint("day ", share.Day, share.HeaderFrom)] += r.Count
			address, envelope := mail.Addresses[r.Address], mail.Identities[r.Identities].EnvelopeFrom
			sums["network "+networkOf(address)] += r.Count
			if mail.MergedAddresses == nil || !mail.MergedAddresses[r.Address] {
				sums["address "+address] += r.Count
			}
			if mail.MergedIdentities == nil || !mail.MergedIdentities[r.Identities] {
				sums["envelope "+envelope] += r.Count
			}
		}
	}
	for i := range mail.Addresses {
		if mail.MergedAddresses == nil || !mail.MergedAddresses[i] {
			listed++
		}
	}
	return sums, listed
}

func networkOf(address string) string {
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return "none"
	}
	prefix, _ := addr.Prefix(24)
	return prefix.String()
}

// TestMergedSent compares records with few listed keys with the same records where all
// are listed: no message is lost, what is listed has its exact sum, and nothing that is
// merged has more messages than anything that is listed. It holds for records on sheets
// and beside them, in small and in large shares.
func TestMergedSent(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		random := rand.New(rand.NewPCG(1, 2))
		in.wantReceived("stored", report("large", ours, randomRecords(random, 3000)...))
		in.wantReceived("stored", report("small", ours, randomRecords(random, 300)...))
		for round := range 2 {
			for _, name := range []string{"", ours} {
				limits := dmarcd.SentLimits{Records: 10_000, Keys: 10_000, AddressGroup: networkOf}
				all, err := in.team.Sent(in.Context(), name, dmarcd.Days{}, limits)
				in.must(err)
				limits.Keys = 20
				in.must(in.store.ForgetMail())
				some, err := in.team.Sent(in.Context(), name, dmarcd.Days{}, limits)
				in.must(err)
				in.must(in.store.ForgetMail())
				compareMerged(in.T, all, some, limits.Keys)
			}
			if round == 0 {
				makeSheets(in.T, in.store)
				in.wantReceived("stored", report("later", ours, randomRecords(random, 100)...))
			}
		}
	})
}

func compareMerged(t *testing.T, all, some *dmarcd.SentMail, keys int) {
	t.Helper()
	want, distinct := sentSums(all)
	got, listed := sentSums(some)
	if listed != keys || some.UnlistedAddresses != distinct-keys {
		t.Errorf("got %d listed addresses and %d others, want %d of %d", listed, some.UnlistedAddresses, keys, distinct)
	}
	least, most := int64(1<<62), int64(0)
	for key, sum := range want {
		counted, found := got[key]
		switch {
		case strings.HasPrefix(key, "envelope "):
			// Some of the identities with a domain may be listed, and others merged.
			if counted > sum {
				t.Errorf("%s: got %d messages, want at most %d", key, counted, sum)
			}
		case found && counted != sum, !found && !strings.HasPrefix(key, "address "):
			t.Errorf("%s: got %d messages, want %d", key, counted, sum)
		}
		if strings.HasPrefix(key, "address ") && found {
			least = min(least, sum)
		} else if strings.HasPrefix(key, "address ") {
			most = max(most, sum)
		}
	}
	if most > least {
		t.Errorf("an address with %d messages is merged, and one with %d is listed", most, least)
	}
}

// TestManyKeysAreCountedInParts has more keys than the table of a scan takes.
func TestManyKeysAreCountedInParts(t *testing.T) {
	t.Parallel()
	const distinct, limit = 1000, 30
	random := rand.New(rand.NewPCG(3, 4))
	hashes, sums := make([]uint64, distinct), make(map[uint64]int64)
	for i := range hashes {
		hashes[i] = random.Uint64()
	}
	type record struct {
		hash     uint64
		messages int64
	}
	var records []record
	for range 20 * distinct {
		r := record{hashes[random.IntN(distinct)], 1 + random.Int64N(9)}
		records = append(records, r)
		sums[r.hash] += r.messages
	}
	heaviest, counted, scans := store.HeavyKeys(limit, 64, func(add func(hash uint64, messages int64)) {
		for _, r := range records {
			add(r.hash, r.messages)
		}
	})
	if len(heaviest) != limit || counted != len(sums) || scans < 2 {
		t.Fatalf("got %d keys of %d in %d scans, want %d of %d in several", len(heaviest), counted, scans, limit, len(sums))
	}
	least := int64(1 << 62)
	for hash := range heaviest {
		least = min(least, sums[hash])
	}
	for hash, sum := range sums {
		if _, found := heaviest[hash]; !found && sum > least {
			t.Errorf("a key of %d messages is not among the heaviest, and one of %d is", sum, least)
		}
	}
}

// manyAddresses has a report of so many addresses come in, each with an envelope domain of
// its own where details is set.
func manyAddresses(t testing.TB, team *store.Team, id string, n int, details bool) {
	t.Helper()
	records := make([]aggregate.Record, n)
	for i := range records {
		r := storetest.Failed(ours, 1)
		r.Source = fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)
		if details {
			r.EnvelopeFrom = fmt.Sprintf("e%d.example", i)
		}
		records[i] = r
	}
	receive(t, team, storetest.Aggregate(id, ours, 100, records...))
}

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

// TestManyAddressesTakeLittleMemory bounds the memory for addresses and details of which
// no two are the same. DMARCD_SOAK makes it three million.
func TestManyAddressesTakeLittleMemory(t *testing.T) {
	reports, perReport := 1, 300_000
	switch {
	case os.Getenv("DMARCD_SOAK") != "":
		reports, perReport = 3, 1_000_000
	case testing.Short():
		perReport = 50_000
	}
	s := storetest.SQLite(t).Open(t, store.Options{})
	team := newTeam(t, s, "a")
	addDomain(t, team, ours)
	for i := range reports {
		manyAddresses(t, team, fmt.Sprint(i), perReport, true)
	}
	var mail *dmarcd.SentMail
	var err error
	limits := dmarcd.SentLimits{Records: 3_000_000, Keys: 32_768, AddressGroup: networkOf}
	grown := peakHeap(func() { mail, err = team.Sent(t.Context(), "", dmarcd.Days{}, limits) })
	if err != nil {
		t.Fatal(err)
	}
	records := mail.Records()
	if records != reports*perReport || mail.UnlistedAddresses != perReport-limits.Keys {
		t.Errorf("got %d records and %d other addresses", records, mail.UnlistedAddresses)
	}
	// Twice what is alive: the collector runs when the heap has doubled.
	if most := 2 * (int64(records)*24 + 96<<20); grown > most {
		t.Errorf("the heap grew by %d MiB, want at most %d", grown>>20, most>>20)
	}
	t.Logf("%d records: the heap grew by %d MiB", records, grown>>20)
}
