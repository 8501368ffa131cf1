package spf_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	other "blitiri.com.ar/go/spf"
	"pgregory.net/rapid"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/spf"
)

const flatName = "k3jq.dns.example.net"

// flatWorld is the DNS that the table and the generated records refer to.
const flatWorld = `
	host.example      A    192.0.2.99
	host.example      AAAA 2001:db8:1::1
	host.example      MX   1 host.example
	hosts.example     A    198.51.100.1
	hosts.example     A    198.51.100.2
	hosts.example     A    198.51.100.3
	hosts.example     AAAA 2001:db8:2::1
	hosts.example     MX   10 host.example
	hosts.example     MX   20 hosts.example
	hosts.example     MX   30 void.example
	example.com       A    203.0.113.1
	example.com       AAAA 2001:db8:3::1
	example.com       MX   1 host.example
	a.example         A    203.0.113.65
	a.example         AAAA 2001:db8:3:65::1
	com.example       A    203.0.113.66
	com.example       AAAA 2001:db8:3:66::1
	10.0.0.1.list.example             A 127.0.0.2
	192.0.2.7.example.com.list.example A 127.0.0.2
	10.0.1.1.a.example.list.example    A 127.0.0.2
	user.list.example                 A 127.0.0.2
	7.2.0.192.in-addr.arpa            PTR mail.a.example
	mail.a.example                    A 192.0.2.7
	mail.a.example                    AAAA 2001:db8:9::7
	1.0.0.10.in-addr.arpa             PTR mail.example.com
	mail.example.com                  A 10.0.0.1
	mail.example.com                  AAAA 2001:db8:9::1
	ptr.example       TXT  "v=spf1 ptr -all"
	list.example      TXT  "v=spf1 exists:%{i}.%{d} ip4:10.9.0.0/16 ~all"
	mixed.example     TXT  "v=spf1 -ip4:192.0.2.128/25 ip4:192.0.2.0/24 exists:%{i}.list.example -all"
	named.example     TXT  "v=spf1 exists:%{i}.%{o}.list.example exists:%{l}.list.%{d1r} -all"
	macro.example     TXT  "v=spf1 a:%{d2} a:%{o} -exists:%{i}.a.example.list.example ip4:10.0.1.0/24 ?all"
	holes.example     TXT  "v=spf1 ?ip4:192.0.2.64/26 ~ip4:192.0.2.128/26 +ip4:192.0.2.0/24 -all"
	onward.example    TXT  "v=spf1 ip4:10.4.0.0/16 redirect=%{o}.list.example"
	user.example.com.list.example TXT "v=spf1 -all"
	example.com.list.example TXT "v=spf1 ip4:10.5.0.0/16 -all"
	dotted.example    TXT  "v=spf1 exists:%{p}.list.example ip4:10.6.0.0/16 -all"
	everyone.example  TXT  "v=spf1 -ip4:10.7.0.0/16 +all"`

// flatZone is flatWorld with the record of example.com, or with a flat one.
func flatZone(world, record string, flat *spf.Flat, include bool) *dnstest.Zone {
	zone := dnstest.New(flatWorld + "\n" + world)
	text := func(name, text string) {
		var parts []string
		for part := range slices.Chunk([]byte(text), 255) {
			parts = append(parts, string(part))
		}
		zone.Add(dns.Record{Name: name, Type: dns.TXT, Text: parts})
	}
	switch {
	case flat == nil && include:
		record += " -all"
	case include:
		record = "v=spf1 include:" + flatName + " -all"
	case flat != nil:
		record = "v=spf1 redirect=" + flatName
	}
	text("example.com", record)
	if flat != nil {
		for i, record := range flat.Records {
			text(flat.Names[i], record)
		}
	}
	return zone
}

