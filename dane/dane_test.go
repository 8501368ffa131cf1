package dane_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/dane"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
)

// Digests for records; what they are of does not matter here.
var (
	digestA = strings.Repeat("aa", 32)
	digestB = strings.Repeat("bb", 32)
)

// world is one zone for all rows. The rows sign the parts that they need.
var world = `
ok.example              MX    10 mx.ok.example
mx.ok.example           A     192.0.2.1
_25._tcp.mx.ok.example  TLSA  030101 ` + digestA + `
_25._tcp.mx.ok.example  TLSA  030101 ` + digestB + `

v6.example              MX    10 mx.v6.example
mx.v6.example           AAAA  2001:db8::1
_25._tcp.mx.v6.example  TLSA  020101 ` + digestA + `

plain.example           MX    10 mx.plain.example
mx.plain.example        A     192.0.2.2

self.example            A     192.0.2.3
_25._tcp.self.example   TLSA  030101 ` + digestA + `
_25._tcp.self.example   TLSA  030101 ` + digestB + `

quiet.example           TXT   "neither MX nor address"
null.example            MX    0 .
broken.example          MX    INCONCLUSIVE

ghost.example           MX    10 nowhere.ghost.example
ghost.example           A     192.0.2.4

lame.example            MX    10 mx.lame.example
mx.lame.example         INCONCLUSIVE
slow.example            MX    10 mx.slow.example
mx.slow.example         A     192.0.2.5
_25._tcp.mx.slow.example TLSA INCONCLUSIVE

pkix.example            MX    10 mx.pkix.example
mx.pkix.example         A     192.0.2.6
_25._tcp.mx.pkix.example TLSA 000101 ` + digestA + `
_25._tcp.mx.pkix.example TLSA 010101 ` + digestB + `
_25._tcp.mx.pkix.example TLSA 0301

part.example            MX    20 b.part.example
part.example            MX    10 a.part.example
part.example            MX    30 a.part.example
a.part.example          A     192.0.2.7
b.part.example          A     192.0.2.8
_25._tcp.a.part.example TLSA  030101 ` + digestA + `
_25._tcp.a.part.example TLSA  010101 ` + digestB + `

hosted.example          MX    10 mx.ok.example

alias.example           MX    10 mx.alias.example
mx.alias.example        CNAME mx.ok.example
both.example            MX    10 mx.both.example
mx.both.example         CNAME mx.plain.example
_25._tcp.mx.both.example TLSA 030101 ` + digestA + `
_25._tcp.mx.both.example TLSA 030101 ` + digestB + `

shared.example          MX    10 mx.shared.example
mx.shared.example       A     192.0.2.9
_25._tcp.mx.shared.example CNAME _25._tcp.mx.ok.example

half.example            MX    10 mx.ok.example
half.example            MX    20 mx.lame.example
`

// hostOf is the part of a dane.Host that rows compare.
type hostOf struct {
	Name     string
	Base     string
	Status   string
	Address  string
	Records  int
	Problems []string // kind and text
}

