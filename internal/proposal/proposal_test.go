package proposal_test

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/demo"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/proposal"
	"github.com/dmarcd/dmarcd/internal/store/shape"
)

const domain = "example.com"

// stored returns the facts of a check as the store has them.
func stored(t musttest.TB, zone dns.Resolver, name string) *facts.Facts {
	checker := dnscheck.New(dnscheck.Options{Resolver: zone, Now: func() time.Time { return time.Unix(1_800_000_000, 0) }})
	check := checker.Examine(context.Background(), dnscheck.Request{Domain: name})
	return musttest.Get(shape.DecodeCheck(shape.EncodeCheck(check)))(t).Facts
}

// pass, fail and of return mail in the form "address count".
func pass(texts ...string) []proposal.Mail { return of(proposal.Mail{Passes: true}, texts...) }
func fail(texts ...string) []proposal.Mail { return of(proposal.Mail{}, texts...) }

func of(like proposal.Mail, texts ...string) (mail []proposal.Mail) {
	for _, text := range texts {
		m := like
		var addr string
		if _, err := fmt.Sscan(text, &addr, &m.Messages); err != nil {
			panic(err)
		}
		m.Addr = netip.MustParseAddr(addr)
		mail = append(mail, m)
	}
	return mail
}

// services are included records with two lookups each, of 198.51.100.0/28, .16/28 and so on.
func services(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "s%d.example TXT \"v=spf1 include:_s%d.example -all\"\n", i, i)
		fmt.Fprintf(&b, "_s%d.example TXT \"v=spf1 ip4:198.51.100.%d/28 -all\"\n", i, 16*i)
	}
	return b.String()
}

