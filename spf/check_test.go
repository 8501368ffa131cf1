package spf_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/spf"
)

func TestCheckResults(t *testing.T) {
	t.Parallel()
	label := strings.Repeat("b", 63)
	name := label + "." + label + "." + label + "." + strings.Repeat("b", 53) + ".example" // 253 bytes
	tests := []struct {
		name string
		// zone is the DNS; the record of example.com is record.
		record, zone string
		ip           string // 192.0.2.1 where it is empty
		want         spf.Result
	}{
		{name: "ip4 matches", record: "v=spf1 ip4:192.0.2.0/24 -all", want: spf.Pass},
		{name: "ip4 does not match", record: "v=spf1 ip4:198.51.100.0/24 -all", want: spf.Fail},
		{name: "the first match decides", record: "v=spf1 ~ip4:192.0.2.0/24 ip4:192.0.2.1 -all", want: spf.SoftFail},
		{name: "nothing matches", record: "v=spf1 ip4:198.51.100.1", want: spf.Neutral},
		{name: "an empty record", record: "v=spf1", want: spf.Neutral},
		{name: "mechanisms after all are ignored", record: "v=spf1 ?all ip4:192.0.2.1 -all", want: spf.Neutral},
		{name: "an error after all is found", record: "v=spf1 +all moo", want: spf.PermError},
		{name: "an error after a match is found", record: "v=spf1 ip4:192.0.2.1 ip4:192.0.2 -all", want: spf.PermError},
		{name: "unknown modifiers are ignored", record: "v=spf1 az=y ip4:192.0.2.1 -all", want: spf.Pass},

		{name: "mapped addresses are IPv4", record: "v=spf1 ip4:192.0.2.1 -all", ip: "::ffff:192.0.2.1", want: spf.Pass},
		{name: "ip6 does not match them", record: "v=spf1 ip6:::ffff:192.0.2.1 ip6:::/0 -all", ip: "::ffff:192.0.2.1", want: spf.Fail},
		{name: "ip6 matches", record: "v=spf1 ip6:2001:db8::/32 -all", ip: "2001:db8::1", want: spf.Pass},
		{name: "ip4 does not match IPv6", record: "v=spf1 ip4:0.0.0.0/0 -all", ip: "2001:db8::1", want: spf.Fail},
		{name: "a zone is no part of the address", record: "v=spf1 ip6:fe80::1 -all", ip: "fe80::1%eth0", want: spf.Pass},

		{name: "a of the domain", record: "v=spf1 a -all", zone: "example.com A 192.0.2.1", want: spf.Pass},
		{name: "a of another name", record: "v=spf1 a:b.example -all", zone: "b.example A 192.0.2.1", want: spf.Pass},
		{name: "a with a prefix length", record: "v=spf1 a:b.example/24 -all", zone: "b.example A 192.0.2.99", want: spf.Pass},
		{name: "a through a CNAME", record: "v=spf1 a:b.example -all", zone: "b.example CNAME c.example\nc.example A 192.0.2.1", want: spf.Pass},
		{name: "a /0 needs an address", record: "v=spf1 a:b.example/0 -all", zone: "b.example TXT \"x\"", want: spf.Fail},
		{name: "a asks for the client's family", record: "v=spf1 a:b.example -all", zone: "b.example A 192.0.2.1", ip: "2001:db8::1", want: spf.Fail},
		{name: "a of IPv6 with a prefix length", record: "v=spf1 a:b.example//64 -all", zone: "b.example AAAA 2001:db8::99", ip: "2001:db8::1", want: spf.Pass},
		{name: "a that cannot be looked up", record: "v=spf1 a:b.example -all", zone: "b.example INCONCLUSIVE", want: spf.TempError},
		{name: "a name that cannot be asked for", record: "v=spf1 a:b..example a:" + strings.Repeat("b", 64) + ".example -all", want: spf.Fail},

		{name: "mx", record: "v=spf1 mx -all", zone: "example.com MX 10 b.example\nb.example A 192.0.2.1", want: spf.Pass},
		{name: "mx does not fall back to a", record: "v=spf1 mx -all", zone: "example.com A 192.0.2.1", want: spf.Fail},
		{name: "a null MX", record: "v=spf1 mx -all", zone: "example.com MX 0 .\nexample.com A 192.0.2.1", want: spf.Fail},
		{name: "mx of which one has no address", record: "v=spf1 mx -all", zone: "example.com MX 1 c.example\nexample.com MX 2 b.example\nb.example A 192.0.2.1", want: spf.Pass},
		{name: "mx of which one cannot be looked up", record: "v=spf1 mx -all", zone: "example.com MX 1 c.example\nexample.com MX 2 b.example\nb.example A 192.0.2.1\nc.example INCONCLUSIVE", want: spf.TempError},
		{name: "mx of which one is no name", record: "v=spf1 mx -all", zone: "example.com MX 1 " + strings.Repeat("c", 64) + ".example\nexample.com MX 2 b.example\nb.example A 192.0.2.1", want: spf.Pass},
		{name: "mx that cannot be looked up", record: "v=spf1 mx -all", zone: "example.com MX INCONCLUSIVE", want: spf.TempError},

		{name: "ptr", record: "v=spf1 ptr -all", zone: "1.2.0.192.in-addr.arpa PTR Mail.Example.com\nmail.example.com A 192.0.2.1", want: spf.Pass},
		{name: "ptr of the domain itself", record: "v=spf1 ptr:b.example -all", zone: "1.2.0.192.in-addr.arpa PTR b.example\nb.example A 192.0.2.1", want: spf.Pass},
		{name: "ptr of a name that only ends alike", record: "v=spf1 ptr:b.example -all", zone: "1.2.0.192.in-addr.arpa PTR ab.example\nab.example A 192.0.2.1", want: spf.Fail},
		{name: "ptr that is not validated", record: "v=spf1 ptr -all", zone: "1.2.0.192.in-addr.arpa PTR mail.example.com\nmail.example.com A 192.0.2.2", want: spf.Fail},
		{name: "ptr that cannot be looked up is no match", record: "v=spf1 ptr -all", zone: "1.2.0.192.in-addr.arpa INCONCLUSIVE", want: spf.Fail},
		{name: "a name of ptr that cannot be looked up is skipped", record: "v=spf1 ptr -all", zone: "1.2.0.192.in-addr.arpa PTR a.example.com\n1.2.0.192.in-addr.arpa PTR b.example.com\na.example.com INCONCLUSIVE\nb.example.com A 192.0.2.1", want: spf.Pass},
		{name: "ptr of IPv6", record: "v=spf1 ptr -all", ip: "2001:db8::1", zone: "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa PTR example.com\nexample.com AAAA 2001:db8::1", want: spf.Pass},

		{name: "exists", record: "v=spf1 exists:%{ir}.b.example -all", zone: "1.2.0.192.b.example A 127.0.0.2", want: spf.Pass},
		{name: "the longest label", record: "v=spf1 exists:" + label + ".example -all", zone: label + ".example A 127.0.0.2", want: spf.Pass},
		{name: "the longest name", record: "v=spf1 exists:" + name + " -all", zone: name + " A 127.0.0.2", want: spf.Pass},
		{name: "any character in a name", record: "v=spf1 exists:b~c.example -all", zone: "b~c.example A 127.0.0.2", want: spf.Pass},
		{name: "exists asks for A even of IPv6", record: "v=spf1 exists:b.example -all", zone: "b.example A 127.0.0.2", ip: "2001:db8::1", want: spf.Pass},
		{name: "exists does not take AAAA", record: "v=spf1 exists:b.example -all", zone: "b.example AAAA 2001:db8::1", ip: "2001:db8::1", want: spf.Fail},
		{name: "exists that cannot be looked up", record: "v=spf1 exists:b.example -all", zone: "b.example INCONCLUSIVE", want: spf.TempError},

		{name: "include that passes", record: "v=spf1 ?include:b.example -all", zone: `b.example TXT "v=spf1 ip4:192.0.2.1 -all"`, want: spf.Neutral},
		{name: "include that fails does not match", record: "v=spf1 include:b.example ~all", zone: `b.example TXT "v=spf1 -all"`, want: spf.SoftFail},
		{name: "include that is neutral does not match", record: "v=spf1 include:b.example ~all", zone: `b.example TXT "v=spf1"`, want: spf.SoftFail},
		{name: "include without a record", record: "v=spf1 include:b.example ~all", zone: `b.example TXT "hello"`, want: spf.PermError},
		{name: "include of a missing name", record: "v=spf1 include:b.example ~all", want: spf.PermError},
		{name: "include with an error", record: "v=spf1 include:b.example ~all", zone: `b.example TXT "v=spf1 moo"`, want: spf.PermError},
		{name: "include that cannot be looked up", record: "v=spf1 include:b.example ~all", zone: `b.example INCONCLUSIVE`, want: spf.TempError},
		{name: "include of a name of one label", record: "v=spf1 include:%{d1} ~all", want: spf.PermError},

		{name: "redirect", record: "v=spf1 redirect=b.example", zone: `b.example TXT "v=spf1 -all"`, want: spf.Fail},
		{name: "redirect comes last", record: "v=spf1 redirect=b.example ip4:192.0.2.1", zone: `b.example TXT "v=spf1 -all"`, want: spf.Pass},
		{name: "redirect is ignored beside all", record: "v=spf1 redirect=b.example ~all", want: spf.SoftFail},
		{name: "redirect without a record", record: "v=spf1 redirect=b.example", zone: `b.example A 192.0.2.1`, want: spf.PermError},
		{name: "redirect changes the domain", record: "v=spf1 redirect=b.example", zone: "b.example TXT \"v=spf1 a -all\"\nb.example A 192.0.2.1", want: spf.Pass},
		{name: "redirect that cannot be looked up", record: "v=spf1 redirect=b.example", zone: "b.example INCONCLUSIVE", want: spf.TempError},
		{name: "redirect to itself", record: "v=spf1 redirect=example.com", want: spf.PermError},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			zone := dnstest.New(tt.zone)
			zone.Add(dns.Record{Name: "example.com", Type: dns.TXT, Text: []string{tt.record}})
			ip := "192.0.2.1"
			if tt.ip != "" {
				ip = tt.ip
			}
			v := spf.Check(context.Background(), zone, spf.Identity{
				IP: netip.MustParseAddr(ip), Helo: "mail.example.com", MailFrom: "user@example.com",
			})
			if v.Result != tt.want {
				t.Errorf("got %v (%+v), want %v", v.Result, v.Problem, tt.want)
			}
			explained := v.Result == spf.TempError || v.Result == spf.PermError
			if explained != (v.Problem != nil) {
				t.Errorf("got problem %+v with result %v", v.Problem, v.Result)
			}
		})
	}
}

