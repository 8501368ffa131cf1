package dnstest_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
)

const world = `
; comments and blank lines are passed over

_dmarc.example.com.   TXT   "v=DMARC1; " "p=none" ; two strings, one record
_dmarc.example.com    TXT   "say \"hi\" \\ there"
Example.COM       60  MX    10 Mail.Example.com.
null.example.com      MX    0 .
mail.example.com      A     192.0.2.1
mail.example.com      AAAA  2001:db8::1
example.com           NS    ns.example.com
1.2.0.192.in-addr.arpa PTR  mail.example.com
_25._tcp.mail.example.com TLSA 030101 00ff
www.example.com    30 CNAME mail.example.com
dangling.example.com  CNAME nowhere.example.com
loop.example.com      CNAME loop.example.com
old.example           DNAME example.com
*.wild.example        TXT   "anything"
host.wild.example     A     192.0.2.2
slow.example.com      INCONCLUSIVE
odd.example.com       MX    INCONCLUSIVE
odd.example.com       A     192.0.2.3
alias.example.com     CNAME slow.example.com
`

func TestZoneResolve(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		ask     dns.Question
		want    dns.Outcome
		texts   []string
		aliases []string
	}{
		{name: "strings of a record are joined, records are not", ask: dns.Question{Name: "_dmarc.example.com", Type: dns.TXT}, want: dns.Data, texts: []string{"v=DMARC1; p=none", `say "hi" \ there`}},
		{name: "another type at a name", ask: dns.Question{Name: "_dmarc.example.com", Type: dns.A}, want: dns.NoData},
		{name: "an empty non-terminal exists", ask: dns.Question{Name: "_tcp.mail.example.com", Type: dns.TXT}, want: dns.NoData},
		{name: "the top exists when something is below it", ask: dns.Question{Name: "com", Type: dns.TXT}, want: dns.NoData},
		{name: "a name that is not there", ask: dns.Question{Name: "nope.example.com", Type: dns.TXT}, want: dns.NoSuchName},
		{name: "a top that is not there", ask: dns.Question{Name: "org", Type: dns.TXT}, want: dns.NoSuchName},
		{name: "an alias is followed", ask: dns.Question{Name: "www.example.com", Type: dns.A}, want: dns.Data, aliases: []string{"mail.example.com"}},
		{name: "an alias to a name without the type", ask: dns.Question{Name: "www.example.com", Type: dns.TXT}, want: dns.NoData, aliases: []string{"mail.example.com"}},
		{name: "an alias asked for is not followed", ask: dns.Question{Name: "www.example.com", Type: dns.CNAME}, want: dns.Data},
		{name: "an alias that leads nowhere", ask: dns.Question{Name: "dangling.example.com", Type: dns.A}, want: dns.NoSuchName, aliases: []string{"nowhere.example.com"}},
		{name: "a DNAME redirects what is below it", ask: dns.Question{Name: "mail.old.example", Type: dns.A}, want: dns.Data, aliases: []string{"mail.example.com"}},
		{name: "a DNAME leaves its own name alone", ask: dns.Question{Name: "old.example", Type: dns.A}, want: dns.NoData},
		{name: "a wildcard stands in", ask: dns.Question{Name: "a.b.wild.example", Type: dns.TXT}, want: dns.Data, texts: []string{"anything"}},
		{name: "a wildcard without the type", ask: dns.Question{Name: "a.wild.example", Type: dns.MX}, want: dns.NoData},
		{name: "a wildcard does not stand in for a name that exists", ask: dns.Question{Name: "host.wild.example", Type: dns.TXT}, want: dns.NoData},
		{name: "a wildcard does not stand in below a name that exists", ask: dns.Question{Name: "a.host.wild.example", Type: dns.TXT}, want: dns.NoSuchName},
		{name: "a name that cannot be looked up", ask: dns.Question{Name: "slow.example.com", Type: dns.A}, want: dns.Inconclusive},
		{name: "a type that cannot be looked up", ask: dns.Question{Name: "odd.example.com", Type: dns.MX}, want: dns.Inconclusive},
		{name: "the other types of it can", ask: dns.Question{Name: "odd.example.com", Type: dns.A}, want: dns.Data},
		{name: "an alias to a name that cannot be looked up", ask: dns.Question{Name: "alias.example.com", Type: dns.A}, want: dns.Inconclusive, aliases: []string{"slow.example.com"}},
		{name: "names are asked in any case", ask: dns.Question{Name: "MAIL.example.com.", Type: dns.A}, want: dns.Data},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := dnstest.New(world).Resolve(t.Context(), tt.ask)
			if a.Outcome != tt.want {
				t.Errorf("outcome: got %v want %v", a.Outcome, tt.want)
			}
			if (a.Outcome == dns.Data) != (len(a.Records) > 0) {
				t.Errorf("got %d records with outcome %v", len(a.Records), a.Outcome)
			}
			if (a.Outcome == dns.Inconclusive) != (a.Reason != "") {
				t.Errorf("got reason %q with outcome %v", a.Reason, a.Outcome)
			}
			if got := a.Texts(); !slices.Equal(got, tt.texts) {
				t.Errorf("texts: got %q want %q", got, tt.texts)
			}
			if !slices.Equal(a.Aliases, tt.aliases) {
				t.Errorf("aliases: got %q want %q", a.Aliases, tt.aliases)
			}
			if a.Question != tt.ask {
				t.Errorf("question: got %v want %v", a.Question, tt.ask)
			}
		})
	}
}

