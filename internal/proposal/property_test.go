package proposal_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	other "blitiri.com.ar/go/spf"
	"pgregory.net/rapid"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/proposal"
	"github.com/dmarcd/dmarcd/spf"
)

// addresses are those of all clients. The last of each family are in no record.
var addresses = []string{
	"192.0.2.1", "192.0.2.99", "192.0.2.130", "198.51.100.7", "198.51.100.130", "203.0.113.1", "203.0.113.2", "203.0.113.3",
	"2001:db8:1::1", "2001:db8:2::1", "2001:db9::1", "2001:db9::2",
}

// zoneWith returns a zone with included records, and those of the domain.
func zoneWith(included map[string]string, records []string) *dnstest.Zone {
	zone := dnstest.New(`
		example.com  A    192.0.2.99
		example.com  AAAA 2001:db8:1::1
		example.com  MX   1 host.example
		host.example A    192.0.2.130
		host.example AAAA 2001:db8:1::1
		host.example MX   1 host.example
		b.example    MX   1 host.example
		c.example    A    198.51.100.7
		c.example    AAAA 2001:db8:2::1
		c.example    MX   1 c.example
		slow.example INCONCLUSIVE`)
	for name, record := range included {
		zone.Add(dns.Record{Name: name, Type: dns.TXT, Text: []string{record}})
	}
	for _, record := range records {
		zone.Add(dns.Record{Name: domain, Type: dns.TXT, Text: []string{record}})
	}
	return zone
}

// TestProposals publishes whatever is proposed for random records. Two implementations of SPF must
// agree that mail which passed before passes, and that as much passes as was promised.
func TestProposals(t *testing.T) {
	t.Parallel()
	names := []string{"a.example", "b.example", "c.example"}
	terms := func(targets ...string) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			target := rapid.SampledFrom(append(targets, names...)).Draw(t, "target")
			term := rapid.SampledFrom([]string{
				"a", "a:" + target, "a:" + target + "/25", "mx:" + target + "//64", "mx", "include:" + target, "include:" + target, "include:" + target,
				"exists:%{i}." + target, "ip4:192.0.2.0/25", "ip4:198.51.100.7", "ip6:2001:db8::/32", "ptr",
			}).Draw(t, "term")
			return rapid.SampledFrom([]string{"", "", "", "", "-", "?"}).Draw(t, "qualifier") + term
		})
	}
	record := func(t *rapid.T, label string, count int, targets ...string) string {
		last := rapid.SampledFrom([]string{"-all", "~all", "?all", "", "redirect=b.example"}).Draw(t, label+" ends in")
		return strings.TrimSpace("v=spf1 " + strings.Join(rapid.SliceOfN(terms(targets...), 0, count).Draw(t, label), " ") + " " + last)
	}
	proposed := 0
	rapid.Check(t, func(t *rapid.T) {
		included := make(map[string]string)
		for _, name := range names {
			included[name] = record(t, name, 3, "host.example")
		}
		var published []string
		for range rapid.SampledFrom([]int{0, 1, 1, 1, 1, 1, 2}).Draw(t, "records") {
			published = append(published, record(t, "record", 6, "host.example", "void.example", "slow.example", "gone.example"))
		}
		before := zoneWith(included, published)
		in := proposal.Input{Facts: stored(t, before, domain)}
		in.History = []*facts.Facts{{Domain: domain, SPF: facts.SPF{Record: record(t, "earlier", 6, "host.example", "gone.example")}}}
		for i, text := range addresses {
			addr := netip.MustParseAddr(text)
			m := proposal.Mail{Addr: addr, Messages: 1 << i, Passes: passesSPF(before, addr)}
			if m.Passes || rapid.Bool().Draw(t, "legitimate") {
				m.Service = rapid.SampledFrom([]string{"", "", "SendGrid"}).Draw(t, "service")
				in.Mail = append(in.Mail, m)
			}
		}
		fix, ok := proposal.SPF(t.Context(), in)
		if ok != (fix.Record != "") || ok != (fix.Sentence != "") {
			t.Fatalf("got %v, %+v", ok, fix)
		}
		if !ok {
			return
		}
		proposed++
		after := zoneWith(included, []string{fix.Record})
		var fixed int64
		for _, m := range in.Mail {
			ours, theirs := passesSPF(after, m.Addr), passesElsewhere(after, m.Addr)
			if m.Passes && (!ours || !theirs) {
				t.Errorf("%q instead of %q: %s passed before; got %v, and %v elsewhere", fix.Record, published, m.Addr, ours, theirs)
			}
			if ours && theirs && !m.Passes {
				fixed += m.Messages
			}
		}
		// An answer that is not stored may let more pass, never less.
		if fixed < fix.Fixed {
			t.Errorf("%q instead of %q: got %d messages that pass, want %d; mail: %+v", fix.Record, published, fixed, fix.Fixed, in.Mail)
		}
		x := spf.Explain(t.Context(), after, domain, spf.Limits{})
		if x.Status != spf.StatusOK || x.Lookups > 10 || x.Lookups != fix.LookupsAfter || strings.Contains(" "+fix.Record, " +all") {
			t.Errorf("%q instead of %q: got the status %s with %d lookups, want %d", fix.Record, published, x.Status, x.Lookups, fix.LookupsAfter)
		}
	})
	t.Logf("%d records were proposed", proposed)
	if proposed == 0 {
		t.Error("got no proposal, want some")
	}
}

func passesSPF(zone dns.Resolver, addr netip.Addr) bool {
	return spf.Check(context.Background(), zone, spf.Identity{IP: addr, Helo: domain, MailFrom: "user@" + domain}).Result == spf.Pass
}

func passesElsewhere(zone *dnstest.Zone, addr netip.Addr) bool {
	result, _ := other.CheckHostWithSender(net.ParseIP(addr.String()), domain, "user@"+domain, other.WithResolver(netResolver{zone}))
	return result == other.Pass
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
	var found []net.IPAddr
	for _, t := range []dns.Type{dns.A, dns.AAAA} {
		records, err := r.resolve(ctx, name, t)
		if err != nil {
			return nil, err
		}
		for _, record := range records {
			found = append(found, net.IPAddr{IP: record.Addr.AsSlice()})
		}
	}
	return found, nil
}

func (r netResolver) LookupAddr(_ context.Context, addr string) ([]string, error) {
	return nil, &net.DNSError{Err: "not found", Name: addr, IsNotFound: true}
}

// BenchmarkSPF proposes a record for a domain with many addresses.
func BenchmarkSPF(b *testing.B) {
	zone := dnstest.New(services(6) + `example.com TXT "v=spf1 include:s0.example include:s1.example include:s2.example include:s3.example include:s4.example include:s5.example ~all"`)
	in := proposal.Input{Facts: stored(b, zone, domain)}
	for i := range 10_000 {
		in.Mail = append(in.Mail, pass(fmt.Sprintf("198.51.%d.%d 7", i>>8, i&255))...)
	}
	for b.Loop() {
		proposal.SPF(b.Context(), in)
	}
}
