package dnscheck_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/resolver"
)

// endless answers every TXT query with an SPF record that includes ten new names.
type endless struct{ inner dns.Resolver }

func (e endless) Resolve(ctx context.Context, q dns.Question) dns.Answer {
	if q.Type != dns.TXT || strings.HasPrefix(q.Name, "_") || !strings.HasSuffix(q.Name, "bomb.example") {
		return e.inner.Resolve(ctx, q)
	}
	var record strings.Builder
	record.WriteString("v=spf1")
	for i := range 10 {
		fmt.Fprintf(&record, " include:x%d.%s", i, q.Name)
	}
	return dns.Answer{Question: q, Outcome: dns.Data, Records: []dns.Record{{Name: q.Name, Type: dns.TXT, Text: []string{record.String() + " -all"}}}}
}

// TestHostileZones is not parallel: it measures memory.
func TestHostileZones(t *testing.T) { //nolint:paralleltest // see above
	for _, tt := range []struct {
		name     string
		resolver dns.Resolver
		want     string
	}{
		{"an SPF record of 60 KB", dnstest.New(`bomb.example TXT "v=spf1 ` + repeat("ip4:192.0.2.1 ", 60<<10/14) + `-all"`), "spf.record_too_long"},
		{"ten thousand terms with the same addresses", dnstest.New(`bomb.example TXT "v=spf1 ` + repeat("a ", 10000) + `-all"` + "\n" + numbered("bomb.example A 192.0.2.%d\n", 250)), "spf.record_too_long"},
		{"ten thousand names that cannot be queried", dnstest.New(`bomb.example TXT "v=spf1` + repeat(" a:..x", 10000) + ` -all"`), "spf.malformed_name"},
		{"a DMARC record of 60 KB", dnstest.New(`_dmarc.bomb.example TXT "v=DMARC1; p=reject; ` + repeat("a=b; ", 12<<10) + `"`), "dmarc.too_many_tags"},
		{"a DMARC record with ten thousand addresses", dnstest.New(`_dmarc.bomb.example TXT "v=DMARC1; p=reject; rua=` + numbered("mailto:a@h%d.example,", 10000) + `mailto:a@b.example"`), "dmarc.long_record"},
		{"ten thousand strings in one record", dnstest.New(`_dmarc.bomb.example TXT "v=DMARC1; p=none"` + repeat(` "x"`, 10000)), "dmarc.long_record"},
		{"ten thousand records at one name", dnstest.New(repeat(`_dmarc.bomb.example TXT "v=DMARC1; p=none"`+"\n", 10000)), "dmarc.multiple_records"},
		{"ten thousand SPF records", dnstest.New(repeat(`bomb.example TXT "v=spf1 -all"`+"\n", 10000)), "spf.multiple_records"},
		{"ten thousand keys at one selector", dnstest.New(repeat(`default._domainkey.bomb.example TXT "v=DKIM1; p="`+"\n", 10000)), "dkim.multiple_records"},
		{"ten thousand mail servers", dnstest.New(numbered("bomb.example MX 10 m%d.bomb.example\n", 10000)), "mx.dangling"},
		{"includes without end", endless{dnstest.New("bomb.example NS ns.bomb.example")}, "spf.tree_too_large"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			counting := &counter{inner: tt.resolver}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			check := dnscheck.New(dnscheck.Options{Resolver: counting, Now: noon}).Examine(t.Context(), dnscheck.Request{Domain: "bomb.example"})
			runtime.ReadMemStats(&after)
			if took := time.Since(began); took > time.Minute {
				t.Errorf("got an answer after %v, want it within a minute, also on a busy machine", took)
			}
			const mostBytes = 256 << 20
			if got := after.TotalAlloc - before.TotalAlloc; got > mostBytes {
				t.Errorf("got %d bytes allocated, want at most %d", got, mostBytes)
			}
			if got := counting.count(); got > dnscheck.DefaultBudget {
				t.Errorf("got %d questions, want at most %d", got, dnscheck.DefaultBudget)
			}
			if !slices.ContainsFunc(check.Findings, func(f dmarcd.Finding) bool { return f.ID == tt.want }) {
				t.Errorf("got %v, want %s", ids(check), tt.want)
			}
			for _, f := range check.Findings {
				if n := len(f.What) + len(f.Why) + len(f.Fix); n > 2000 {
					t.Errorf("%s: got %d bytes of words, want what a person can read", f.ID, n)
				}
			}
			const mostFindings = 60
			if len(check.Findings) > mostFindings {
				t.Errorf("got %d findings, want at most %d", len(check.Findings), mostFindings)
			}
		})
	}
}

