package spf_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/spf"
)

// TestMacros expands macros where their value can be seen: in explanations.
func TestMacros(t *testing.T) {
	t.Parallel()
	tests := []struct {
		macro string
		ip    string // 192.0.2.3 where it is empty
		want  string
	}{
		{macro: "%{s}", want: "strong-bad@email.example.com"},
		{macro: "%{l}", want: "strong-bad"},
		{macro: "%{o}", want: "email.example.com"},
		{macro: "%{d}", want: "email.example.com"},
		{macro: "%{d4}", want: "email.example.com"},
		{macro: "%{d3}", want: "email.example.com"},
		{macro: "%{d2}", want: "example.com"},
		{macro: "%{d1}", want: "com"},
		{macro: "%{dr}", want: "com.example.email"},
		{macro: "%{d2R}", want: "example.email"},
		{macro: "%{l-}", want: "strong.bad"},
		{macro: "%{lr-}", want: "bad.strong"},
		{macro: "%{l1r-}", want: "strong"},
		{macro: "%{s2r@-}", want: ""}, // the at sign is no delimiter
		{macro: "%{s1-.}", want: "com"},
		{macro: "%{h}", want: "mx.example.org"},
		{macro: "%{i}", want: "192.0.2.3"},
		{macro: "%{ir}.%{v}.arpa", want: "3.2.0.192.in-addr.arpa"},
		{macro: "%{c}", want: "192.0.2.3"},
		{macro: "%{c}", ip: "::ffff:192.0.2.3", want: "192.0.2.3"},
		{macro: "%{c}", ip: "2001:db8::cb01", want: "2001:db8::cb01"},
		{macro: "%{v}", ip: "2001:db8::cb01", want: "ip6"},
		{macro: "%{ir}", ip: "2001:db8::cb01", want: "1.0.b.c.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2"},
		{macro: "%{r}", want: "mail.example.net"},
		{macro: "%{t}", want: "1700000000"},
		{macro: "%{S}", want: "strong-bad%40email.example.com"},
		{macro: "%%|%_|%-|~", want: "%| |%20|~"},
		{macro: "%{p}", want: "unknown"},
		{macro: "%{p}", ip: "192.0.2.4", want: "mx.email.example.com"}, // below the domain
		{macro: "%{p}", ip: "192.0.2.5", want: "email.example.com"},    // the domain
		{macro: "%{p}", ip: "192.0.2.6", want: "a.example.net"},        // any other
		{macro: "Not yours, %{l}: see https://%{d}/?why=%{I}.", want: "Not yours, strong-bad: see https://email.example.com/?why=192.0.2.3."},
		// Text with an error in it is no explanation.
		{macro: "%", want: ""},
		{macro: "100% sure", want: ""},
		{macro: "%{x}", want: ""},
		{macro: "tab\there", want: ""},
		{macro: "\ttab", want: ""},
		{macro: "Näh", want: ""},
		{macro: strings.Repeat("%{s}", 1000), want: ""},
	}
	for _, tt := range tests {
		t.Run(tt.macro+tt.ip, func(t *testing.T) {
			t.Parallel()
			zone := dnstest.New(`
				email.example.com      TXT "v=spf1 -all exp=why.example.com."
				email.example.com      A   192.0.2.5
				mx.email.example.com   A   192.0.2.4
				mx.email.example.com   A   192.0.2.5
				a.example.net          A   192.0.2.4
				a.example.net          A   192.0.2.5
				a.example.net          A   192.0.2.6
				3.2.0.192.in-addr.arpa PTR a.example.net
				4.2.0.192.in-addr.arpa PTR a.example.net
				4.2.0.192.in-addr.arpa PTR mx.email.example.com
				5.2.0.192.in-addr.arpa PTR a.example.net
				5.2.0.192.in-addr.arpa PTR mx.email.example.com
				5.2.0.192.in-addr.arpa PTR email.example.com
				6.2.0.192.in-addr.arpa PTR b.example.net
				6.2.0.192.in-addr.arpa PTR a.example.net`)
			zone.Add(dns.Record{Name: "why.example.com", Type: dns.TXT, Text: []string{tt.macro}})
			ip := "192.0.2.3"
			if tt.ip != "" {
				ip = tt.ip
			}
			v := spf.Check(context.Background(), zone, spf.Identity{
				IP: netip.MustParseAddr(ip), Helo: "mx.example.org", MailFrom: "strong-bad@email.example.com",
				Receiver: "mail.example.net", Time: time.Unix(1_700_000_000, 0),
			})
			if v.Result != spf.Fail || v.Explanation != tt.want {
				t.Errorf("got %v %q, want fail %q", v.Result, v.Explanation, tt.want)
			}
		})
	}
}

func TestMacrosInNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("abcdefghi.", 24) + "example" // 247 bytes
	tests := []struct {
		name     string
		term     string
		mailFrom string
		asked    string
	}{
		{"in lower case without a final dot", "exists:%{l}.B.example.", "User@example.com", "user.b.example"},
		{"a field before the first delimiter is empty", "exists:%{l1-}.b.example", "-a@example.com", "a.b.example"},
		{"URL escape", "exists:%{L}.b.example", "a&b@example.com", "a%26b.b.example"},
		{"odd characters are asked for", "exists:a%_b%%:/.b.example", "u@example.com", "a b%:/.b.example"},
		{"labels are dropped until it fits", "exists:x.yy.zzz.%{l}", long + "@example.com", "zzz." + long},
		{"in a", "a:%{l}.b.example", "u@example.com", "u.b.example"},
		{"in mx", "mx:%{l}.b.example", "u@example.com", "u.b.example"},
		{"in include", "include:%{l}.b.example", "u@example.com", "u.b.example"},
		{"in redirect", "redirect=%{l}.b.example", "u@example.com", "u.b.example"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			zone := dnstest.New("")
			zone.Add(dns.Record{Name: "example.com", Type: dns.TXT, Text: []string{"v=spf1 " + tt.term}})
			spf.Check(context.Background(), zone, spf.Identity{
				IP: netip.MustParseAddr("192.0.2.1"), MailFrom: tt.mailFrom,
			})
			asked := zone.Asked()
			if got := asked[len(asked)-1].Name; got != tt.asked {
				t.Errorf("got the question for %q, want %q", got, tt.asked)
			}
		})
	}
}

// TestNamesThatCannotBeAsked makes macros produce what is no name.
func TestNamesThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	for _, local := range []string{"a..b", strings.Repeat("a", 64), "new\nline", "ü", strings.Repeat("a", 20_000)} {
		zone := dnstest.New(`example.com TXT "v=spf1 exists:%{l}.b.example ~all"`)
		v := spf.Check(context.Background(), zone, spf.Identity{
			IP: netip.MustParseAddr("192.0.2.1"), MailFrom: local + "@example.com",
		})
		if v.Result != spf.SoftFail || len(zone.Asked()) != 1 {
			t.Errorf("%.20q: got %v and %d questions, want softfail and 1", local, v.Result, len(zone.Asked()))
		}
	}
}

// TestLongNameOfOneLabel has nothing that could be dropped to make it fit.
func TestLongNameOfOneLabel(t *testing.T) {
	t.Parallel()
	zone := dnstest.New(`example.com TXT "v=spf1 exists:%{l} ~all"`)
	v := spf.Check(context.Background(), zone, spf.Identity{
		IP: netip.MustParseAddr("192.0.2.1"), MailFrom: strings.Repeat("a", 300) + "@example.com",
	})
	if v.Result != spf.SoftFail || len(zone.Asked()) != 1 {
		t.Errorf("got %v and %d questions, want softfail and 1", v.Result, len(zone.Asked()))
	}
}

func TestReceiverMayBeUnknown(t *testing.T) {
	t.Parallel()
	zone := dnstest.New("example.com TXT \"v=spf1 -all exp=w.example\"\nw.example TXT \"%{r}\"")
	v := spf.Check(context.Background(), zone, spf.Identity{
		IP: netip.MustParseAddr("192.0.2.1"), MailFrom: "user@example.com",
	})
	if v.Explanation != "unknown" {
		t.Errorf("got %q, want unknown", v.Explanation)
	}
}

func TestExplanationText(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		zone string
		want string
	}{
		{"strings of one record are joined", `example.com TXT "v=spf1 -all exp=w.example"
			w.example TXT "Sorry, " "no."`, "Sorry, no."},
		{"two records are none", `example.com TXT "v=spf1 -all exp=w.example"
			w.example TXT "a"
			w.example TXT "b"`, ""},
		{"no record", `example.com TXT "v=spf1 -all exp=w.example"`, ""},
		{"no answer", `example.com TXT "v=spf1 -all exp=w.example"
			w.example INCONCLUSIVE`, ""},
		{"not for a softfail", `example.com TXT "v=spf1 ~all exp=w.example"
			w.example TXT "a"`, ""},
		{"that of an include is not used", `example.com TXT "v=spf1 include:b.example -all"
			b.example TXT "v=spf1 -all exp=w.example"
			w.example TXT "a"`, ""},
		{"that of a redirect replaces the own", `example.com TXT "v=spf1 exp=w.example redirect=b.example"
			b.example TXT "v=spf1 -all exp=%{d1}.w.example"
			w.example TXT "own"
			example.w.example TXT "%{d} of %{o}"`, "b.example of example.com"},
		{"a redirect without one has none", `example.com TXT "v=spf1 exp=w.example redirect=b.example"
			b.example TXT "v=spf1 -all"
			w.example TXT "own"`, ""},
		{"a name that cannot be asked for", `example.com TXT "v=spf1 -all exp=a..example"`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := spf.Check(context.Background(), dnstest.New(tt.zone), spf.Identity{
				IP: netip.MustParseAddr("192.0.2.1"), MailFrom: "user@example.com",
			})
			if v.Explanation != tt.want {
				t.Errorf("got %q, want %q", v.Explanation, tt.want)
			}
		})
	}
}
