package spf_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/spf"
)

// sketch draws the tree of an explanation, a term on a line: running lookups,
// running void lookups of both families, the term, and what is to be said.
func sketch(x spf.Explanation) string {
	var b strings.Builder
	var draw func(n *spf.Node, indent string)
	draw = func(n *spf.Node, indent string) {
		fmt.Fprintf(&b, "%s%s %s\n", indent, n.Domain, n.Status)
		for _, s := range n.Terms {
			fmt.Fprintf(&b, "%s  %d %d/%d %s", indent, s.Lookups, s.Voids.IPv4, s.Voids.IPv6, s.Term.Text)
			for _, r := range s.Ranges {
				fmt.Fprintf(&b, " %s", r)
			}
			for _, mark := range []struct {
				output bool
				word   string
			}{{s.Dynamic, "dynamic"}, {s.Ignored, "ignored"}, {s.Loop, "loop"}, {s.Repeated, "repeated"}} {
				if mark.output {
					b.WriteString(" " + mark.word)
				}
			}
			if s.Cost > 1 {
				fmt.Fprintf(&b, " cost %d", s.Cost)
			}
			if s.Truncated != "" {
				fmt.Fprintf(&b, " truncated by %s", s.Truncated)
			}
			b.WriteString("\n")
			if s.Child != nil {
				draw(s.Child, indent+"    ")
			}
		}
	}
	draw(x.Root, "")
	return b.String()
}

// trim removes the indentation of the first line from all lines.
func trim(s string) string {
	lines := strings.Split(strings.Trim(s, "\n\t"), "\n")
	for i := range lines {
		lines[i] = strings.TrimLeft(lines[i], "\t")
	}
	return strings.Join(lines, "\n") + "\n"
}