func TestSPF(t *testing.T) {
	t.Parallel()
	const hosts = `
example.com A 192.0.2.1
example.com MX 10 mx.example.com
mx.example.com A 192.0.2.2
mx.example.com AAAA 2001:db8::2
`
	six := " include:s0.example include:s1.example include:s2.example include:s3.example include:s4.example include:s5.example"
	for _, tt := range []struct {
		name    string
		records []string
		zone    string
		// history are earlier records.
		history  []string
		mail     [][]proposal.Mail
		want     string
		sentence string
		fixed    int64
		missing  string // a part of it
	}{
		{name: "nothing to fix", records: []string{"v=spf1 mx -all"}, mail: [][]proposal.Mail{pass("192.0.2.2 5")}},
		{
			name: "a removed network is restored", records: []string{"v=spf1 mx ~all"}, history: []string{"v=spf1 mx ~all", "v=spf1 mx ip4:192.0.2.16/28 ip4:203.0.113.0/24 ~all"},
			mail:     [][]proposal.Mail{pass("192.0.2.2 5"), fail("192.0.2.17 2000", "192.0.2.18 922")},
			want:     "v=spf1 ip4:192.0.2.16/28 mx ~all",
			sentence: "Restore ip4:192.0.2.16/28: 2,922 failing messages pass, none breaks", fixed: 2922,
		},
		{
			name: "a network that is too wide is not restored", records: []string{"v=spf1 mx ~all"}, history: []string{"v=spf1 ip4:192.0.0.0/8 ~all"},
			mail:     [][]proposal.Mail{fail("192.0.2.17 1")},
			want:     "v=spf1 ip4:192.0.2.17 mx ~all",
			sentence: "Add ip4:192.0.2.17: 1 failing message passes, none breaks", fixed: 1,
		},
		{
			name: "neighbours are one network", records: []string{"v=spf1 ip4:203.0.113.1 a -all"},
			mail: [][]proposal.Mail{
				pass("192.0.2.1 5"), fail("192.0.2.8 1", "192.0.2.9 1", "192.0.2.10 1", "192.0.2.11 1", "192.0.2.12 1", "2001:db8:1::1 1", "2001:db8:1::2 1", "2001:db8:2::1 1"),
			},
			want:     "v=spf1 ip4:203.0.113.1 ip4:192.0.2.8/30 ip4:192.0.2.12 ip6:2001:db8:1::/64 ip6:2001:db8:2::1 a -all",
			sentence: "Add four terms for your servers: 8 failing messages pass, none breaks", fixed: 8,
		},
		{
			name: "too many lookups, some includes unused", records: []string{"v=spf1" + six + " ~all"}, zone: services(6),
			mail:     [][]proposal.Mail{pass("198.51.100.1 7"), fail("198.51.100.81 9")},
			want:     "v=spf1 include:s0.example include:s5.example ~all",
			sentence: "Remove four includes that never pass SPF for your domain: 12 → 4 lookups; 9 failing messages pass, none breaks", fixed: 9,
		},
		{
			name: "too many lookups, nothing fails", records: []string{"v=spf1" + six + " ~all"}, zone: services(6),
			mail:     [][]proposal.Mail{pass("198.51.100.1 7", "198.51.100.17 7", "198.51.100.33 7", "198.51.100.49 7", "198.51.100.65 7")},
			want:     "v=spf1" + strings.TrimSuffix(six, " include:s5.example") + " ~all",
			sentence: "Remove include:s5.example, which never passes SPF for your domain: 12 → 10 lookups; no message breaks",
		},
		{
			name: "too many lookups, all used", records: []string{"v=spf1" + six + " ~all"}, zone: services(6),
			mail:    [][]proposal.Mail{pass("198.51.100.1 7", "198.51.100.17 7", "198.51.100.33 7", "198.51.100.49 7", "198.51.100.65 7"), fail("198.51.100.81 1")},
			missing: "would need 12 lookups",
		},
		{
			name: "too many lookups, mail of a subdomain uses them", records: []string{"v=spf1" + six + " ~all"}, zone: services(6),
			mail: [][]proposal.Mail{
				of(proposal.Mail{Passes: true, Domain: "news.example.com"}, "198.51.100.1 1", "198.51.100.17 1", "198.51.100.33 1", "198.51.100.49 1", "198.51.100.65 1", "198.51.100.81 1"),
			},
			missing: "would need 12 lookups",
		},
		{
			name: "too many lookups, without any mail", records: []string{"v=spf1" + six + " ~all"}, zone: services(6),
			missing: "would need 12 lookups",
		},
		{
			name: "duplicates are enough", records: []string{"v=spf1 mx include:s0.example include:s1.example include:s2.example include:s3.example mx INCLUDE:s3.example ~all"}, zone: services(4),
			mail:     [][]proposal.Mail{pass("198.51.100.1 7", "192.0.2.2 7"), fail("192.0.2.7 3")},
			want:     "v=spf1 ip4:192.0.2.7 mx include:s0.example include:s1.example include:s2.example include:s3.example ~all",
			sentence: "Add ip4:192.0.2.7 and remove two duplicate terms: 12 → 9 lookups; 3 failing messages pass, none breaks", fixed: 3,
		},
		{
			name: "void lookups", records: []string{"v=spf1 a:x.example.com a:y.example.com mx:z.example.com mx ~all"},
			mail:     [][]proposal.Mail{pass("192.0.2.2 1")},
			want:     "v=spf1 mx ~all",
			sentence: "Remove a:x.example.com, a:y.example.com and mx:z.example.com, each of which returns nothing: 4 → 1 lookups; no message breaks",
		},
		{
			name: "an include without a record", records: []string{"v=spf1 include:gone.example mx ~all"},
			mail:     [][]proposal.Mail{fail("192.0.2.2 4")},
			want:     "v=spf1 mx ~all",
			sentence: "Remove include:gone.example, which has no SPF record: 2 → 1 lookups; 4 failing messages pass, none breaks", fixed: 4,
		},
		{
			name: "a term that cannot be parsed", records: []string{"v=spf1 ipv4:192.0.2.9 mx ~all"},
			mail:     [][]proposal.Mail{fail("192.0.2.9 4")},
			want:     "v=spf1 ip4:192.0.2.9 mx ~all",
			sentence: "Add ip4:192.0.2.9 and remove ipv4:192.0.2.9, which is not a valid term: 4 failing messages pass, none breaks", fixed: 4,
		},
		{
			name: "several records", records: []string{"v=spf1 include:s0.example ~all", "v=spf1 mx -all"}, zone: services(1),
			mail:     [][]proposal.Mail{fail("192.0.2.2 4", "198.51.100.1 5")},
			want:     "v=spf1 include:s0.example mx -all",
			sentence: "Merge the two SPF records into one: 9 failing messages pass, none breaks", fixed: 9,
		},
		{
			name: "no record", mail: [][]proposal.Mail{fail("192.0.2.7 3")},
			want: "v=spf1 ip4:192.0.2.7 ~all", sentence: "Add ip4:192.0.2.7: 3 failing messages pass, none breaks", fixed: 3,
		},
		{
			name: "a redirect", records: []string{"v=spf1 redirect=s0.example"}, zone: services(1),
			mail: [][]proposal.Mail{pass("198.51.100.1 1"), fail("192.0.2.7 3")},
			want: "v=spf1 ip4:192.0.2.7 redirect=s0.example", sentence: "Add ip4:192.0.2.7: 3 failing messages pass, none breaks", fixed: 3,
		},
		{
			name: "a service", records: []string{"v=spf1 mx -all"},
			mail:    [][]proposal.Mail{of(proposal.Mail{Service: "SendGrid"}, "203.0.113.1 8144")},
			missing: "8,144 messages of SendGrid still fail",
		},
		{
			name: "a service and an own server", records: []string{"v=spf1 mx -all"},
			mail: [][]proposal.Mail{of(proposal.Mail{Service: "SendGrid"}, "203.0.113.1 8144"), fail("192.0.2.7 3")},
			want: "v=spf1 ip4:192.0.2.7 mx -all", sentence: "Add ip4:192.0.2.7: 3 failing messages pass, none breaks", fixed: 3,
			missing: "8,144 messages of SendGrid still fail",
		},
		{
			name: "mail of another envelope domain", records: []string{"v=spf1 mx -all"},
			mail: [][]proposal.Mail{of(proposal.Mail{Domain: "bounces.example.net"}, "203.0.113.1 8144"), of(proposal.Mail{Domain: "sub.example.com"}, "203.0.113.2 8144")},
		},
		{name: "all others pass", records: []string{"v=spf1 mx all"}, mail: [][]proposal.Mail{fail("192.0.2.7 3")}, missing: "lets every server pass"},
		{
			name: "an include that could not be looked up", records: []string{"v=spf1 include:silent.example mx -all"}, zone: "silent.example INCONCLUSIVE",
			mail: [][]proposal.Mail{fail("192.0.2.7 3")}, missing: "could not look up",
		},
		{
			name: "mail that passes through a macro", records: []string{"v=spf1 exists:%{i}.s.example" + six + " ~all"}, zone: services(6),
			mail: [][]proposal.Mail{pass("203.0.113.1 5"), fail("192.0.2.7 3")},
			want: "v=spf1 ip4:192.0.2.7 exists:%{i}.s.example ~all", fixed: 3,
			sentence: "Add ip4:192.0.2.7 and remove six includes that never pass SPF for your domain: 13 → 1 lookups; 3 failing messages pass, none breaks",
		},
		{
			name: "an include that depends on the client is kept", records: []string{"v=spf1 include:%{i}.s.example" + six + " ~all"}, zone: services(6),
			mail: [][]proposal.Mail{fail("192.0.2.7 3")}, missing: "depends on the message",
		},
		{
			name: "a long record", records: []string{"v=spf1" + strings.Repeat(" ip4:203.0.113.100", 24) + " -all"},
			mail: [][]proposal.Mail{fail("192.0.2.7 3")},
			want: "v=spf1 ip4:203.0.113.100 ip4:192.0.2.7 -all", fixed: 3,
			sentence: "Add ip4:192.0.2.7 and remove 23 duplicate terms: 3 failing messages pass, none breaks",
		},
		{
			name: "a host with two prefix lengths", records: []string{"v=spf1 ?a:h.example.com a:h.example.com/24 -all"}, zone: "h.example.com A 203.0.113.50",
			mail: [][]proposal.Mail{fail("203.0.113.0 3")}, // of the first address of the network
		},
		{
			name: "a listed address is not added again", records: []string{"v=spf1 ip4:192.0.2.7 -all"},
			mail: [][]proposal.Mail{fail("192.0.2.7 3")},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text := hosts + tt.zone + "\n"
			for _, r := range tt.records {
				text += domain + ` TXT "` + r + "\"\n"
			}
			in := proposal.Input{Facts: stored(t, dnstest.New(text), domain), Mail: slices.Concat(tt.mail...)}
			for _, r := range tt.history {
				in.History = append(in.History, &facts.Facts{Domain: domain, SPF: facts.SPF{Status: "ok", Record: r}})
			}
			fix, ok := proposal.SPF(t.Context(), in)
			if fix.Record != tt.want || ok != (tt.want != "") || fix.Sentence != tt.sentence || fix.Fixed != tt.fixed {
				t.Errorf("got %q, %v\n%s\nwant %q\n%s\nchanges: %+v; missing: %q", fix.Record, ok, fix.Sentence, tt.want, tt.sentence, fix.Changes, fix.Missing)
			}
			if !strings.Contains(fix.Missing, tt.missing) || tt.missing == "" && fix.Missing != "" {
				t.Errorf("missing: got %q, want %q", fix.Missing, tt.missing)
			}
		})
	}
}

