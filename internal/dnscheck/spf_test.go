package dnscheck_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/facts"
)

func repeat(text string, n int) string { return strings.Repeat(text, n) }

// sending returns the sound zone with another SPF record.
func sending(record string) string {
	return without(`"v=spf1`) + `example.com TXT "` + record + `"` + "\n"
}

// numbered returns n lines or terms with their number in them.
func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

var spfCases = []findingCase{
	{name: "no SPF record", zone: without(`"v=spf1`), want: []string{"spf.missing"}, fix: `example.com. TXT "v=spf1 mx ~all"`},
	{name: "no answer for SPF", zone: without(`"v=spf1`) + "example.com TXT INCONCLUSIVE", want: []string{"spf.inconclusive"}, not: []string{"spf.missing"}},
	{name: "an SPF near miss", zone: sending("v=spf1; mx -all"), want: []string{"spf.near_miss"}, not: []string{"spf.missing"}},
	{
		name: "an SPF near miss with senders", zone: sending("v=spf1; include:_spf.example.net mx -all"), want: []string{"spf.near_miss"},
		fix: `example.com. TXT "v=spf1 include:_spf.example.net mx -all"`,
	},
	{name: "an SPF near miss after a blank", zone: sending(" v=spf1 ip4:192.0.2.0/24 ?all"), want: []string{"spf.near_miss"}, fix: `example.com. TXT "v=spf1 ip4:192.0.2.0/24 ~all"`},
	{name: "an SPF near miss in quotation marks", zone: sending(`\"v=spf1 a:m.example.net -all\"`), want: []string{"spf.near_miss"}, fix: `example.com. TXT "v=spf1 a:m.example.net -all"`},
	{name: "an SPF near miss with a spaced version", zone: sending("v = spf1 redirect=_spf.example.net"), want: []string{"spf.near_miss"}, fix: `example.com. TXT "v=spf1 redirect=_spf.example.net"`},
	{name: "an SPF near miss that cannot be read", zone: sending("v=spf1; inclde:_spf.example.net -all"), want: []string{"spf.near_miss"}, fix: `example.com. TXT "v=spf1 mx ~all"`},
	{name: "an SPF near miss without terms", zone: sending("v=spf1;"), want: []string{"spf.near_miss"}, fix: `example.com. TXT "v=spf1 mx ~all"`},
	{name: "an SPF near miss beside a record", zone: sound + `example.com TXT " v=spf1 a -all"`, want: []string{"spf.stray_text", "spf.valid"}},
	{
		name: "two SPF records", zone: sound + `example.com TXT "v=spf1 a MX ~all"`, want: []string{"spf.multiple_records"},
		fix: `example.com. TXT "v=spf1 a MX -all"`,
	},
	{
		name: "two SPF records, one of which redirects", want: []string{"spf.multiple_records"},
		zone: without(`"v=spf1`) + `example.com TXT "v=spf1 mx exp=why.%{D} -all"
example.com TXT "v=spf1 redirect=senders.example.net exp=because.%{D}"`,
		fix: `example.com. TXT "v=spf1 mx exp=why.%{D} include:senders.example.net -all"`,
	},
	{name: "no SPF record and no MX record", zone: without(`"v=spf1`, "MX") + "example.com A 192.0.2.1", want: []string{"spf.missing"}, fix: `example.com. TXT "v=spf1 a ~all"`},
	{name: "no SPF record and no mail server at all", zone: without(`"v=spf1`, "MX"), want: []string{"spf.missing"}, fix: `example.com. TXT "v=spf1 ~all"`},
	{name: "a mechanism that does not exist", zone: sending("v=spf1 ipv4:192.0.2.1 -all"), want: []string{"spf.syntax_error"}, not: []string{"spf.valid"}, message: "the mechanism ipv4 is unknown"},
	{name: "an address where a name must be", zone: sending("v=spf1 a:192.0.2.1 -all"), want: []string{"spf.syntax_error"}, message: "is an IP address"},
	{
		name: "eleven lookups", zone: sending("v=spf1"+numbered(" a:h%d.example.com", 11)+" -all") + numbered("h%d.example.com A 192.0.2.5\n", 11),
		want: []string{"spf.too_many_lookups"}, not: []string{"spf.valid", "spf.near_lookup_limit"}, message: "needs 11 DNS lookups",
	},
	{
		name: "nine lookups", zone: sending("v=spf1"+numbered(" a:h%d.example.com", 9)+" -all") + numbered("h%d.example.com A 192.0.2.5\n", 9),
		want: []string{"spf.near_lookup_limit", "spf.valid"},
	},
	{name: "three void lookups", zone: sending("v=spf1 a:x.example.com a:y.example.com a:z.example.com -all"), want: []string{"spf.too_many_void_lookups"}, not: []string{"spf.void_lookup"}},
	{
		name: "four hosts without IPv6", zone: sending("v=spf1"+numbered(" a:h%d.example.com", 4)+" -all") + numbered("h%d.example.com A 192.0.2.5\n", 4),
		want: []string{"spf.valid"}, not: []string{"spf.too_many_void_lookups", "spf.void_lookup"},
	},
	{
		name: "three void lookups among hosts without IPv6", want: []string{"spf.too_many_void_lookups"}, message: "3 lookups of the SPF record",
		zone: sending("v=spf1 a:x.example.com a:y.example.com a:z.example.com"+numbered(" a:h%d.example.com", 4)+" -all") + numbered("h%d.example.com A 192.0.2.5\n", 4),
	},
	{name: "one void lookup", zone: sending("v=spf1 a:x.example.com -all"), want: []string{"spf.void_lookup"}},
	{name: "eleven mail servers", zone: sending("v=spf1 mx:big.example.com -all") + numbered("big.example.com MX 10 m%d.example.com\n", 11) + numbered("m%d.example.com A 192.0.2.6\n", 11), want: []string{"spf.too_many_mx"}},
	{name: "an include that does not exist", zone: sending("v=spf1 include:gone.example.net -all"), want: []string{"spf.broken_include"}, message: "does not exist"},
	{name: "an include without a record", zone: sending("v=spf1 include:mx.example.com -all"), want: []string{"spf.broken_include"}, message: "has no SPF record"},
	{name: "an include of itself", zone: sending("v=spf1 include:example.com -all"), want: []string{"spf.loop"}},
	{name: "all others pass", zone: sending("v=spf1 mx +all"), want: []string{"spf.pass_all"}, not: []string{"spf.valid"}, fix: `example.com. TXT "v=spf1 mx ~all"`},
	{name: "an include that lets all pass", zone: sending("v=spf1 include:open.example.net -all") + `open.example.net TXT "v=spf1 +all"`, want: []string{"spf.included_pass_all"}, not: []string{"spf.pass_all"}},
	{name: "neutral about all others", zone: sending("v=spf1 mx ?all"), want: []string{"spf.neutral_all"}},
	{name: "an include that is neutral", zone: sending("v=spf1 include:n.example.net -all") + `n.example.net TXT "v=spf1 ip4:192.0.2.0/24 ?all"`, not: []string{"spf.neutral_all"}, want: []string{"spf.valid"}},
	{name: "a redirect that is neutral", zone: sending("v=spf1 redirect=n.example.net") + `n.example.net TXT "v=spf1 ip4:192.0.2.0/24 ?all"`, want: []string{"spf.neutral_all"}},
	{name: "no all", zone: sending("v=spf1 mx"), want: []string{"spf.no_all"}, fix: `example.com. TXT "v=spf1 mx ~all"`},
	{name: "terms after all", zone: sending("v=spf1 mx -all ip4:192.0.2.7"), want: []string{"spf.terms_after_all"}, fix: `example.com. TXT "v=spf1 mx ip4:192.0.2.7 -all"`},
	{name: "a redirect beside all", zone: sending("v=spf1 mx -all redirect=mx.example.com"), want: []string{"spf.redirect_ignored"}},
	{name: "ptr", zone: sending("v=spf1 mx ptr -all"), want: []string{"spf.ptr"}, fix: `example.com. TXT "v=spf1 mx -all"`},
	{
		name: "ptr before a redirect", zone: sending("v=spf1 ptr redirect=senders.example.net") + `senders.example.net TXT "v=spf1 ip4:192.0.2.0/24 -all"`,
		want: []string{"spf.ptr"}, fix: `example.com. TXT "v=spf1 redirect=senders.example.net"`,
	},
	{
		name: "all others pass, and a term cannot be read", zone: sending("v=spf1 mx inclde:senders.example.net all"),
		want: []string{"spf.pass_all", "spf.syntax_error"}, fix: `example.com. TXT "v=spf1 mx ~all"`,
	},
	{name: "a broad range", zone: sending("v=spf1 ip4:10.0.0.0/8 -all"), want: []string{"spf.broad_range"}},
	{name: "a name that the DNS cannot hold", zone: sending("v=spf1 a:" + repeat("a", 64) + ".example.com -all"), want: []string{"spf.malformed_name"}},
	{name: "a term twice", zone: sending("v=spf1 mx mx -all"), want: []string{"spf.duplicate_term"}},
	{name: "a range within another", zone: sending("v=spf1 ip4:198.51.100.0/24 ip4:198.51.100.7 -all"), want: []string{"spf.overlap"}},
	{name: "bits beyond the length", zone: sending("v=spf1 ip4:198.51.100.7/24 -all"), want: []string{"spf.host_bits"}},
	{name: "a modifier without a meaning", zone: sending("v=spf1 mx foo=bar -all"), want: []string{"spf.unknown_modifier"}},
	{name: "a long record of SPF", zone: sending("v=spf1" + numbered(" ip4:198.51.100.%d", 25) + " -all"), want: []string{"spf.long_record"}},
	{name: "a record of SPF that is too long", zone: sending("v=spf1" + numbered(" ip4:198.51.100.%d", 40) + " -all"), want: []string{"spf.record_too_long"}, not: []string{"spf.long_record"}},
	{name: "a string that is too long", zone: sending("v=spf1 mx exp=" + repeat("a.", 130) + "example.com -all"), want: []string{"spf.long_string"}},
	{name: "Sender ID", zone: sound + `example.com TXT "spf2.0/pra mx -all"`, want: []string{"spf.sender_id"}},
	{
		name: "a tree without end", zone: sending("v=spf1 include:d0.example.net -all") + chain(60),
		want: []string{"spf.tree_too_large", "spf.too_many_lookups"},
	},
}

