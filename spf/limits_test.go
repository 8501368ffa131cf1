package spf_test

import (
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/spf"
)

// TestLimits holds the processing limits of RFC 7208 §4.6.4.
func TestLimits(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		record  string
		zone    string
		ip      string
		want    spf.Result
		kind    spf.Kind
		lookups int
		voids   int
	}{
		{
			name:   "ten terms",
			record: "v=spf1 a mx a mx a mx a mx a ptr ip4:192.0.2.1 -all",
			zone:   "example.com A 198.51.100.1\nexample.com MX 1 example.com",
			want:   spf.Pass, lookups: 10, voids: 1,
		},
		{
			name:   "eleven terms",
			record: "v=spf1 a mx a mx a mx a mx a ptr a ip4:192.0.2.1 -all",
			zone:   "example.com A 198.51.100.1\nexample.com MX 1 example.com",
			want:   spf.PermError, kind: spf.LookupLimit, lookups: 10, voids: 1,
		},
		{
			name:   "eleven times mx",
			record: "v=spf1 mx mx mx mx mx mx mx mx mx mx mx -all",
			zone:   "example.com MX 1 .",
			want:   spf.PermError, kind: spf.LookupLimit, lookups: 10,
		},
		{
			name:   "eleven times ptr",
			record: "v=spf1 ptr ptr ptr ptr ptr ptr ptr ptr ptr ptr ptr -all",
			zone:   "1.2.0.192.in-addr.arpa PTR a.example",
			want:   spf.PermError, kind: spf.LookupLimit, lookups: 10,
		},
		{
			name:   "the limit holds over all records",
			record: "v=spf1 include:b.example include:b.example include:b.example include:b.example ip4:192.0.2.1 -all",
			zone:   "b.example TXT \"v=spf1 a a -all\"\nb.example A 198.51.100.1",
			want:   spf.PermError, kind: spf.LookupLimit, lookups: 10,
		},
		{
			name:   "what is not reached does not count",
			record: "v=spf1 ip4:192.0.2.1 a a a a a a a a a a a -all",
			want:   spf.Pass,
		},
		{
			name:   "redirect counts",
			record: "v=spf1 a a a a a a a a a a redirect=b.example",
			zone:   "example.com A 198.51.100.1\nb.example TXT \"v=spf1 -all\"",
			want:   spf.PermError, kind: spf.LookupLimit, lookups: 10,
		},
		{
			name:   "exp does not count",
			record: "v=spf1 a a a a a a a a a a -all exp=why.example.com",
			zone:   "example.com A 198.51.100.1",
			want:   spf.Fail, lookups: 10,
		},
		{
			name:   "the macro p asks once more",
			record: "v=spf1 a a a a a a a a a exists:%{p}.example ip4:192.0.2.1 -all",
			zone:   "example.com A 198.51.100.1",
			want:   spf.PermError, kind: spf.LookupLimit, lookups: 10,
		},
		{
			name:   "a loop of includes",
			record: "v=spf1 include:b.example -all",
			zone:   `b.example TXT "v=spf1 include:example.com -all"`,
			want:   spf.PermError, kind: spf.LookupLimit, lookups: 10,
		},
		{
			name:   "two void lookups",
			record: "v=spf1 a:x.example exists:y.example ?all",
			want:   spf.Neutral, lookups: 2, voids: 2,
		},
		{
			name:   "three void lookups",
			record: "v=spf1 a:x.example mx:y.example exists:z.example ?all",
			want:   spf.PermError, kind: spf.VoidLimit, lookups: 3, voids: 3,
		},
		{
			name:   "an include of a name that does not exist is void",
			record: "v=spf1 include:b.example -all",
			want:   spf.PermError, kind: spf.NoSuchName, lookups: 1, voids: 1,
		},
		{
			name:   "an include of a name without TXT records is void",
			record: "v=spf1 include:b.example -all", zone: "b.example A 192.0.2.1",
			want: spf.PermError, kind: spf.NoRecord, lookups: 1, voids: 1,
		},
		{
			name:   "an include of a name with other TXT records is not",
			record: "v=spf1 include:b.example -all", zone: `b.example TXT "hello"`,
			want: spf.PermError, kind: spf.NoRecord, lookups: 1,
		},
		{
			name:   "a client without a name makes ptr void",
			record: "v=spf1 ptr:a.example ptr:b.example ptr:c.example ?all",
			want:   spf.PermError, kind: spf.VoidLimit, lookups: 3, voids: 3,
		},
		{
			name:   "a name without the type is void too",
			record: "v=spf1 a:x.example a:x.example a:x.example ?all",
			zone:   "x.example A 198.51.100.1", ip: "2001:db8::1",
			want: spf.PermError, kind: spf.VoidLimit, lookups: 3, voids: 3,
		},
		{
			name:   "exchangers without an address are not void terms",
			record: "v=spf1 mx ?all",
			zone:   "example.com MX 1 a.example\nexample.com MX 2 b.example\nexample.com MX 3 c.example",
			want:   spf.Neutral, lookups: 1,
		},
		{
			name:   "nor are the names of the client",
			record: "v=spf1 ptr ?all",
			zone: "1.2.0.192.in-addr.arpa PTR a.example.com\n1.2.0.192.in-addr.arpa PTR b.example.com\n" +
				"1.2.0.192.in-addr.arpa PTR c.example.com",
			want: spf.Neutral, lookups: 1,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			zone := dnstest.New(tt.zone)
			zone.Add(dns.Record{Name: "example.com", Type: dns.TXT, Text: []string{tt.record}})
			ip := netip.MustParseAddr("192.0.2.1")
			if tt.ip != "" {
				ip = netip.MustParseAddr(tt.ip)
			}
			v := spf.Check(context.Background(), zone, spf.Identity{IP: ip, MailFrom: "user@example.com"})
			var kind spf.Kind
			if v.Problem != nil {
				kind = v.Problem.Kind
			}
			if v.Result != tt.want || kind != tt.kind {
				t.Errorf("got %v %q, want %v %q", v.Result, kind, tt.want, tt.kind)
			}
			family := map[bool]spf.Family{true: spf.IPv4, false: spf.IPv6}[ip.Is4()]
			if kind == spf.VoidLimit && v.Problem.Family != family {
				t.Errorf("got the limit for %v, want %v", v.Problem.Family, family)
			}
			if v.Lookups != tt.lookups || v.Voids != tt.voids {
				t.Errorf("got %d lookups and %d voids, want %d and %d", v.Lookups, v.Voids, tt.lookups, tt.voids)
			}
		})
	}
}