// flatClients returns the first and last address of every range in a world, and their neighbours.
func flatClients(zone *dnstest.Zone, names []string) []netip.Addr {
	found := map[netip.Addr]bool{netip.MustParseAddr("9.9.9.9"): true, netip.MustParseAddr("2a00::1"): true}
	add := func(p netip.Prefix) {
		first := p.Masked().Addr()
		bytes := first.AsSlice()
		for bit := p.Bits(); bit < 8*len(bytes); bit++ {
			bytes[bit/8] |= 0x80 >> (bit % 8)
		}
		last, _ := netip.AddrFromSlice(bytes)
		for _, a := range []netip.Addr{first, last, first.Prev(), last.Next()} {
			if a.IsValid() {
				found[a] = true
			}
		}
	}
	for _, name := range names {
		for _, text := range zone.Resolve(context.Background(), dns.Question{Name: name, Type: dns.TXT}).Texts() {
			record, _ := spf.Parse(text)
			for _, term := range record.Terms {
				if term.Network.IsValid() {
					add(term.Network)
				}
			}
		}
		for _, typ := range []dns.Type{dns.A, dns.AAAA} {
			for _, r := range zone.Resolve(context.Background(), dns.Question{Name: name, Type: typ}).Records {
				for _, bits := range []int{r.Addr.BitLen(), 24, 64} {
					if bits <= r.Addr.BitLen() {
						add(netip.PrefixFrom(r.Addr, bits))
					}
				}
			}
		}
	}
	var clients []netip.Addr
	for a := range found {
		clients = append(clients, a)
	}
	return clients
}

var worldNames = []string{
	"host.example", "hosts.example", "example.com", "a.example", "com.example", "mail.a.example", "mail.example.com", "list.example",
	"mixed.example", "macro.example", "holes.example", "onward.example", "everyone.example", "p1.example", "p2.example", "p3.example",
	"b.example", "c.example",
}

// sameResults compares a flat record with the original, whose limits are lifted, in two implementations.
func sameResults(t testing.TB, world, record string, flat spf.Flat, include, both bool) {
	t.Helper()
	original, flattened := flatZone(world, record, nil, include), flatZone(world, record, &flat, include)
	clients := flatClients(flattened, slices.Concat(worldNames, flat.Names))
	for _, ip := range append(clients, flatClients(original, worldNames)...) {
		id := spf.Identity{IP: ip, Helo: "mail.example.com", MailFrom: "user@example.com"}
		want := spf.CheckUnlimited(context.Background(), original, id)
		if want.Result == spf.PermError || want.Result == spf.TempError {
			continue
		}
		got := spf.Check(context.Background(), flattened, id)
		if got.Result != want.Result {
			t.Fatalf("%s of %q in %s: got %v (%+v), want %v by %+v\n%s", ip, record, world, got.Result, got.Problem, want.Result, want.Path, strings.Join(flat.Records, "\n"))
		}
		if got.Lookups > flat.Lookups {
			t.Fatalf("%s of %q: got %d lookups, more than %d", ip, record, got.Lookups, flat.Lookups)
		}
		if !both {
			continue
		}
		check := func(zone *dnstest.Zone, options ...other.Option) other.Result {
			result, _ := other.CheckHostWithSender(net.IP(ip.AsSlice()), "mail.example.com", "user@example.com", append(options, other.WithResolver(reverseResolver{netResolver{zone}}))...)
			return result
		}
		wantOther := check(original, other.OverrideLookupLimit(1<<30), other.OverrideVoidLookupLimit(1<<30))
		if gotOther := check(flattened); gotOther != wantOther || string(wantOther) != want.Result.String() {
			t.Fatalf("%s of %q in %s: the other one says %v, of the original %v; ours is %v\n%s", ip, record, world, gotOther, wantOther, want.Result, strings.Join(flat.Records, "\n"))
		}
	}
}

// reverseResolver also answers for the names of addresses, and for names with addresses of one family.
type reverseResolver struct{ netResolver }

