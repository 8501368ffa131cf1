package zone_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/zone"
)

func TestStats(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := zone.NewUnbound(zone.Options{Zone: newZone(t), Secondaries: []zone.Secondary{secondary(t)}, Now: func() time.Time { return now }})
	of := func(name string, kind uint16) *mdns.Msg { return new(mdns.Msg).SetQuestion(name, kind) }
	signed := func(m *mdns.Msg, by string) []byte {
		packed, _, err := mdns.TsigGenerate(signedBy(m, "transfer.", mdns.HmacSHA256, now), by, "", false)
		musttest.Do(t, err)
		return packed
	}
	s.Respond([]byte("no message, but long enough"), client, true)
	for _, query := range []*mdns.Msg{
		of("text."+apex+".", mdns.TypeTXT), of("text."+apex+".", mdns.TypeMX), of("ent."+apex+".", mdns.TypeTXT), of("gone."+apex+".", mdns.TypeTXT),
		of("example.com.", mdns.TypeTXT), of(apex+".", mdns.TypeAXFR),
	} {
		s.Respond(musttest.Get(query.Pack())(t), client, true)
	}
	s.Respond(signed(of(apex+".", mdns.TypeAXFR), secret), client, true)
	s.Respond(signed(of(apex+".", mdns.TypeAXFR), "b3RoZXIgc2VjcmV0IG9mIG1hbnkgYnl0ZXM="), client, true)
	for range 104 {
		s.Respond(musttest.Get(of("many."+apex+".", mdns.TypeTXT).Pack())(t), client, false)
	}
	want := zone.Stats{Answered: 1 + 1 + 104, NoData: 2, NoName: 1, Refused: 2, Failed: 2, Truncated: 2, Dropped: 2, Whole: 1, Rejected: 2}
	if got := s.Stats(); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestRandomNames asks for 100,000 random names: they take no memory, and other names are answered.
func TestRandomNames(t *testing.T) { //nolint:paralleltest // it measures the heap
	now := time.Unix(1_800_000_000, 0)
	s := zone.NewUnbound(zone.Options{Zone: newZone(t), Now: func() time.Time { return now }})
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, known := heap(), musttest.Get(new(mdns.Msg).SetQuestion("text."+apex+".", mdns.TypeTXT).Pack())(t)
	for i := range 100_000 {
		from := netip.AddrFrom4([4]byte{198, 18, byte(i), byte(i >> 8)})
		s.Respond(musttest.Get(new(mdns.Msg).SetQuestion(fmt.Sprintf("random%d.%s.", i, apex), mdns.TypeTXT).Pack())(t), from, false)
		if i%1000 != 0 {
			continue
		}
		now = now.Add(time.Second) // otherwise it is above its own limit
		if reply := ask(t, s, new(mdns.Msg).SetQuestion("text."+apex+".", mdns.TypeTXT), false); reply == nil || reply.Truncated || len(reply.Answer) != 1 {
			t.Fatalf("after %d: got %v for a name that exists", i, reply)
		}
	}
	if got := s.Stats(); got.NoName != 100_000 || got.Answered != 100 || got.Dropped+got.Truncated != 0 {
		t.Errorf("got %+v", got)
	}
	// From one network they share one limit.
	for i := range 100_000 {
		s.Respond(musttest.Get(new(mdns.Msg).SetQuestion(fmt.Sprintf("random%d.%s.", i, apex), mdns.TypeTXT).Pack())(t), client, false)
	}
	if got := s.Stats(); got.Dropped+got.Truncated != 100_000-100 {
		t.Errorf("from one network: got %+v, want 100 whole answers", got)
	}
	if reply := s.Respond(known, client, false); len(reply) != 1 {
		t.Errorf("got %v, want the answer about another name", reply)
	}
	if after := heap(); after > before+1<<20 {
		t.Errorf("got %d more bytes, want no memory of names", after-before)
	}
	runtime.KeepAlive(s)
}