// TestOldChecks proposes nothing from checks that do not have all answers.
func TestOldChecks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		facts *facts.Facts
		want  string
	}{
		{"no check", nil, "has not been checked"},
		{"no addresses", &facts.Facts{Domain: domain, SPF: facts.SPF{Status: "ok", Record: "v=spf1 mx -all", Tree: []facts.SPFTerm{{Term: "mx", Target: domain, Cost: 1}, {Term: "-all"}}}}, "no complete answer for mx"},
		{"several records", &facts.Facts{Domain: domain, SPF: facts.SPF{Status: "multiple"}}, "did not store"},
		{"a cut record", &facts.Facts{Domain: domain, SPF: facts.SPF{Status: "ok", Record: "v=spf1 ip4:192.0.2.1 ip4:192…"}}, "too long"},
	} {
		fix, ok := proposal.SPF(t.Context(), proposal.Input{Facts: tt.facts, Mail: fail("192.0.2.7 3")})
		if ok || fix.Record != "" || !strings.Contains(fix.Missing, tt.want) {
			t.Errorf("%s: got %q, missing %q; want nothing, and %q", tt.name, fix.Record, fix.Missing, tt.want)
		}
	}
}

// TestManyAddresses adds the networks with the most mail, and says that others are left.
func TestManyAddresses(t *testing.T) {
	t.Parallel()
	var mail []proposal.Mail
	for i := range 12 {
		mail = append(mail, fail(fmt.Sprintf("192.0.2.%d %d", 2*i+1, i+1))...)
	}
	fix, ok := proposal.SPF(t.Context(), proposal.Input{Facts: stored(t, dnstest.New(`example.com TXT "v=spf1 -all"`), domain), Mail: mail})
	if !ok || strings.Count(fix.Record, "ip4:") != 10 || strings.Contains(fix.Record, "192.0.2.3 ") || fix.Fixed != 75 || !strings.HasPrefix(fix.Missing, "3 messages from further own addresses") {
		t.Errorf("got %+v", fix)
	}
}