func TestCheckSelectsTheRecord(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		zone string
		want spf.Result
		kind spf.Kind
	}{
		{"one among others", `example.com TXT "hello"
			example.com TXT "v=spf10 +all"
			example.com TXT "V=Spf1 " "-all"`, spf.Fail, ""},
		{"strings are joined without a space", `example.com TXT "v=spf1" "-all"`, spf.None, spf.NoRecord},
		{"two records", `example.com TXT "v=spf1 -all"
			example.com TXT "v=spf1 +all"`, spf.PermError, spf.MultipleRecords},
		{"none", `example.com A 192.0.2.1`, spf.None, spf.NoRecord},
		{"no such name", ``, spf.None, spf.NoSuchName},
		{"no answer", `example.com TXT INCONCLUSIVE`, spf.TempError, spf.Inconclusive},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := spf.Check(context.Background(), dnstest.New(tt.zone), spf.Identity{
				IP: netip.MustParseAddr("192.0.2.1"), MailFrom: "user@example.com",
			})
			var kind spf.Kind
			if v.Problem != nil {
				kind = v.Problem.Kind
			}
			if v.Result != tt.want || kind != tt.kind {
				t.Errorf("got %v %q, want %v %q", v.Result, kind, tt.want, tt.kind)
			}
		})
	}
}

