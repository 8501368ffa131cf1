package spf_test

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"

	other "blitiri.com.ar/go/spf"
	"pgregory.net/rapid"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/spf"
)

// TestCrossCheck compares Check with another implementation, on random records
// over a small world of names. The world avoids where the other one is known to
// differ: it finds errors of syntax only where it comes to them, and it asks for
// the addresses of both families at once, so here names have both or none.
func TestCrossCheck(t *testing.T) {
	t.Parallel()
	domains := []string{"a.example", "b.example", "c.example"}
	targets := append([]string{"host.example", "void.example", "slow.example", "%{d}", "%{o}", "%{d1r}.example"}, domains...)
	terms := rapid.Custom(func(t *rapid.T) string {
		target := rapid.SampledFrom(targets).Draw(t, "target")
		term := rapid.SampledFrom([]string{
			"a", "a:" + target, "a:" + target + "/24", "mx:" + target + "//64", "mx", "include:" + target, "include:" + target,
			"exists:" + target, "ip4:192.0.2.0/24", "ip4:198.51.100.7", "ip6:2001:db8::/32", "all", "x=y",
		}).Draw(t, "term")
		if strings.Contains(term, "=") {
			return term
		}
		return rapid.SampledFrom([]string{"", "", "-", "~", "?", "+"}).Draw(t, "qualifier") + term
	})
	rapid.Check(t, func(t *rapid.T) {
		zone := dnstest.New(`
			host.example A    192.0.2.99
			host.example AAAA 2001:db8:1::1
			host.example MX   1 host.example
			b.example    MX   1 host.example
			c.example    A    198.51.100.7
			c.example    AAAA 2001:db8:2::1
			c.example    MX   1 c.example
			slow.example INCONCLUSIVE`)
		for _, domain := range domains {
			record := "v=spf1 " + strings.Join(rapid.SliceOfN(terms, 0, 6).Draw(t, domain), " ")
			if rapid.Bool().Draw(t, "redirects") {
				record += " redirect=" + rapid.SampledFrom(targets).Draw(t, "redirect")
			}
			zone.Add(dns.Record{Name: domain, Type: dns.TXT, Text: []string{record}})
		}
		ip := rapid.SampledFrom([]string{"192.0.2.1", "192.0.2.99", "198.51.100.7", "203.0.113.1", "2001:db8:1::1", "2001:db9::1"}).Draw(t, "ip")
		got := spf.Check(context.Background(), zone, spf.Identity{
			IP: netip.MustParseAddr(ip), Helo: "a.example", MailFrom: "user@a.example",
		})
		want, err := other.CheckHostWithSender(net.ParseIP(ip), "a.example", "user@a.example", other.WithResolver(netResolver{zone}))
		if got.Result.String() != string(want) {
			t.Errorf("got %v (%+v), the other one says %v (%v)", got.Result, got.Problem, want, err)
		}
	})
}

// netResolver offers a zone in the manner of net.Resolver.
type netResolver struct{ zone *dnstest.Zone }

func (r netResolver) resolve(ctx context.Context, name string, t dns.Type) ([]dns.Record, error) {
	a := r.zone.Resolve(ctx, dns.Question{Name: dns.Name(name), Type: t})
	switch a.Outcome {
	case dns.Data:
		return a.Records, nil
	case dns.Inconclusive:
		return nil, &net.DNSError{Err: a.Reason, Name: name, IsTemporary: true}
	default:
		return nil, &net.DNSError{Err: "not found", Name: name, IsNotFound: true}
	}
}

func (r netResolver) LookupTXT(ctx context.Context, name string) ([]string, error) {
	records, err := r.resolve(ctx, name, dns.TXT)
	var texts []string
	for _, record := range records {
		texts = append(texts, record.Joined())
	}
	return texts, err
}

func (r netResolver) LookupMX(ctx context.Context, name string) ([]*net.MX, error) {
	records, err := r.resolve(ctx, name, dns.MX)
	var exchangers []*net.MX
	for _, record := range records {
		exchangers = append(exchangers, &net.MX{Host: record.Host, Pref: record.Preference})
	}
	return exchangers, err
}

func (r netResolver) LookupIPAddr(ctx context.Context, name string) ([]net.IPAddr, error) {
	var addresses []net.IPAddr
	for _, t := range []dns.Type{dns.A, dns.AAAA} {
		records, err := r.resolve(ctx, name, t)
		if err != nil {
			return nil, err
		}
		for _, record := range records {
			addresses = append(addresses, net.IPAddr{IP: record.Addr.AsSlice()})
		}
	}
	return addresses, nil
}

func (r netResolver) LookupAddr(ctx context.Context, addr string) ([]string, error) {
	return nil, &net.DNSError{Err: "not found", Name: addr, IsNotFound: true}
}