// TestTerminalCodesInRecords checks that findings contain no terminal control sequences.
func TestTerminalCodesInRecords(t *testing.T) {
	t.Parallel()
	zone := dnstest.New("")
	zone.Add(
		dns.Record{Name: "_dmarc.bomb.example", Type: dns.TXT, Text: []string{"v=dmarc1; p=\x1b[31m\x00\r\nreject"}},
		dns.Record{Name: "bomb.example", Type: dns.TXT, Text: []string{"v=spf1 a:\x1b]0;owned\x07 \xff -all"}},
	)
	check := dnscheck.New(dnscheck.Options{Resolver: zone, Now: noon}).Examine(t.Context(), dnscheck.Request{Domain: "bomb.example"})
	for _, f := range check.Findings {
		for _, text := range []string{f.What, f.Why, f.Fix, f.Record.String()} {
			if strings.ContainsAny(text, "\x1b\x07\x00\r\n") {
				t.Errorf("%s: got %q, want no control characters", f.ID, text)
			}
		}
	}
}

// TestSlowDripOverTCP uses a server that truncates every UDP reply and sends only one byte
// over TCP.
func TestSlowDripOverTCP(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	address := dripServer(t)
	r := resolver.New(resolver.Config{Servers: []string{address}, Timeout: 50 * time.Millisecond, Attempts: 1})
	t.Cleanup(r.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	began := time.Now()
	check := dnscheck.New(dnscheck.Options{Resolver: r, Now: noon}).Examine(ctx, dnscheck.Request{Domain: "bomb.example"})
	if took := time.Since(began); took > time.Minute {
		t.Errorf("got an answer after %v, want it soon after the deadline of 1s", took)
	}
	if check.Conclusive || !slices.Contains(ids(check), "dmarc.inconclusive") {
		t.Errorf("got conclusive=%t and %v, want dmarc.inconclusive", check.Conclusive, ids(check))
	}
}

// dripServer runs the server on one port of UDP and TCP until the test ends.
func dripServer(t *testing.T) string {
	t.Helper()
	listener := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	packets := musttest.Get(net.ListenPacket("udp", listener.Addr().String()))(t)
	t.Cleanup(func() {
		_ = listener.Close() // ends the goroutines below
		_ = packets.Close()
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte{0}) // half of the length, and then nothing
			t.Cleanup(func() { _ = conn.Close() })
		}
	}()
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, from, err := packets.ReadFrom(buffer)
			if err != nil {
				return
			}
			if n > 2 {
				buffer[2] |= 0x82 // a reply, truncated
				_, _ = packets.WriteTo(buffer[:n], from)
			}
		}
	}()
	return listener.Addr().String()
}

// faulty panics for some names, like a bug in a record parser.
type faulty string

func (f faulty) Resolve(_ context.Context, q dns.Question) dns.Answer {
	if strings.HasPrefix(q.Name, string(f)) {
		panic("odd record")
	}
	if q.Type == dns.TXT && q.Name == "example.com" {
		return dns.Answer{Question: q, Outcome: dns.Data, Records: []dns.Record{{Text: []string{"v=spf1 include:spf.example.com mx ?all"}}}}
	}
	if q.Type == dns.MX {
		return dns.Answer{Question: q, Outcome: dns.Data, Records: []dns.Record{{Preference: 1, Host: "mx1.example.com"}, {Preference: 2, Host: "mx2.example.com"}}}
	}
	return dns.Answer{Question: q, Outcome: dns.NoData}
}

// A panic in a goroutine of a check must reach the caller.
func TestPanicsOfACheckCanBeRecovered(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"_dmarc.", "mx1.", "spf.", "default._domainkey", "_smtp._tls.", "_mta-sts."} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				checker := dnscheck.New(dnscheck.Options{Resolver: faulty(name), Now: time.Now})
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // releases the waiting queries
				defer cancel()
				err := recovered.Boundary(nil).Call("check", func() error {
					checker.Examine(ctx, dnscheck.Request{Domain: "example.com", Selectors: []dnscheck.Selector{{Name: "default"}}})
					return nil
				})
				if !recovered.Is(err) {
					t.Errorf("got %v, want the panic", err)
				}
			})
		})
	}
}
