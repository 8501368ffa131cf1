package resolver_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/resolver"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
)

const benchNames = 1000

func startBenchServer(b *testing.B) *resolvertest.Server {
	b.Helper()
	var zone strings.Builder
	for i := range benchNames {
		fmt.Fprintf(&zone, "_dmarc.d%d.example.org. TXT \"v=DMARC1; p=none; rua=mailto:reports@d%d.example.org\"\n", i, i)
	}
	return resolvertest.Start(b, zone.String())
}

func benchName(i uint64) string { return fmt.Sprintf("_dmarc.d%d.example.org", i%benchNames) }

// BenchmarkFresh asks over loopback, many callers at once.
func BenchmarkFresh(b *testing.B) {
	server := startBenchServer(b)
	r := newResolver(b, resolver.Config{}, server).Fresh()
	var next atomic.Uint64
	b.SetParallelism(32)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if got := r.Resolve(b.Context(), text(benchName(next.Add(1)))); got.Outcome != dns.Data {
				b.Errorf("got %s (%s) want data", got.Outcome, got.Reason)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "questions/s")
}

// BenchmarkMessageLibrary asks the same with the client of the message library
// alone: no cache, no retries, no limits.
func BenchmarkMessageLibrary(b *testing.B) {
	server := startBenchServer(b)
	client := mdns.Client{Timeout: patient}
	var next atomic.Uint64
	b.SetParallelism(32)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			query := new(mdns.Msg).SetQuestion(benchName(next.Add(1))+".", mdns.TypeTXT).SetEdns0(1232, false)
			reply, _, err := client.ExchangeContext(b.Context(), query, server.Addr())
			if err != nil || len(reply.Answer) != 1 {
				b.Errorf("got %v, error %v want one record", reply, err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "questions/s")
}

// BenchmarkCached answers from the cache.
func BenchmarkCached(b *testing.B) {
	server := startBenchServer(b)
	r := newResolver(b, resolver.Config{}, server)
	for i := range uint64(benchNames) {
		r.Resolve(b.Context(), text(benchName(i)))
	}
	q := text(benchName(1))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if got := r.Resolve(b.Context(), q); got.Outcome != dns.Data {
				b.Errorf("got %s (%s) want data", got.Outcome, got.Reason)
			}
		}
	})
}