func TestLookup(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		domain string
		signed []string // names below which answers are validated
		status string
		mx     string
		hosts  []hostOf
	}{
		{
			name: "signed, with two records", domain: "OK.example.", signed: []string{"ok.example"}, status: "ok", mx: "secure",
			hosts: []hostOf{{Name: "mx.ok.example", Base: "mx.ok.example", Status: "ok", Address: "secure", Records: 2}},
		},
		{
			name: "one record, addresses of IPv6 only", domain: "v6.example", signed: []string{"v6.example"}, status: "ok", mx: "secure",
			hosts: []hostOf{{Name: "mx.v6.example", Base: "mx.v6.example", Status: "ok", Address: "secure", Records: 1, Problems: []string{"single-record 2 1 1 " + digestA}}},
		},
		{
			name: "no records and not signed", domain: "plain.example", status: "none", mx: "insecure",
			hosts: []hostOf{{Name: "mx.plain.example", Status: "none", Address: "insecure"}},
		},
		{
			name: "no records, signed", domain: "plain.example", signed: []string{"plain.example"}, status: "none", mx: "secure",
			hosts: []hostOf{{Name: "mx.plain.example", Status: "none", Address: "secure"}},
		},
		{
			name: "records without DNSSEC", domain: "ok.example", status: "insecure", mx: "insecure",
			hosts: []hostOf{{Name: "mx.ok.example", Base: "mx.ok.example", Status: "insecure", Address: "insecure", Records: 2, Problems: []string{"tlsa-without-dnssec _25._tcp.mx.ok.example"}}},
		},
		{
			name: "a signed host behind MX records that are not", domain: "hosted.example", signed: []string{"ok.example"}, status: "insecure", mx: "insecure",
			hosts: []hostOf{{Name: "mx.ok.example", Base: "mx.ok.example", Status: "insecure", Address: "secure", Records: 2, Problems: []string{"mx-without-dnssec _25._tcp.mx.ok.example"}}},
		},
		{
			name: "a host that is not signed behind MX records that are", domain: "hosted.example", signed: []string{"hosted.example"}, status: "insecure", mx: "secure",
			hosts: []hostOf{{Name: "mx.ok.example", Base: "mx.ok.example", Status: "insecure", Address: "insecure", Records: 2, Problems: []string{"tlsa-without-dnssec _25._tcp.mx.ok.example"}}},
		},
		{
			name: "a domain without MX records is its own host", domain: "self.example", signed: []string{"self.example"}, status: "ok", mx: "secure",
			hosts: []hostOf{{Name: "self.example", Base: "self.example", Status: "ok", Address: "secure", Records: 2}},
		},
		{name: "neither MX records nor addresses", domain: "quiet.example", status: "none", mx: "insecure"},
		{name: "a domain that does not exist", domain: "missing.example", status: "none", mx: "insecure"},
		{name: "null MX", domain: "null.example", signed: []string{"null.example"}, status: "none", mx: "secure"},
		{name: "MX records that cannot be looked up", domain: "broken.example", status: "inconclusive", mx: "unknown"},
		{
			name: "a host without an address", domain: "ghost.example", signed: []string{"ghost.example"}, status: "none", mx: "secure",
			hosts: []hostOf{{Name: "nowhere.ghost.example", Status: "none", Address: "secure", Problems: []string{"no-address nowhere.ghost.example"}}},
		},
		{
			name: "a host that cannot be looked up", domain: "lame.example", signed: []string{"lame.example"}, status: "inconclusive", mx: "secure",
			hosts: []hostOf{{Name: "mx.lame.example", Status: "inconclusive", Address: "unknown"}},
		},
		{
			name: "records that cannot be looked up", domain: "slow.example", signed: []string{"slow.example"}, status: "inconclusive", mx: "secure",
			hosts: []hostOf{{Name: "mx.slow.example", Status: "inconclusive", Address: "secure"}},
		},
		{
			name: "records that cannot be looked up do not matter where nothing is signed", domain: "slow.example", status: "none", mx: "insecure",
			hosts: []hostOf{{Name: "mx.slow.example", Status: "none", Address: "insecure"}},
		},
		{
			name: "none of the records is usable", domain: "pkix.example", signed: []string{"pkix.example"}, status: "unusable", mx: "secure",
			hosts: []hostOf{{
				Name: "mx.pkix.example", Base: "mx.pkix.example", Status: "unusable", Address: "secure", Records: 2,
				Problems: []string{"pkix-usage 0 1 1 " + digestA, "pkix-usage 1 1 1 " + digestB, "malformed _25._tcp.mx.pkix.example", "no-usable-record _25._tcp.mx.pkix.example"},
			}},
		},
		{
			name: "one of two hosts lacks records; a host listed twice counts once", domain: "part.example", signed: []string{"part.example"}, status: "mixed", mx: "secure",
			hosts: []hostOf{
				{Name: "a.part.example", Base: "a.part.example", Status: "ok", Address: "secure", Records: 2, Problems: []string{"pkix-usage 1 1 1 " + digestB, "single-record 3 1 1 " + digestA}},
				{Name: "b.part.example", Status: "none", Address: "secure", Problems: []string{"missing-tlsa _25._tcp.b.part.example"}},
			},
		},
		{
			name: "one of two hosts cannot be looked up", domain: "half.example", signed: []string{""}, status: "inconclusive", mx: "secure",
			hosts: []hostOf{
				{Name: "mx.ok.example", Base: "mx.ok.example", Status: "ok", Address: "secure", Records: 2},
				{Name: "mx.lame.example", Status: "inconclusive", Address: "unknown"},
			},
		},
		{
			name: "a signed alias leads to the base name", domain: "alias.example", signed: []string{"alias.example", "ok.example"}, status: "ok", mx: "secure",
			hosts: []hostOf{{Name: "mx.alias.example", Base: "mx.ok.example", Status: "ok", Address: "secure", Records: 2}},
		},
		{
			name: "the name itself is tried after a signed alias", domain: "both.example", signed: []string{"both.example", "plain.example"}, status: "ok", mx: "secure",
			hosts: []hostOf{{Name: "mx.both.example", Base: "mx.both.example", Status: "ok", Address: "secure", Records: 2}},
		},
		{
			name: "a signed alias to a name that is not signed", domain: "both.example", signed: []string{"both.example"}, status: "ok", mx: "secure",
			hosts: []hostOf{{Name: "mx.both.example", Base: "mx.both.example", Status: "ok", Address: "secure", Records: 2}},
		},
		{
			name: "an alias that is not signed", domain: "both.example", signed: []string{"plain.example"}, status: "insecure", mx: "insecure",
			hosts: []hostOf{{Name: "mx.both.example", Base: "mx.both.example", Status: "insecure", Address: "insecure", Records: 2, Problems: []string{"tlsa-without-dnssec _25._tcp.mx.both.example"}}},
		},
		{
			name: "records behind an alias of their own", domain: "shared.example", signed: []string{"shared.example", "ok.example"}, status: "ok", mx: "secure",
			hosts: []hostOf{{Name: "mx.shared.example", Base: "mx.shared.example", Status: "ok", Address: "secure", Records: 2}},
		},
		{
			name: "records behind an alias that leaves the signed part", domain: "shared.example", signed: []string{"shared.example"}, status: "insecure", mx: "secure",
			hosts: []hostOf{{Name: "mx.shared.example", Base: "mx.shared.example", Status: "insecure", Address: "secure", Records: 2, Problems: []string{"tlsa-without-dnssec _25._tcp.mx.shared.example"}}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			zone := dnstest.New(world)
			for _, name := range tt.signed {
				zone.Authenticate(name)
			}
			got := dane.Lookup(t.Context(), zone, tt.domain)
			if got.Domain != dns.Name(tt.domain) || got.Status.String() != tt.status || got.MX.String() != tt.mx {
				t.Errorf("got %s %v, MX %v; want %s, MX %s", got.Domain, got.Status, got.MX, tt.status, tt.mx)
			}
			if want := tt.domain == "null.example"; got.NullMX != want {
				t.Errorf("null MX: got %v want %v", got.NullMX, want)
			}
			if diff := cmp.Diff(tt.hosts, summarize(t, got.Hosts), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("hosts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLookupBoundsRecords(t *testing.T) {
	t.Parallel()
	zone := dnstest.New(world)
	for i := range 100 {
		zone.Add(dns.Record{Name: "_25._tcp.mx.ok.example", Type: dns.TLSA, Raw: append([]byte{3, 1, 1, byte(i)}, make([]byte, 31)...)})
	}
	got := dane.Lookup(t.Context(), zone, "ok.example")
	if len(got.Hosts) != 1 || len(got.Hosts[0].Records) != 20 {
		t.Errorf("got %+v, want one host with 20 records", got.Hosts)
	}
}

// summarize takes over what rows compare, and checks what holds for every host.
func summarize(t *testing.T, hosts []dane.Host) []hostOf {
	t.Helper()
	var summaries []hostOf
	for _, h := range hosts {
		s := hostOf{Name: h.Name, Base: h.BaseName, Status: h.Status.String(), Address: h.Address.String(), Records: len(h.Records)}
		for _, p := range h.Problems {
			if p.Host != h.Name {
				t.Errorf("%s: got a problem of host %q", h.Name, p.Host)
			}
			s.Problems = append(s.Problems, string(p.Kind)+" "+p.Text)
		}
		if (h.Status == dane.StatusInconclusive) != (h.Reason != "") {
			t.Errorf("%s: got status %v with reason %q", h.Name, h.Status, h.Reason)
		}
		summaries = append(summaries, s)
	}
	return summaries
}

// failing answers from a zone, but has no answer to one question.
type failing struct {
	zone     *dnstest.Zone
	question dns.Question
}

func (f failing) Resolve(ctx context.Context, q dns.Question) dns.Answer {
	if q == f.question {
		return dns.Answer{Question: q, Reason: "told to fail"}
	}
	return f.zone.Resolve(ctx, q)
}

func TestLookupNeedsTheFirstAlias(t *testing.T) {
	t.Parallel()
	zone := dnstest.New(world)
	zone.Authenticate("both.example")
	resolver := failing{zone, dns.Question{Name: "mx.both.example", Type: dns.CNAME}}
	got := dane.Lookup(t.Context(), resolver, "both.example")
	if got.Status != dane.StatusInconclusive || got.Hosts[0].Reason != "told to fail" {
		t.Errorf("got %v, reason %q; want inconclusive, told to fail", got.Status, got.Hosts[0].Reason)
	}
}

func TestLookupBoundsHosts(t *testing.T) {
	t.Parallel()
	zone := dnstest.New("")
	for i := range 25 {
		zone.Add(dns.Record{Name: "many.example", Type: dns.MX, Preference: uint16(i), Host: fmt.Sprintf("mx%02d.many.example", i)})
	}
	got := dane.Lookup(t.Context(), zone, "many.example")
	if len(got.Hosts) != 20 {
		t.Errorf("got %d hosts want 20", len(got.Hosts))
	}
	want := dane.Problem{Kind: dane.TooManyHosts, Text: "mx20.many.example"}
	if !slices.Contains(got.AllProblems(), want) {
		t.Errorf("got problems %v want %v among them", got.AllProblems(), want)
	}
}