// chain returns n records of which each includes the next.
func chain(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "d%d.example.net TXT \"v=spf1 include:d%d.example.net -all\"\n", i, i+1)
	}
	return b.String()
}

// TestSPFAddresses wants the networks of a and mx terms, as receivers compare them.
func TestSPFAddresses(t *testing.T) {
	t.Parallel()
	const hosts = `
a.example.com A 192.0.2.9
a.example.com A 192.0.2.3
a.example.com AAAA 2001:db8::9
b.example.com A 192.0.2.65
b.example.com A 192.0.2.66
c.example.com A 192.0.2.1
c.example.com AAAA INCONCLUSIVE
m.example.com MX 10 a.example.com
m.example.com MX 20 b.example.com
`
	for _, tt := range []struct {
		name, term, zone string
		want             string
		complete         bool
	}{
		{name: "both families", term: "a:a.example.com", want: "[192.0.2.3/32 192.0.2.9/32 2001:db8::9/128]", complete: true},
		{name: "prefix lengths", term: "a:b.example.com/26", want: "[192.0.2.64/26]", complete: true},
		{name: "mail servers", term: "mx:m.example.com/31//64", want: "[192.0.2.2/31 192.0.2.8/31 192.0.2.64/31 192.0.2.66/31 2001:db8::/64]", complete: true},
		{name: "no such name", term: "a:none.example.com", want: "[]", complete: true},
		{name: "failed lookup", term: "a:c.example.com", want: "[192.0.2.1/32]"},
		{name: "failed lookup of mail servers", term: "mx:f.example.com", zone: "f.example.com MX INCONCLUSIVE", want: "[]"},
		{name: "too many mail servers", term: "mx:big.example.com", zone: numbered("big.example.com MX 10 m%d.example.com\n", 11) + numbered("m%d.example.com A 192.0.2.6\n", 11), want: "[192.0.2.6/32]"},
		{name: "a network", term: "ip4:192.0.2.1", want: "[]"},
		{name: "depends on the client", term: "a:%{i}.example.com", want: "[]"},
		{name: "never reached", term: "-all a:a.example.com", want: "[]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			zone := dnstest.New(sending("v=spf1 "+tt.term+" ~all") + hosts + tt.zone)
			check := dnscheck.New(dnscheck.Options{Resolver: zone, Now: noon}).Examine(t.Context(), dnscheck.Request{Domain: "example.com"})
			tree := check.Facts.SPF.Tree
			got := tree[len(tree)-2]
			if text := fmt.Sprint(got.Addresses); text != tt.want || got.Complete != tt.complete {
				t.Errorf("got %s, complete: %v; want %s, %v", text, got.Complete, tt.want, tt.complete)
			}
		})
	}
}