func TestZoneRecords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		ask  dns.Question
		want dns.Record
	}{
		{"A", dns.Question{Name: "mail.example.com", Type: dns.A}, dns.Record{Name: "mail.example.com", Type: dns.A, TTL: time.Hour, Addr: netip.MustParseAddr("192.0.2.1")}},
		{"AAAA", dns.Question{Name: "mail.example.com", Type: dns.AAAA}, dns.Record{Name: "mail.example.com", Type: dns.AAAA, TTL: time.Hour, Addr: netip.MustParseAddr("2001:db8::1")}},
		{"MX with a TTL", dns.Question{Name: "example.com", Type: dns.MX}, dns.Record{Name: "example.com", Type: dns.MX, TTL: time.Minute, Preference: 10, Host: "mail.example.com"}},
		{"null MX", dns.Question{Name: "null.example.com", Type: dns.MX}, dns.Record{Name: "null.example.com", Type: dns.MX, TTL: time.Hour}},
		{"NS", dns.Question{Name: "example.com", Type: dns.NS}, dns.Record{Name: "example.com", Type: dns.NS, TTL: time.Hour, Host: "ns.example.com"}},
		{"PTR", dns.Question{Name: "1.2.0.192.in-addr.arpa", Type: dns.PTR}, dns.Record{Name: "1.2.0.192.in-addr.arpa", Type: dns.PTR, TTL: time.Hour, Host: "mail.example.com"}},
		{"TLSA in hexadecimal", dns.Question{Name: "_25._tcp.mail.example.com", Type: dns.TLSA}, dns.Record{Name: "_25._tcp.mail.example.com", Type: dns.TLSA, TTL: time.Hour, Raw: []byte{3, 1, 1, 0, 0xff}}},
		{"a wildcard's record bears the name asked for", dns.Question{Name: "x.wild.example", Type: dns.TXT}, dns.Record{Name: "x.wild.example", Type: dns.TXT, TTL: time.Hour, Text: []string{"anything"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := dnstest.New(world).Resolve(t.Context(), tt.ask)
			if diff := cmp.Diff([]dns.Record{tt.want}, a.Records, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

func TestZoneTTL(t *testing.T) {
	t.Parallel()
	z := dnstest.New(world)
	for _, tt := range []struct {
		name string
		ask  dns.Question
		want time.Duration
	}{
		{"of the record", dns.Question{Name: "example.com", Type: dns.MX}, time.Minute},
		{"of the alias when it is smaller", dns.Question{Name: "www.example.com", Type: dns.A}, 30 * time.Second},
		{"of a missing name", dns.Question{Name: "nope.example.com", Type: dns.A}, 5 * time.Minute},
		{"of no answer", dns.Question{Name: "slow.example.com", Type: dns.A}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := z.Resolve(t.Context(), tt.ask).TTL; got != tt.want {
				t.Errorf("got %v want %v", got, tt.want)
			}
		})
	}
}

func TestZoneGivesUpOnLoops(t *testing.T) {
	t.Parallel()
	a := dnstest.New(world).Resolve(t.Context(), dns.Question{Name: "loop.example.com", Type: dns.A})
	if a.Outcome != dns.Inconclusive || a.Reason != "too many aliases" {
		t.Errorf("got %v %q want inconclusive, too many aliases", a.Outcome, a.Reason)
	}
}

func TestZoneStopsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := dnstest.New(world).Resolve(ctx, dns.Question{Name: "example.com", Type: dns.MX})
	if a.Outcome != dns.Inconclusive || a.Reason != context.Canceled.Error() {
		t.Errorf("got %v %q want inconclusive, %v", a.Outcome, a.Reason, context.Canceled)
	}
}

func TestZoneAsked(t *testing.T) {
	t.Parallel()
	z := dnstest.New(world)
	want := []dns.Question{{Name: "www.example.com", Type: dns.A}, {Name: "com", Type: dns.NS}}
	for _, q := range want {
		z.Resolve(t.Context(), q)
	}
	if got := z.Asked(); !slices.Equal(got, want) {
		t.Errorf("got %v want %v", got, want)
	}
}

func TestZoneAuthenticate(t *testing.T) {
	t.Parallel()
	z := dnstest.New(`
signed.example    TXT   "x"
here.signed.example CNAME signed.example
out.signed.example  CNAME plain.example
plain.example     TXT   "y"`)
	z.Authenticate("signed.example")
	for name, want := range map[string]bool{
		"signed.example":      true,
		"here.signed.example": true,
		"none.signed.example": true,
		"out.signed.example":  false,
		"plain.example":       false,
	} {
		if got := z.Resolve(t.Context(), dns.Question{Name: name, Type: dns.TXT}).Authentic; got != want {
			t.Errorf("%s: got authentic %v want %v", name, got, want)
		}
	}
}

func TestNewPanicsOnBadText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, line, want string }{
		{"unknown type", `example.com WKS 1`, "unknown type"},
		{"no data", `example.com A`, "want name, type and data"},
		{"name only", `example.com`, "want name, type and data"},
		{"open quote", `example.com TXT "abc`, "does not end"},
		{"unquoted text", `example.com TXT abc`, "not quoted"},
		{"address of the other family", `example.com A 2001:db8::1`, "other family"},
		{"bad address", `example.com A 192.0.2`, "read address"},
		{"MX without a preference", `example.com MX mail.example.com`, "want name, type and data"},
		{"bad preference", `example.com MX x mail.example.com`, "read preference"},
		{"bad hexadecimal", `example.com DS xyz`, "read hexadecimal"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if got, _ := recover().(string); !strings.Contains(got, tt.want) {
					t.Errorf("got panic %q want one with %q", got, tt.want)
				}
			}()
			dnstest.New(tt.line)
		})
	}
}