func TestCheckIdentity(t *testing.T) {
	t.Parallel()
	zone := dnstest.New(`
		example.com TXT "v=spf1 exists:%{l}.%{o}.user.example -all"
		user.example.com.user.example A 127.0.0.2
		postmaster.example.com.user.example A 127.0.0.2`)
	tests := []struct {
		name           string
		helo, mailFrom string
		want           spf.Result
		scope          spf.Scope
	}{
		{"the reverse-path", "x.example", "user@example.com", spf.Pass, spf.MailFrom},
		{"its case and final dot", "x.example", "user@EXAMPLE.com.", spf.Pass, spf.MailFrom},
		{"another user", "x.example", "other@example.com", spf.Fail, spf.MailFrom},
		{"the last at sign counts", "x.example", `"a@b"@example.com`, spf.Fail, spf.MailFrom},
		{"no local part", "x.example", "@example.com", spf.Pass, spf.MailFrom},
		{"no at sign", "x.example", "example.com", spf.Pass, spf.MailFrom},
		{"null reverse-path", "example.com", "", spf.Pass, spf.Helo},
		{"HELO of one label", "example", "", spf.None, spf.Helo},
		{"HELO with an address literal", "[192.0.2.1]", "", spf.None, spf.Helo},
		{"HELO with an address", "192.0.2.1", "", spf.None, spf.Helo},
		{"HELO with junk", "what is.this", "", spf.None, spf.Helo},
		{"HELO missing", "", "", spf.None, spf.Helo},
		{"an empty label", "", "user@example..com", spf.None, spf.MailFrom},
		{"a label too long", "", "user@" + strings.Repeat("a", 64) + ".example.com", spf.None, spf.MailFrom},
		{"a name too long", "", "user@" + strings.Repeat("abcdefg.", 31) + "example", spf.None, spf.MailFrom},
		{"not in A-labels", "", "user@exämple.com", spf.None, spf.MailFrom},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := spf.Check(context.Background(), zone, spf.Identity{
				IP: netip.MustParseAddr("192.0.2.1"), Helo: tt.helo, MailFrom: tt.mailFrom,
			})
			if v.Result != tt.want || v.Scope != tt.scope {
				t.Errorf("got %v %q, want %v %q", v.Result, v.Scope, tt.want, tt.scope)
			}
			if tt.want == spf.None && v.Problem.Kind != spf.MalformedName {
				t.Errorf("got problem %q, want %q", v.Problem.Kind, spf.MalformedName)
			}
		})
	}
	if got := spf.Check(context.Background(), zone, spf.Identity{MailFrom: "user@example.com"}); got.Result != spf.None {
		t.Errorf("without an address: got %v, want none", got.Result)
	}
}