func TestExchangerLimit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		exchangers int
		ip         string
		want       spf.Result
	}{
		{"ten of them", 10, "192.0.2.10", spf.Pass},
		{"ten without a match", 10, "192.0.2.99", spf.Fail},
		{"eleven with an early match", 11, "192.0.2.1", spf.Pass},
		{"eleven, the last one matches", 11, "192.0.2.11", spf.PermError},
		{"eleven without a match", 11, "192.0.2.99", spf.PermError},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			zone := dnstest.New(`example.com TXT "v=spf1 mx -all"`)
			// The answer comes in the wrong order: preference decides.
			for n := tt.exchangers; n > 0; n-- {
				host := fmt.Sprintf("mx%d.example.com", n)
				zone.Add(
					dns.Record{Name: "example.com", Type: dns.MX, Preference: uint16(n), Host: host},
					addressRecord(host, netip.MustParseAddr(fmt.Sprintf("192.0.2.%d", n))),
				)
			}
			v := spf.Check(context.Background(), zone, spf.Identity{
				IP: netip.MustParseAddr(tt.ip), MailFrom: "user@example.com",
			})
			if v.Result != tt.want {
				t.Errorf("got %v, want %v", v.Result, tt.want)
			}
			if tt.want == spf.PermError && (v.Problem.Kind != spf.MXLimit || v.Problem.Count != 11) {
				t.Errorf("got problem %+v, want %s with 11", v.Problem, spf.MXLimit)
			}
		})
	}
}