func (r reverseResolver) LookupIPAddr(ctx context.Context, name string) (addresses []net.IPAddr, err error) {
	for _, typ := range []dns.Type{dns.A, dns.AAAA} {
		records, failed := r.resolve(ctx, name, typ)
		for _, record := range records {
			addresses = append(addresses, net.IPAddr{IP: record.Addr.AsSlice()})
		}
		err = failed
	}
	if len(addresses) > 0 {
		return addresses, nil
	}
	return nil, err
}

func (r reverseResolver) LookupAddr(ctx context.Context, addr string) ([]string, error) {
	ip := netip.MustParseAddr(addr)
	if !ip.Is4() {
		return nil, &net.DNSError{Err: "not found", Name: addr, IsNotFound: true}
	}
	b := ip.As4()
	records, err := r.resolve(ctx, fmt.Sprintf("%d.%d.%d.%d.in-addr.arpa", b[3], b[2], b[1], b[0]), dns.PTR)
	var names []string
	for _, record := range records {
		names = append(names, record.Host)
	}
	return names, err
}

func flatten(world, record string, include bool) (spf.Flat, error) {
	return spf.Flatten(context.Background(), flatZone(world, record, nil, false), record, spf.FlatOptions{Domain: "example.com", Name: flatName, Include: include})
}

func TestFlatten(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, record string
		include      bool
		want         string
	}{
		{name: "addresses stay", record: "v=spf1 ip4:192.0.2.1 ip6:2001:db8::/32 -all", want: "v=spf1 ip4:192.0.2.1 ip6:2001:db8::/32 -all"},
		{name: "addresses are sorted, merged and named once", record: "v=spf1 ip4:192.0.2.128/25 ip4:192.0.2.0/25 ip4:192.0.2.7 ip4:10.0.0.1 ~all", want: "v=spf1 ip4:10.0.0.1 ip4:192.0.2.0/24 ~all"},
		{
			name: "a and mx", record: "v=spf1 a mx:hosts.example a:hosts.example/31 -all",
			want: "v=spf1 ip4:192.0.2.99 ip4:198.51.100.0/30 ip4:203.0.113.1 ip6:2001:db8:1::1 ip6:2001:db8:2::1 ip6:2001:db8:3::1 -all",
		},
		{name: "macros of the domain are names", record: "v=spf1 a:%{d2} -all", want: "v=spf1 ip4:203.0.113.1 ip6:2001:db8:3::1 -all"},
		{name: "no all is neutral", record: "v=spf1 ip4:192.0.2.1", want: "v=spf1 ip4:192.0.2.1 ?all"},
		{name: "nothing", record: "v=spf1", want: "v=spf1 ?all"},
		{name: "what all decides", record: "v=spf1 ip4:192.0.2.1 -ip4:192.0.2.0/24 -all", want: "v=spf1 ip4:192.0.2.1 -all"},
		{name: "order", record: "v=spf1 -ip4:192.0.2.1 ip4:192.0.2.0/24 ~ip4:192.0.0.0/16 ?ip4:192.0.2.3 -all", want: "v=spf1 -ip4:192.0.2.1 ip4:192.0.2.0/24 ~ip4:192.0.0.0/16 -all"},
		{name: "an exception in an include", record: "v=spf1 include:holes.example -all", want: "v=spf1 ip4:192.0.2.0/26 ip4:192.0.2.192/26 -all"},
		{name: "an include with a qualifier", record: "v=spf1 ~include:holes.example -all", want: "v=spf1 ~ip4:192.0.2.0/26 ~ip4:192.0.2.192/26 -all"},
		{
			name: "terms name the domain where they stood", record: "v=spf1 include:list.example ptr -all",
			want: "v=spf1 ip4:10.9.0.0/16 exists:%{i}.list.example ptr:example.com -all",
		},
		{name: "a mixed include stays", record: "v=spf1 include:mixed.example ip4:192.0.2.200 -all", want: "v=spf1 ip4:192.0.2.200 include:mixed.example -all"},
		{name: "the macro p in an include", record: "v=spf1 include:dotted.example -all", want: "v=spf1 include:dotted.example -all"},
		{name: "redirect of an include", record: "v=spf1 include:onward.example -all", want: "v=spf1 ip4:10.4.0.0/16 include:%{o}.list.example -all"},
		{
			name: "redirect", record: "v=spf1 ip4:192.0.2.1 redirect=holes.example",
			want: "v=spf1 ip4:192.0.2.1 ?ip4:192.0.2.64/26 ~ip4:192.0.2.128/26 ip4:192.0.2.0/24 -all",
		},
		{name: "redirect to a name that depends on the sender", record: "v=spf1 ip4:192.0.2.1 redirect=%{o}.list.example", want: "v=spf1 ip4:192.0.2.1 redirect=%{o}.list.example"},
		{
			name: "an include that passes everyone", record: "v=spf1 -ip4:10.0.0.1 include:everyone.example -all",
			want: "v=spf1 -ip4:10.0.0.1 ip4:0.0.0.0/5 ip4:8.0.0.0/7 ip4:10.0.0.0/14 ip4:10.4.0.0/15 ip4:10.6.0.0/16 ip4:10.8.0.0/13 ip4:10.16.0.0/12 ip4:10.32.0.0/11 " +
				"ip4:10.64.0.0/10 ip4:10.128.0.0/9 ip4:11.0.0.0/8 ip4:12.0.0.0/6 ip4:16.0.0.0/4 ip4:32.0.0.0/3 ip4:64.0.0.0/2 ip4:128.0.0.0/1 ip6:::/0 -all",
		},
		{name: "for an include", include: true, record: "v=spf1 a include:list.example", want: "v=spf1 ip4:10.9.0.0/16 ip4:203.0.113.1 ip6:2001:db8:3::1 exists:%{i}.list.example"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			flat, err := flatten("", test.record, test.include)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(flat.Records, "\n"); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
			sameResults(t, "", test.record, flat, test.include, !strings.Contains(test.record, "dotted"))
		})
	}
}