// TestCanceled proposes nothing after the end of the context.
func TestCanceled(t *testing.T) {
	t.Parallel()
	in := proposal.Input{Facts: stored(t, dnstest.New(`example.com TXT "v=spf1 -all"`), domain), Mail: fail("192.0.2.7 3")}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if fix, ok := proposal.SPF(ctx, in); ok || fix.Record != "" || fix.Missing == "" {
		t.Errorf("got %v, %+v, want nothing, with the reason", ok, fix)
	}
}

// TestDemo proposes a record for the domain of the scenario whose SPF record lost the network of the
// office when it got too many lookups. Without the network, fewer lookups would help nothing.
func TestDemo(t *testing.T) {
	t.Parallel()
	const name = "tinwhistle.example"
	end := time.Date(2026, 11, 18, 0, 0, 0, 0, time.UTC)
	office := netip.MustParsePrefix("192.0.2.16/28")
	s := demo.New(demo.Options{Seed: 1, End: end})
	in := proposal.Input{Facts: stored(t, s.Zone(end), name)}
	for ago := 30; ago < 120; ago += 30 {
		in.History = append(in.History, stored(t, s.Zone(end.AddDate(0, 0, -ago)), name))
	}
	var failing int64
	for ago := 30; ago > 0; ago-- {
		for document := range s.DocumentsAbout(end.AddDate(0, 0, -ago)) {
			if document.Domain != name || document.Kind != dmarcd.KindAggregate {
				continue
			}
			for record, err := range aggregate.NewReader(bytes.NewReader(document.Content), aggregate.DefaultLimits()).All() {
				if err != nil {
					t.Fatal(err)
				}
				m := proposal.Mail{Addr: record.Addr, Messages: record.Count, Domain: record.SPFResults[0].Domain, Passes: record.SPF == aggregate.ResultPass}
				if !m.Passes && !office.Contains(m.Addr) {
					continue // not legitimate, or with another envelope domain
				}
				if !m.Passes {
					failing += m.Messages
				}
				in.Mail = append(in.Mail, m)
			}
		}
	}
	fix, ok := proposal.SPF(t.Context(), in)
	want := "Restore ip4:192.0.2.16/28 and remove three includes that never pass SPF for your domain: 12 → 5 lookups; " +
		phrase.Number(failing) + " failing messages pass, none breaks"
	if !ok || fix.Sentence != want || failing == 0 || fix.Fixed != failing || fix.Missing != "" {
		t.Errorf("got %+v\nwant %s", fix, want)
	}
	t.Logf("%s\n%s\n%+v", in.Facts.SPF.Record, fix.Record, fix.Changes)
}