func TestCheckReportsWhatMatched(t *testing.T) {
	t.Parallel()
	zone := dnstest.New(`
		example.com TXT "v=spf1 a:void.example redirect=b.example"
		b.example   TXT "v=spf1 mx include:c.example -all"
		b.example   MX  1 mx.b.example
		mx.b.example A  198.51.100.1
		c.example   TXT "v=spf1 ip4:192.0.2.0/24 ~all"`)
	v := spf.Check(context.Background(), zone, spf.Identity{
		IP: netip.MustParseAddr("192.0.2.1"), MailFrom: "user@example.com",
	})
	want := spf.Evaluation{
		Result: spf.Pass, Domain: "example.com", Scope: spf.MailFrom,
		Path: []spf.Position{
			{Domain: "example.com", Term: "redirect=b.example", Offset: 22},
			{Domain: "b.example", Term: "include:c.example", Offset: 10},
			{Domain: "c.example", Term: "ip4:192.0.2.0/24", Offset: 7},
		},
		Lookups: 4, Voids: 1,
	}
	if diff := cmp.Diff(want, v); diff != "" {
		t.Errorf("evaluation (-want +got):\n%s", diff)
	}
}

func TestCheckReportsWhatFailed(t *testing.T) {
	t.Parallel()
	zone := dnstest.New(`
		example.com TXT "v=spf1 include:b.example -all"
		b.example   TXT "v=spf1 ip4:192.0.2.300 -all"
		example.net TXT "v=spf1 include:c.example -all"
		example.org TXT "v=spf1 a:slow.example -all"
		slow.example INCONCLUSIVE`)
	tests := []struct {
		domain string
		want   spf.Problem
	}{
		{"example.com", spf.Problem{
			Kind: spf.InvalidAddress, Text: "192.0.2.300",
			Position: spf.Position{Domain: "b.example", Term: "ip4:192.0.2.300", Offset: 11},
		}},
		{"example.net", spf.Problem{
			Kind: spf.NoSuchName, Name: "c.example",
			Position: spf.Position{Domain: "example.net", Term: "include:c.example", Offset: 7},
		}},
		{"example.org", spf.Problem{
			Kind: spf.Inconclusive, Name: "slow.example",
			Position: spf.Position{Domain: "example.org", Term: "a:slow.example", Offset: 7},
		}},
	}
	for _, tt := range tests {
		v := spf.Check(context.Background(), zone, spf.Identity{
			IP: netip.MustParseAddr("192.0.2.1"), MailFrom: "user@" + tt.domain,
		})
		if v.Problem == nil {
			t.Fatalf("%s: got no problem, want %v", tt.domain, tt.want)
		}
		tt.want.Reason = v.Problem.Reason // the resolver's words
		if diff := cmp.Diff(tt.want, *v.Problem, comparePrefixes); diff != "" {
			t.Errorf("%s: problem (-want +got):\n%s", tt.domain, diff)
		}
	}
}

func TestCheckStopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	v := spf.Check(ctx, dnstest.New(`example.com TXT "v=spf1 -all"`), spf.Identity{
		IP: netip.MustParseAddr("192.0.2.1"), MailFrom: "user@example.com",
	})
	if v.Result != spf.TempError {
		t.Errorf("got %v, want temperror", v.Result)
	}
}