func TestExplainTree(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		zone string
		want string
	}{
		{
			name: "every kind of term",
			zone: `
				example.com      TXT  "v=spf1 mx a:www.example.com/24 include:b.example ip4:192.0.2.9/28 ptr exists:%{ir}.x.example exists:x.example -all"
				example.com      MX   20 mx2.example.com
				example.com      MX   10 mx1.example.com
				mx1.example.com  A    198.51.100.1
				mx1.example.com  AAAA 2001:db8::1
				mx2.example.com  A    198.51.100.2
				www.example.com  A    203.0.113.5
				b.example        TXT  "v=spf1 include:c.example a:c.example ~all"
				c.example        TXT  "v=spf1 ip6:2001:db8:c::/48"
				x.example        A    127.0.0.2`,
			want: `
				example.com ok
				  1 0/0 mx 198.51.100.1/32 2001:db8::1/128 198.51.100.2/32
				  2 0/1 a:www.example.com/24 203.0.113.0/24
				  5 1/2 include:b.example cost 3
				    b.example ok
				      4 0/1 include:c.example
				        c.example ok
				          4 0/1 ip6:2001:db8:c::/48 2001:db8:c::/48
				      5 1/2 a:c.example
				      5 1/2 ~all
				  5 1/2 ip4:192.0.2.9/28 192.0.2.0/28
				  6 1/2 ptr dynamic
				  7 1/2 exists:%{ir}.x.example dynamic
				  8 1/2 exists:x.example
				  8 1/2 -all`,
		},
		{
			name: "redirect is counted last, and not beside all",
			zone: `
				example.com TXT "v=spf1 redirect=b.example a"
				example.com A   192.0.2.1
				b.example   TXT "v=spf1 redirect=c.example exp=d.example -all mx"`,
			want: `
				example.com ok
				  2 0/1 redirect=b.example
				    b.example ok
				      0 0/0 redirect=c.example ignored
				      2 0/1 exp=d.example
				      2 0/1 -all
				      0 0/0 mx ignored
				  1 0/1 a 192.0.2.1/32`,
		},
		{
			name: "macros for the domain are static",
			zone: `
				example.com           TXT "v=spf1 include:_spf.%{d} -all"
				_spf.example.com      TXT "v=spf1 include:%{d2}.x.example include:%{o}.y.example include:%{l}.z.example exists:%{p}.example"
				example.com.x.example TXT "v=spf1"
				example.com.y.example TXT "v=spf1"`,
			want: `
				example.com ok
				  6 0/0 include:_spf.%{d} cost 6
				    _spf.example.com ok
				      2 0/0 include:%{d2}.x.example
				        example.com.x.example ok
				      3 0/0 include:%{o}.y.example
				        example.com.y.example ok
				      4 0/0 include:%{l}.z.example dynamic
				      6 0/0 exists:%{p}.example dynamic cost 2
				  6 0/0 -all`,
		},
		{
			name: "a record that is included twice is shown once and counted twice",
			zone: `
				example.com TXT "v=spf1 include:b.example include:c.example -all"
				b.example   TXT "v=spf1 include:c.example"
				c.example   TXT "v=spf1 exists:d.example"`,
			want: `
				example.com ok
				  3 1/1 include:b.example cost 3
				    b.example ok
				      3 1/1 include:c.example repeated cost 2
				  5 2/2 include:c.example cost 2
				    c.example ok
				      5 2/2 exists:d.example
				  5 2/2 -all`,
		},
		{
			name: "loops, also those across branches",
			zone: `
				example.com TXT "v=spf1 include:example.com include:b.example include:c.example -all"
				b.example   TXT "v=spf1 include:c.example"
				c.example   TXT "v=spf1 include:b.example"`,
			want: `
				example.com ok
				  1 0/0 include:example.com loop
				  4 0/0 include:b.example cost 3
				    b.example ok
				      4 0/0 include:c.example repeated cost 2
				  6 0/0 include:c.example cost 2
				    c.example ok
				      6 0/0 include:b.example loop
				  6 0/0 -all`,
		},
		{
			name: "what cannot be evaluated",
			zone: `
				example.com TXT "v=spf1 include:a.example include:b.example include:c.example include:d.example include:e.example redirect=%{d1}"
				a.example   A   192.0.2.1
				b.example   TXT "v=spf1 moo a -all"
				b.example   A   192.0.2.1
				c.example   TXT "v=spf1 -all"
				c.example   TXT "v=spf1 +all"
				d.example   TXT INCONCLUSIVE`,
			want: `
				example.com ok
				  1 1/1 include:a.example
				    a.example none
				  3 1/2 include:b.example cost 2
				    b.example permerror
				      2 1/1 moo
				      3 1/2 a 192.0.2.1/32
				      3 1/2 -all
				  4 1/2 include:c.example
				    c.example multiple
				  5 1/2 include:d.example
				    d.example inconclusive
				  6 2/3 include:e.example
				    e.example none
				  7 2/3 redirect=%{d1}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := spf.Explain(context.Background(), dnstest.New(tt.zone), "Example.COM.", spf.Limits{})
			if diff := cmp.Diff(trim(tt.want), sketch(x)); diff != "" {
				t.Errorf("tree (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExplainStatus(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		zone string
		want spf.Status
	}{
		{"ok", `example.com TXT "v=spf1 -all"`, spf.StatusOK},
		{"no such name", ``, spf.StatusNone},
		{"no record", `example.com TXT "hello"`, spf.StatusNone},
		{"two records", "example.com TXT \"v=spf1 -all\"\nexample.com TXT \"v=spf1\"", spf.StatusMultiple},
		{"no answer", `example.com INCONCLUSIVE`, spf.StatusInconclusive},
		{"an error of syntax", `example.com TXT "v=spf1 moo -all"`, spf.StatusPermError},
		{"an error of syntax below", "example.com TXT \"v=spf1 include:b.example -all\"\nb.example TXT \"v=spf1 moo\"", spf.StatusPermError},
		{"an error in what is ignored", `example.com TXT "v=spf1 -all include:b.example"`, spf.StatusOK},
		{"include of nothing", `example.com TXT "v=spf1 include:b.example -all"`, spf.StatusPermError},
		{"include of no name", `example.com TXT "v=spf1 include:b..example -all"`, spf.StatusPermError},
		{"a of no name", `example.com TXT "v=spf1 a:b..example -all"`, spf.StatusOK},
		{"include that does not answer", "example.com TXT \"v=spf1 include:b.example -all\"\nb.example INCONCLUSIVE", spf.StatusInconclusive},
		{"a that does not answer", "example.com TXT \"v=spf1 a:b.example -all\"\nb.example INCONCLUSIVE", spf.StatusInconclusive},
		{"a certain error beats what does not answer", "example.com TXT \"v=spf1 a:b.example include:c.example -all\"\nb.example INCONCLUSIVE", spf.StatusPermError},
		{"loop", `example.com TXT "v=spf1 include:example.com -all"`, spf.StatusPermError},
		{"ten lookups", "example.com TXT \"v=spf1 a a a a a a a a a a -all\"\nexample.com A 192.0.2.1\nexample.com AAAA 2001:db8::1", spf.StatusOK},
		{"eleven lookups", "example.com TXT \"v=spf1 a a a a a a a a a a a -all\"\nexample.com A 192.0.2.1\nexample.com AAAA 2001:db8::1", spf.StatusPermError},
		{"two voids", `example.com TXT "v=spf1 a:a.example a:b.example -all"`, spf.StatusOK},
		{"three voids", `example.com TXT "v=spf1 a:a.example a:b.example a:c.example -all"`, spf.StatusPermError},
		{"three voids for IPv6 clients alone", "example.com TXT \"v=spf1 a a a -all\"\nexample.com A 192.0.2.1", spf.StatusOK},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := spf.Explain(context.Background(), dnstest.New(tt.zone), "example.com", spf.Limits{})
			if x.Status != tt.want {
				t.Errorf("got %q (%+v), want %q", x.Status, x.Problems, tt.want)
			}
		})
	}
}

func TestExplainLimits(t *testing.T) {
	t.Parallel()
	chain := dnstest.New("")
	for n := range 30 {
		chain.Add(dns.Record{
			Name: fmt.Sprintf("n%d.example", n), Type: dns.TXT,
			Text: []string{fmt.Sprintf("v=spf1 include:n%d.example -all", n+1)},
		})
	}
	wide := dnstest.New("")
	var record strings.Builder
	record.WriteString("v=spf1")
	for n := range 300 {
		fmt.Fprintf(&record, " a:n%d.example", n)
	}
	wide.Add(dns.Record{Name: "n0.example", Type: dns.TXT, Text: []string{record.String() + " include:last.example"}})
	heavy := dnstest.New("")
	heavy.Add(dns.Record{Name: "n0.example", Type: dns.TXT, Text: []string{"v=spf1" + strings.Repeat(" a", 30_000)}})

	tests := []struct {
		name      string
		zone      *dnstest.Zone
		limits    spf.Limits
		reason    string
		limit     int
		questions int
		lookups   int
	}{
		{"default depth", chain, spf.Limits{}, "depth", 20, 21, 21},
		{"depth", chain, spf.Limits{Depth: 3}, "depth", 3, 4, 4},
		{"questions", chain, spf.Limits{Questions: 5}, "questions", 5, 5, 5},
		{"default questions", wide, spf.Limits{}, "questions", 100, 100, 301},
		{"terms", heavy, spf.Limits{}, "terms", 10_000, 3, 10_000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := spf.Explain(context.Background(), tt.zone, "n0.example", tt.limits)
			if !x.Truncated || x.Questions != tt.questions || x.Lookups != tt.lookups {
				t.Errorf("got truncated %v, %d questions, %d lookups, want true, %d, %d",
					x.Truncated, x.Questions, x.Lookups, tt.questions, tt.lookups)
			}
			found := false
			for _, p := range x.Problems {
				found = found || (p.Kind == spf.Truncated && p.Reason == tt.reason && p.Limit == tt.limit)
			}
			if !found {
				t.Errorf("got problems %+v, want truncated by %s at %d", x.Problems, tt.reason, tt.limit)
			}
		})
	}
}

func TestExplainAsksForRecordsFirst(t *testing.T) {
	t.Parallel()
	zone := dnstest.New(`example.com TXT "v=spf1 a:a.example a:b.example include:c.example -all"`)
	spf.Explain(context.Background(), zone, "example.com", spf.Limits{Questions: 2})
	want := []dns.Question{{Name: "example.com", Type: dns.TXT}, {Name: "c.example", Type: dns.TXT}}
	if diff := cmp.Diff(want, zone.Asked()); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
}

// TestExplainCountsWithoutEnd has records include one another so often that the
// true number of lookups cannot be written down.
func TestExplainCountsWithoutEnd(t *testing.T) {
	t.Parallel()
	zone := dnstest.New("")
	for n := range 15 {
		zone.Add(dns.Record{
			Name: fmt.Sprintf("n%d.example", n), Type: dns.TXT,
			Text: []string{"v=spf1" + strings.Repeat(fmt.Sprintf(" include:n%d.example", n+1), 500)},
		})
	}
	zone.Add(dns.Record{Name: "n15.example", Type: dns.TXT, Text: []string{"v=spf1 a"}})
	x := spf.Explain(context.Background(), zone, "n0.example", spf.Limits{})
	if x.Lookups != 1<<30 || x.Status != spf.StatusPermError {
		t.Errorf("got %d lookups and %q, want %d and permerror", x.Lookups, x.Status, 1<<30)
	}
}

func TestExplainAsksEachQuestionOnce(t *testing.T) {
	t.Parallel()
	zone := dnstest.New(`
		example.com TXT "v=spf1 a a:example.com mx include:b.example include:b.example -all"
		example.com MX  1 example.com
		b.example   TXT "v=spf1 a:example.com"`)
	x := spf.Explain(context.Background(), zone, "example.com", spf.Limits{Concurrency: 1})
	// TXT twice, A, AAAA and MX of example.com.
	if got := len(zone.Asked()); got != 5 || x.Questions != 5 {
		t.Errorf("got %d questions and told %d, want 5", got, x.Questions)
	}
}

func TestExplainDetails(t *testing.T) {
	t.Parallel()
	zone := dnstest.New(`
		example.com TXT "v=spf1 include:_spf.google.com exists:%{i}._spf.mta.salesforce.com exists:%{i}.spf.hc0-1.iphmx.com mx -all"
		example.com MX  5 mx.example.com
		mx.example.com CNAME host.example.com
		_spf.google.com 300 TXT "v=spf1 -all"`)
	x := spf.Explain(context.Background(), zone, "example.com", spf.Limits{})
	terms := x.Root.Terms
	for i, want := range []string{"Google Workspace", "", "Cisco Secure Email", "", ""} {
		if got := terms[i].Provider; got != want {
			t.Errorf("%s: got provider %q, want %q", terms[i].Term, got, want)
		}
	}
	if got := terms[0].Child.TTL.Seconds(); got != 300 {
		t.Errorf("got a TTL of %v, want 300", got)
	}
	want := []spf.Host{{Name: "mx.example.com", Questions: []spf.Lookup{
		{
			Question: dns.Question{Name: "mx.example.com", Type: dns.A},
			Outcome:  dns.NoSuchName, Aliases: []string{"host.example.com"},
		},
		{
			Question: dns.Question{Name: "mx.example.com", Type: dns.AAAA},
			Outcome:  dns.NoSuchName, Aliases: []string{"host.example.com"},
		},
	}}}
	if diff := cmp.Diff(want, terms[3].Hosts); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	if terms[3].Questions[0].Records != 1 || terms[3].Exchangers != 1 {
		t.Errorf("got %+v, want one MX record", terms[3].Questions)
	}
}

func TestProvider(t *testing.T) {
	t.Parallel()
	for domain, want := range map[string]string{
		"_spf.google.com":             "Google Workspace",
		"SPF.protection.outlook.com.": "Microsoft 365",
		"u123.wl.sendgrid.net":        "Twilio SendGrid",
		"notsendgrid.net":             "",
		"google.com":                  "",
		"":                            "",
	} {
		if got := spf.Provider(domain); got != want {
			t.Errorf("Provider(%q): got %q, want %q", domain, got, want)
		}
	}
}