func TestOnlyTenNamesOfTheClientCount(t *testing.T) {
	t.Parallel()
	zone := dnstest.New("example.com TXT \"v=spf1 ptr -all\"\nexample.com A 192.0.2.1")
	for n := range 10 {
		zone.Add(dns.Record{Name: "1.2.0.192.in-addr.arpa", Type: dns.PTR, Host: fmt.Sprintf("n%d.example.net", n)})
	}
	zone.Add(dns.Record{Name: "1.2.0.192.in-addr.arpa", Type: dns.PTR, Host: "example.com"})
	v := spf.Check(context.Background(), zone, spf.Identity{
		IP: netip.MustParseAddr("192.0.2.1"), MailFrom: "user@example.com",
	})
	if v.Result != spf.Fail {
		t.Errorf("got %v, want fail: the eleventh name is ignored", v.Result)
	}
}

// TestQuestionsAreBounded holds the number that the documentation of Check
// promises, with a domain that makes every term as expensive as it can be.
func TestQuestionsAreBounded(t *testing.T) {
	t.Parallel()
	zone := dnstest.New(`why.example.com TXT "%{p}"`)
	zone.Add(dns.Record{Name: "example.com", Type: dns.TXT, Text: []string{
		"v=spf1" + strings.Repeat(" mx", 10) + " exp=why.example.com -all",
	}})
	for n := range 10 {
		zone.Add(
			dns.Record{Name: "example.com", Type: dns.MX, Host: fmt.Sprintf("mx%d.example.com", n)},
			dns.Record{Name: "1.2.0.192.in-addr.arpa", Type: dns.PTR, Host: fmt.Sprintf("n%d.example.net", n)},
		)
	}
	v := spf.Check(context.Background(), zone, spf.Identity{
		IP: netip.MustParseAddr("192.0.2.1"), MailFrom: "user@example.com",
	})
	if got := len(zone.Asked()); got != 123 || v.Explanation != "unknown" {
		t.Errorf("got %d questions and explanation %q, want 123 and unknown", got, v.Explanation)
	}
}

// slowZone answers later the earlier a question comes, and notes how many
// questions were open at a time.
type slowZone struct {
	*dnstest.Zone

	mu         sync.Mutex
	asked      int
	open, most int
}

func (z *slowZone) Resolve(ctx context.Context, q dns.Question) dns.Answer {
	z.mu.Lock()
	z.asked++
	delay := time.Second / time.Duration(z.asked)
	z.open++
	z.most = max(z.most, z.open)
	z.mu.Unlock()
	time.Sleep(delay)
	z.mu.Lock()
	z.open--
	z.mu.Unlock()
	return z.Zone.Resolve(ctx, q)
}

// wideZone has n records beside one another, each with lookups of its own.
func wideZone(n int) *dnstest.Zone {
	zone := dnstest.New("")
	record := "v=spf1"
	for i := range n {
		name := fmt.Sprintf("n%d.example", i)
		record += " include:" + name
		zone.Add(
			dns.Record{Name: name, Type: dns.TXT, Text: []string{"v=spf1 a mx include:n0.example -all"}},
			dns.Record{Name: name, Type: dns.MX, Host: "mx." + name},
		)
	}
	zone.Add(dns.Record{Name: "example.com", Type: dns.TXT, Text: []string{record + " -all"}})
	return zone
}

// TestExplainIsDeterministic asks one question at a time, and then many whose
// answers come out of order, with a budget that does not reach for all.
func TestExplainIsDeterministic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := spf.Limits{Questions: 50, Concurrency: 1}
		want := spf.Explain(context.Background(), wideZone(20), "example.com", limits)
		limits.Concurrency = 7
		zone := &slowZone{Zone: wideZone(20)}
		got := spf.Explain(context.Background(), zone, "example.com", limits)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got another explanation:\n%s\nwant\n%s", sketch(got), sketch(want))
		}
		if zone.most != 7 || zone.asked != 50 {
			t.Errorf("got %d questions, %d at a time, want 50 and 7", zone.asked, zone.most)
		}
	})
}

func TestExplainStopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	x := spf.Explain(ctx, wideZone(3), "example.com", spf.Limits{})
	if x.Status != spf.StatusInconclusive || x.Questions != 1 {
		t.Errorf("got %q after %d questions, want inconclusive after 1", x.Status, x.Questions)
	}
}