func wantFlatError(t *testing.T, err error, want spf.Kind) {
	t.Helper()
	var flat *spf.FlattenError
	if !errors.As(err, &flat) || flat.Problem.Kind != want {
		t.Errorf("got %v, want a problem of kind %s", err, want)
	} else if strings.Contains(err.Error(), "  ") || strings.HasPrefix(err.Error(), " ") {
		t.Errorf("got %q, want a sentence", err)
	}
}

func TestFlattenErrors(t *testing.T) {
	t.Parallel()
	includes := "v=spf1"
	var mx, ranges, many strings.Builder
	for i := range 1000 {
		includes += fmt.Sprintf(" include:n%d.example", i)
		fmt.Fprintf(&many, "n%d.example TXT \"v=spf1 ip4:10.0.0.%d\"\n", i, i%250)
		fmt.Fprintf(&ranges, " ip4:10.%d.%d.0/25", i/250, i%250)
	}
	for i := range 100 {
		fmt.Fprintf(&mx, "many.example MX %d h%d.example\n", i, i)
	}
	tests := []struct {
		name, record, zone string
		include            bool
		want               spf.Kind
		message            string
	}{
		{name: "no record", record: "v=spf2", want: spf.NoRecord},
		{name: "a wrong term", record: "v=spf1 ipv4:192.0.2.1 -all", want: spf.UnknownMechanism},
		{name: "everyone", record: "v=spf1 +all", want: spf.PassAll, message: "+all authorizes everyone"},
		{name: "a missing include", record: "v=spf1 include:missing.example -all", want: spf.NoSuchName, message: "missing.example does not exist"},
		{name: "an include without a record", record: "v=spf1 include:host.example -all", want: spf.NoRecord, message: "host.example has no SPF record"},
		{name: "a redirect without a record", record: "v=spf1 redirect=host.example", want: spf.NoRecord},
		{name: "an include with two records", record: "v=spf1 include:b.example -all", zone: "b.example TXT \"v=spf1\"\nb.example TXT \"v=spf1 -all\"", want: spf.MultipleRecords},
		{name: "an include with an error", record: "v=spf1 include:b.example -all", zone: `b.example TXT "v=spf1 ip:1.2.3.4"`, want: spf.UnknownMechanism, message: `unknown-mechanism "ip" at byte 7 of b.example`},
		{name: "an include of a label", record: "v=spf1 include:%{d1} -all", want: spf.MalformedName},
		{name: "a failed lookup of a record", record: "v=spf1 include:b.example -all", zone: "b.example INCONCLUSIVE", want: spf.Inconclusive, message: "the lookup of b.example failed: the zone says that b.example cannot be looked up"},
		{name: "a failed lookup of an address", record: "v=spf1 a:b.example -all", zone: "b.example A 192.0.2.1\nb.example AAAA INCONCLUSIVE", want: spf.Inconclusive},
		{name: "a failed lookup of an exchanger", record: "v=spf1 mx:b.example -all", zone: "b.example MX 1 c.example\nc.example INCONCLUSIVE", want: spf.Inconclusive, message: "the lookup of c.example failed: the zone says that c.example cannot be looked up"},
		{name: "itself", record: "v=spf1 include:example.com -all", want: spf.Loop},
		{name: "a loop", record: "v=spf1 include:b.example -all", zone: "b.example TXT \"v=spf1 include:c.example\"\nc.example TXT \"v=spf1 redirect=b.example\"", want: spf.Loop, message: "redirect=b.example leads back to b.example"},
		{name: "100 exchangers", record: "v=spf1 mx:many.example -all", zone: mx.String(), want: spf.MXLimit, message: "many.example has 100 mail exchangers, and receivers accept 10"},
		{name: "1,000 includes", record: includes, zone: many.String(), want: spf.Truncated},
		{name: "a huge record", record: "v=spf1" + ranges.String() + " -all", want: spf.LookupLimit},
		{name: "a huge include", record: "v=spf1 include:b.example -all", zone: `b.example TXT "v=spf1` + ranges.String() + `"`, want: spf.LookupLimit},
		{name: "a term too many", record: "v=spf1 exists:%{i}.a.example exists:%{i}.b.example exists:%{i}.c.example -all", want: spf.VoidLimit},
		{name: "a long term", record: "v=spf1 exists:%{i}." + strings.Repeat("a.", 220) + "example -all", want: spf.LongTerm},
		{name: "the macro p", record: "v=spf1 exists:%{p}.a.example -all", want: spf.NotMovable},
		{name: "a name that no term can have", record: "v=spf1 redirect=1.example", zone: `1.example TXT "v=spf1 exists:%{i}.%{dr} -all"`, want: spf.NotMovable},
		{name: "ten includes of macros", record: "v=spf1 include:%{i}.0.example include:%{i}.1.example include:%{i}.2.example include:%{i}.3.example include:%{i}.4.example " +
			"include:%{i}.5.example include:%{i}.6.example include:%{i}.7.example include:%{i}.8.example include:%{i}.9.example -all", want: spf.LookupLimit, message: "11 lookups are needed, and receivers stop after 10"},
		{name: "not pass in an include", record: "v=spf1 ~a:host.example", include: true, want: spf.NotPass},
		{name: "all in an include", record: "v=spf1 a -all", include: true, want: spf.NotPass, message: "-all does not pass, and an include can only match or not"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			_, err := flatten(test.zone, test.record, test.include)
			wantFlatError(t, err, test.want)
			if test.message != "" && err.Error() != test.message {
				t.Errorf("got %q, want %q", err, test.message)
			}
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

// TestFlattenDivides has records that do not fit into one.
func TestFlattenDivides(t *testing.T) {
	t.Parallel()
	record := "v=spf1"
	for i := range 150 {
		record += fmt.Sprintf(" %sip4:10.0.%d.0/25", []string{"", "-", "~"}[i/7%3], i)
	}
	record += " exists:%{l}.missing.example -all"
	flat, err := flatten("", record, false)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range flat.Records {
		if len(text) > 450 {
			t.Errorf("record %d has %d bytes", i, len(text))
		}
	}
	if n := len(flat.Records); n < 6 || flat.Lookups != n+1 || flat.Names[0] != flatName || flat.Names[1] != "11."+flatName || flat.TTL != 5*time.Minute && flat.TTL != time.Hour {
		t.Errorf("got %d records with %+v", n, flat)
	}
	sameResults(t, "", record, flat, false, true)
	// Other names are used for a change only, and the first ones again for the next.
	for i, step := range []struct{ record, want string }{{record, "11."}, {record + " x=y", "11."}, {strings.Replace(record, "10.0.149", "10.0.250", 1), "21."}, {record, "31."}, {record + " x=y", "31."}, {record + " ip4:10.1.1.1", "31."}, {strings.Replace(record, "10.0.149", "10.0.251", 1), "11."}} {
		flat, err = spf.Flatten(t.Context(), flatZone("", record, nil, false), step.record, spf.FlatOptions{Domain: "example.com", Name: flatName, Before: flat})
		if err != nil || flat.Names[1] != step.want+flatName || !strings.HasSuffix(flat.Records[0], " redirect="+step.want+flatName) {
			t.Errorf("step %d: got %v, %v", i, flat.Names, err)
		}
	}
}

func TestFlattenTTL(t *testing.T) {
	t.Parallel()
	for ttl, want := range map[int]time.Duration{1: 5 * time.Minute, 600: 10 * time.Minute, 86400: time.Hour} {
		flat, err := flatten(fmt.Sprintf("b.example %d A 192.0.2.1\nb.example %d AAAA 2001:db8::1", ttl, ttl), "v=spf1 a:b.example -all", false)
		if err != nil || flat.TTL != want {
			t.Errorf("%d seconds: got %s, %v, want %s", ttl, flat.TTL, err, want)
		}
	}
}

func TestGrowth(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, before, after string
		want                bool
	}{
		{name: "the same", before: "v=spf1 ip4:10.0.0.0/8 -all", after: "v=spf1 ip4:10.0.0.0/8 -all"},
		{name: "a fifth", before: "v=spf1 ip4:10.0.0.0 ip4:10.0.0.2 ip4:10.0.0.4 ip4:10.0.0.6 ip4:10.0.0.8 -all", after: "v=spf1 ip4:10.0.0.0 ip4:10.0.0.2 ip4:10.0.0.4 ip4:10.0.0.6 ip4:10.0.0.8/31 -all"},
		{name: "more than a fifth", before: "v=spf1 ip4:10.0.0.0/30 -all", after: "v=spf1 ip4:10.0.0.0/30 ip4:10.1.0.0 -all", want: true},
		{name: "addresses that do not pass", before: "v=spf1 ip4:10.0.0.0/30 -all", after: "v=spf1 ~ip4:10.0.0.4/30 ip4:10.0.0.0/29 -all"},
		{name: "other addresses", before: "v=spf1 ip4:10.0.0.0/30 -all", after: "v=spf1 ip4:10.1.0.0/30 -all"},
		{name: "networks of IPv6", before: "v=spf1 ip6:2001:db8::1 -all", after: "v=spf1 ip6:2001:db8::/64 -all"},
		{name: "more networks of IPv6", before: "v=spf1 ip4:10.0.0.0/16 ip6:2001:db8::1 -all", after: "v=spf1 ip4:10.0.0.0/16 ip6:2001:db8::1 ip6:2001:db8:1::1 -all", want: true},
		{name: "a network of IPv6 beside many", before: "v=spf1 ip6:2001:db8::/56 -all", after: "v=spf1 ip6:2001:db8::/56 ip6:2001:db9::/64 -all"},
		{name: "addresses in one network of IPv6", before: "v=spf1 ip6:2001:db8::1 -all", after: "v=spf1 ip6:2001:db8::1 ip6:2001:db8::3 -all"},
		{name: "a wide range", before: "v=spf1 ip4:10.0.0.0/8 ip4:12.0.0.0/16 -all", after: "v=spf1 ip4:10.0.0.0/8 ip4:12.0.0.0/15 -all", want: true},
		{name: "a wide range of IPv6", before: "v=spf1 ip6:2001:d00::/24 ip6:2001:e00::/32 -all", after: "v=spf1 ip6:2001:d00::/24 ip6:2001:e00::/31 -all", want: true},
		{name: "everyone", before: "v=spf1 ip4:10.0.0.0/8 -all", after: "v=spf1 ip4:10.0.0.0/8 +all", want: true},
		{name: "a term", before: "v=spf1 ip4:10.0.0.0/8 -all", after: "v=spf1 ip4:10.0.0.0/8 exists:%{i}.a.example -all", want: true},
		{name: "a term that does not pass", before: "v=spf1 ip4:10.0.0.0/8 -all", after: "v=spf1 ip4:10.0.0.0/8 ?exists:%{i}.a.example -all"},
		{name: "another record", before: "v=spf1 ip4:10.0.0.0/8 -all", after: "v=spf1 ip4:10.0.0.0/8 redirect=%{o}.a.example", want: true},
		{name: "two records", before: "v=spf1 ip4:10.0.0.0/8 redirect=1.b.example\nv=spf1 -all", after: "v=spf1 ip4:10.0.0.0/9 redirect=11.b.example\nv=spf1 ip4:10.128.0.0/9 -all"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := spf.GrowthOf(strings.Split(test.before, "\n"), strings.Split(test.after, "\n"))
			if g.Large() != test.want {
				t.Errorf("got %+v, want %t", g, test.want)
			}
		})
	}
}

func TestAbsolute(t *testing.T) {
	t.Parallel()
	record, err := spf.Parse("v=spf1 a mx/24 -A:%{d}//64 ptr exists:%{ir}.%{d2}.x.example include:_spf.%{d} ip4:192.0.2.1 redirect=b.%{D} exp=why.%{d}")
	if err != nil {
		t.Fatal(err)
	}
	want := "v=spf1 a:example.com mx:example.com/24 -a:example.com//64 ptr:example.com exists:%{ir}.example.com.x.example include:_spf.example.com ip4:192.0.2.1 redirect=b.example.com exp=why.example.com"
	if got := record.Absolute("example.com"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// flatCase is a generated record with the records that it includes.
type flatCase struct {
	world, record string
	include       bool
}

func flatCases() *rapid.Generator[flatCase] {
	return rapid.Custom(func(t *rapid.T) flatCase {
		record := func(label string, targets []string, include bool) string {
			n := rapid.IntRange(0, 7).Draw(t, label)
			terms := []string{"v=spf1"}
			for range n {
				var term string
				switch rapid.IntRange(0, 11).Draw(t, "kind") {
				case 0, 1, 2, 3:
					term = fmt.Sprintf("ip4:10.%d.%d.%d/%d", rapid.IntRange(0, 1).Draw(t, "b"), rapid.IntRange(0, 2).Draw(t, "c"),
						rapid.IntRange(0, 3).Draw(t, "d")*64, rapid.IntRange(15, 32).Draw(t, "bits"))
				case 4:
					term = fmt.Sprintf("ip6:2001:db8:%x::%x/%d", rapid.IntRange(0, 3).Draw(t, "c"), rapid.IntRange(0, 1).Draw(t, "d"), rapid.IntRange(30, 128).Draw(t, "bits"))
				case 5:
					term = rapid.SampledFrom([]string{"a", "a:hosts.example", "a:host.example/24//64", "a:void.example", "mx", "mx:hosts.example//48", "a:%{d}", "a:%{d1r}.example"}).Draw(t, "a")
				case 6:
					term = rapid.SampledFrom([]string{"exists:%{i}.list.example", "exists:%{i}.%{d}.list.example", "exists:%{l}.list.example", "exists:%{h}.missing.example", "ptr", "ptr:a.example", "a:%{o}"}).Draw(t, "term")
				default:
					term = "include:" + rapid.SampledFrom(append(targets, "list.example", "holes.example", "mixed.example", "onward.example", "macro.example", "named.example")).Draw(t, "include")
				}
				if !include {
					term = rapid.SampledFrom([]string{"", "", "", "", "-", "~", "?"}).Draw(t, "qualifier") + term
				}
				terms = append(terms, term)
			}
			if include {
				return strings.Join(terms, " ")
			}
			end := rapid.SampledFrom([]string{"", "-all", "~all", "?all", "redirect=%{o}.list.example", "redirect=holes.example", "redirect=mixed.example"}).Draw(t, "end")
			return strings.TrimSpace(strings.Join(terms, " ") + " " + end)
		}
		var c flatCase
		targets := []string{}
		for i := range 3 {
			name := fmt.Sprintf("p%d.example", i+1)
			c.world += fmt.Sprintf("%s TXT \"%s\"\n", name, record(name, slices.Clone(targets), false))
			targets = append(targets, name)
		}
		c.include = rapid.IntRange(0, 4).Draw(t, "mode") == 0
		c.record = record("record", targets, c.include)
		return c
	})
}

// TestFlattenIsEqual generates records, and compares the results of the flat ones.
func TestFlattenIsEqual(t *testing.T) {
	t.Parallel()
	cases, count, flattened := flatCases(), 3000, 0
	if testing.Short() {
		count = 100
	}
	for seed := range count {
		c := cases.Example(seed)
		flat, err := flatten(c.world, c.record, c.include)
		if err != nil {
			var problem *spf.FlattenError
			if !errors.As(err, &problem) || problem.Problem.Kind != spf.VoidLimit && problem.Problem.Kind != spf.LookupLimit {
				t.Fatalf("%q in %s: %v", c.record, c.world, err)
			}
			continue
		}
		flattened++
		sameResults(t, c.world, c.record, flat, c.include, true)
	}
	if flattened < count/3 {
		t.Errorf("%d of %d records could be flattened", flattened, count)
	}
}

// FuzzFlatten holds that a flat record keeps the limits and gives the results of the original.
func FuzzFlatten(f *testing.F) {
	for _, seed := range []string{"v=spf1 a mx ptr include:b.example -all", "v=spf1 ip4:0.0.0.0/0 ip6:::/0 ~all", "v=spf1 -a:%{d}/31 ?include:%{d2r} exists:%{ir-}.%{D} redirect=b.example", "v=spf1 mx:hosts.example/0//0"} {
		f.Add(seed, "v=spf1 ip4:10.0.0.0/8 -ip4:11.0.0.1 include:c.example exists:%{l}.%{d} ?all", "v=spf1 exists:%{p}.x.example ip6:2001:db8::/33 +all", false)
		f.Add(seed, "v=spf1 ?ip4:10.0.0.7/31 +ip4:10.0.0.0/28", "v=spf1 redirect=holes.example", true)
	}
	f.Fuzz(func(t *testing.T, record, b, c string, include bool) {
		if strings.ContainsFunc(b+c, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == ';' || r == '\\' }) {
			return // not in the notation of the zone
		}
		world := fmt.Sprintf("b.example TXT \"%s\"\nc.example TXT \"%s\"", b, c)
		flat, err := flatten(world, record, include)
		if err != nil {
			return
		}
		if flat.Lookups > 10 || flat.Voids > 2 || flat.TTL < spf.MinFlatTTL || flat.TTL > spf.MaxFlatTTL || len(flat.Records) != len(flat.Names) {
			t.Fatalf("got %+v", flat)
		}
		for _, text := range flat.Records {
			if _, err := spf.Parse(text); err != nil || len(text) > 450 {
				t.Fatalf("got %q: %v", text, err)
			}
		}
		sameResults(t, world, record, flat, include, false)
	})
}
