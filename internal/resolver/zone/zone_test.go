package zone_test

import (
	"context"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver"
	"github.com/dmarcd/dmarcd/internal/resolver/zone"
)

const text = `
	signed.example. SOA ns.example. hostmaster.example. 1 7200 3600 1209600 300
	signed.example. NS ns.example.
	signed.example. DNSKEY 257 3 13 AAEC
	signed.example. MX 10 mx.signed.example.
	mx.signed.example. A 192.0.2.1
	mx.signed.example. AAAA 2001:db8::1
	_25._tcp.mx.signed.example. TLSA 3 1 1 00ff
	_dmarc.signed.example. TXT "v=DMARC1; " "p=reject"
	parked.example. MX 0 .
	www.parked.example. CNAME mx.signed.example.
	_25._tcp.parked.example. TXT "below"
	1.2.0.192.in-addr.arpa. PTR mx.signed.example.`

func TestServer(t *testing.T) {
	t.Parallel()
	records := musttest.Get(zone.Parse(text))(t)
	server := musttest.Get(zone.Listen(records))(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- server.Run(ctx) }()
	client := resolver.New(resolver.Config{Servers: []string{server.Addr()}})
	for _, test := range []struct {
		question dns.Question
		outcome  dns.Outcome
		signed   bool
	}{
		{dns.Question{Name: "_dmarc.signed.example", Type: dns.TXT}, dns.Data, true},
		{dns.Question{Name: "signed.example", Type: dns.MX}, dns.Data, true},
		{dns.Question{Name: "signed.example", Type: dns.SOA}, dns.Data, true},
		{dns.Question{Name: "signed.example", Type: dns.NS}, dns.Data, true},
		{dns.Question{Name: "signed.example", Type: dns.DS}, dns.NoData, true},
		{dns.Question{Name: "_25._tcp.mx.signed.example", Type: dns.TLSA}, dns.Data, true},
		{dns.Question{Name: "mx.signed.example", Type: dns.A}, dns.Data, true},
		{dns.Question{Name: "mx.signed.example", Type: dns.AAAA}, dns.Data, true},
		{dns.Question{Name: "unknown.signed.example", Type: dns.TXT}, dns.NoSuchName, true},
		{dns.Question{Name: "parked.example", Type: dns.MX}, dns.Data, false},
		{dns.Question{Name: "www.parked.example", Type: dns.AAAA}, dns.Data, false},
		{dns.Question{Name: "_tcp.parked.example", Type: dns.TXT}, dns.NoData, false},
		{dns.Question{Name: "1.2.0.192.in-addr.arpa", Type: dns.PTR}, dns.Data, false},
		{dns.Question{Name: "2.2.0.192.in-addr.arpa", Type: dns.PTR}, dns.NoSuchName, false},
		{dns.Question{Name: "example.com", Type: dns.A}, dns.NoSuchName, false},
	} {
		q := test.question
		got, want := client.Resolve(t.Context(), q), records.Resolve(t.Context(), q)
		if want.Outcome != test.outcome || want.Authentic != test.signed {
			t.Errorf("%v: got %s (authentic %t), want %s (%t)", q, want.Outcome, want.Authentic, test.outcome, test.signed)
		}
		options := cmp.Options{
			cmpopts.IgnoreFields(dns.Answer{}, "TTL"), cmpopts.IgnoreFields(dns.Record{}, "TTL"), cmpopts.EquateEmpty(),
			cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		}
		if diff := cmp.Diff(want, got, options); diff != "" {
			t.Errorf("%v: got another answer through the server (-zone +server):\n%s", q, diff)
		}
	}
	client.Close()
	stop()
	if err := <-done; err != nil {
		t.Errorf("got %v, want nil when told to stop", err)
	}
}