// TestSPFAddressesAreBounded wants the same addresses in whatever order they are answered.
func TestSPFAddressesAreBounded(t *testing.T) {
	t.Parallel()
	var trees [][]facts.SPFTerm
	for _, first := range []int{0, 17} {
		zone := dnstest.New(sending("v=spf1 a:big.example.com a:small.example.com -all"))
		for i := range 250 {
			octet := byte((i*7 + first) % 250)
			zone.Add(dns.Record{Name: "big.example.com", Type: dns.A, Addr: netip.AddrFrom4([4]byte{192, 0, 2, octet})})
			if octet < facts.MaxSPFAddresses {
				zone.Add(dns.Record{Name: "small.example.com", Type: dns.A, Addr: netip.AddrFrom4([4]byte{192, 0, 2, octet})})
			}
		}
		check := dnscheck.New(dnscheck.Options{Resolver: zone, Now: noon}).Examine(t.Context(), dnscheck.Request{Domain: "example.com"})
		trees = append(trees, check.Facts.SPF.Tree)
	}
	want := netip.MustParsePrefix("192.0.2.99/32")
	for i, complete := range []bool{false, true} {
		a, b := trees[0][i], trees[1][i]
		if !slices.Equal(a.Addresses, b.Addresses) || len(a.Addresses) != facts.MaxSPFAddresses || a.Addresses[99] != want || a.Complete != complete {
			t.Errorf("%s: got %v and %v, complete: %v; want the lowest %d, %v", a.Term, a.Addresses, b.Addresses, a.Complete, facts.MaxSPFAddresses, complete)
		}
	}
}
