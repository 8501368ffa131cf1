package dmarc_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
)

// queries returns the names of a walk for its domains, written with blanks.
func queries(domains string) []string {
	var names []string
	for _, d := range strings.Fields(domains) {
		names = append(names, "_dmarc."+d)
	}
	return names
}

// published returns the DMARC records of a domain in a zone, nil for the domain "".
func published(t *testing.T, zone, domain string) []string {
	t.Helper()
	if domain == "" {
		return nil
	}
	texts := dnstest.New(zone).Resolve(t.Context(), dns.Question{Name: "_dmarc." + domain, Type: dns.TXT}).Texts()
	return slices.DeleteFunc(texts, func(text string) bool { return !strings.HasPrefix(text, "v=DMARC1") })
}

// discoverCase is a zone, a question to it, and what is to come out.
type discoverCase struct {
	name string
	zone string
	ask  string
	want dmarc.Discovery // without Domain, Record, Steps and Reason; Applied 0 stands for Policy
	walk string          // the domains queried
	a    bool            // whether the existence of the domain is asked for
}

func runDiscover(t *testing.T, cases []discoverCase) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			zone := dnstest.New(tt.zone)
			got := dmarc.Discover(t.Context(), zone, tt.ask)
			if tt.want.Applied == dmarc.Unstated {
				tt.want.Applied = tt.want.Policy
			}
			tt.want.Domain = dns.Name(tt.ask)
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(dmarc.Discovery{}, "Record", "Steps", "Reason")); diff != "" {
				t.Errorf("discovery (-want +got):\n%s", diff)
			}
			var text []string
			if got.Record != nil {
				text = []string{got.Record.Text}
			}
			if want := published(t, tt.zone, tt.want.RecordDomain); !slices.Equal(text, want) {
				t.Errorf("record: got %q want %q", text, want)
			}
			if known := got.Status != dmarc.StatusInconclusive && (got.Organization != "" || tt.ask == ""); known != (got.Reason == "") {
				t.Errorf("got reason %q with everything known: %v", got.Reason, known)
			}
			wantAsked := []dns.Question{}
			for _, name := range queries(tt.walk) {
				wantAsked = append(wantAsked, dns.Question{Name: name, Type: dns.TXT})
			}
			if tt.a {
				wantAsked = append(wantAsked, dns.Question{Name: dns.Name(tt.ask), Type: dns.A})
			}
			if asked := zone.Asked(); !slices.Equal(asked, wantAsked) {
				t.Errorf("questions: got %v want %v", asked, wantAsked)
			}
			if queried := got.Queried(); !slices.Equal(queried, queries(tt.walk)) {
				t.Errorf("queried: got %q want %q", queried, queries(tt.walk))
			}
			compareDiscoverRecord(t, tt, got)
		})
	}
}

// compareDiscoverRecord checks that DiscoverRecord finds what Discover does, with one query for a
// domain with its own record.
func compareDiscoverRecord(t *testing.T, tt discoverCase, want dmarc.Discovery) {
	t.Helper()
	zone := dnstest.New(tt.zone)
	if want.Record != nil && want.RecordDomain == want.Domain {
		want.Organization, want.Reason, want.Steps = "", "", want.Steps[:1]
	}
	got := dmarc.DiscoverRecord(t.Context(), zone, tt.ask)
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("DiscoverRecord (-Discover +DiscoverRecord):\n%s", diff)
	}
	questions := len(want.Steps)
	if tt.a {
		questions++
	}
	if asked := zone.Asked(); len(asked) != questions {
		t.Errorf("DiscoverRecord: got the questions %v, want %d", asked, questions)
	}
}

func TestDiscoverPolicy(t *testing.T) {
	t.Parallel()
	runDiscover(t, []discoverCase{
		{
			name: "56 np for a name that does not exist",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=none; sp=quarantine; np=reject"`,
			ask:  "nope.example.com", a: true,
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.Reject, Source: "np", Organization: "example.com", Existence: dmarc.Missing},
			walk: "nope.example.com example.com com",
		},
		{
			name: "57 sp for a name that exists",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=none; sp=quarantine; np=reject"
				www.example.com A 192.0.2.1`,
			ask: "www.example.com", a: true,
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.Quarantine, Source: "sp", Organization: "example.com", Existence: dmarc.Exists},
			walk: "www.example.com example.com com",
		},
		{
			name: "a name with nothing but names below it exists",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=none; np=reject"
				host.sub.example.com A 192.0.2.1`,
			ask: "sub.example.com", a: true,
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.None, Source: "p", Organization: "example.com", Existence: dmarc.Exists},
			walk: "sub.example.com example.com com",
		},
		{
			name: "a name with other text at _dmarc is known to exist",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=none; np=reject"
				_dmarc.sub.example.com TXT "hello"`,
			ask:  "sub.example.com",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.None, Source: "p", Organization: "example.com", Existence: dmarc.Exists},
			walk: "sub.example.com example.com com",
		},
		{
			name: "an alias to nowhere exists itself",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=none; np=reject"
				www.example.com CNAME gone.example.net`,
			ask: "www.example.com", a: true,
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.None, Source: "p", Organization: "example.com", Existence: dmarc.Exists},
			walk: "www.example.com example.com com",
		},
		{
			name: "58 np falls back to sp",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=reject; sp=none"`,
			ask:  "nope.example.com",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.None, Source: "sp", Organization: "example.com"},
			walk: "nope.example.com example.com com",
		},
		{
			name: "59 sp does not fall back to np",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=quarantine; np=reject"
				www.example.com MX 10 mail.example.com`,
			ask: "www.example.com", a: true,
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.Quarantine, Source: "p", Organization: "example.com", Existence: dmarc.Exists},
			walk: "www.example.com example.com com",
		},
		{
			name: "60 the sp of an own record does not matter",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=none; sp=reject"
				_dmarc.news.example.com TXT "v=DMARC1; p=quarantine; sp=none"`,
			ask:  "news.example.com",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "news.example.com", Policy: dmarc.Quarantine, Source: "p", Organization: "example.com", Existence: dmarc.Exists},
			walk: "news.example.com example.com com",
		},
		{
			name: "61 a record on the way supplies no policy",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=none; sp=reject"
				_dmarc.news.example.com TXT "v=DMARC1; p=quarantine; sp=none"`,
			ask:  "x.news.example.com",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.Reject, Source: "sp", Organization: "example.com"},
			walk: "x.news.example.com news.example.com example.com com",
		},
		{
			name: "40 63 two own records and nothing else",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=none"
				_dmarc.example.com TXT "v=DMARC1; p=reject"`,
			ask:  "example.com",
			want: dmarc.Discovery{Status: dmarc.StatusMultiple, Organization: "example.com", Existence: dmarc.Exists},
			walk: "example.com com",
		},
		{
			name: "two own records and an ancestor's",
			zone: `_dmarc.mail.example.com TXT "v=DMARC1; p=none"
				_dmarc.mail.example.com TXT "v=DMARC1; p=reject"
				_dmarc.example.com TXT "v=DMARC1; p=quarantine"`,
			ask:  "mail.example.com",
			want: dmarc.Discovery{Status: dmarc.StatusMultiple, RecordDomain: "example.com", Policy: dmarc.Quarantine, Source: "p", Organization: "example.com", Existence: dmarc.Exists},
			walk: "mail.example.com example.com com",
		},
		{
			name: "41 unrelated text beside a record",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=reject"
				_dmarc.example.com TXT "google-site-verification=abc"`,
			ask:  "example.com",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.Reject, Source: "p", Organization: "example.com", Existence: dmarc.Exists},
			walk: "example.com com",
		},
		{
			name: "39 SPF at the DMARC name",
			zone: `_dmarc.example.com TXT "v=spf1 -all"`,
			ask:  "example.com",
			want: dmarc.Discovery{Status: dmarc.StatusNone, Organization: "example.com", Existence: dmarc.Exists},
			walk: "example.com com",
		},
		{
			name: "2 the strings of a record are joined",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=none; " "rua=mailto:x@example.com"`,
			ask:  "example.com",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.None, Source: "p", Organization: "example.com", Existence: dmarc.Exists},
			walk: "example.com com",
		},
		{
			name: "65 np of a public suffix",
			zone: `_dmarc.bank.example TXT "v=DMARC1; p=none; sp=quarantine; np=reject; psd=y"`,
			ask:  "fake.bank.example", a: true,
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "bank.example", Policy: dmarc.Reject, Source: "np", Organization: "fake.bank.example", Existence: dmarc.Missing},
			walk: "fake.bank.example bank.example",
		},
		{
			name: "69 testing",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=reject; t=y"`,
			ask:  "example.com",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.Reject, Applied: dmarc.Quarantine, Source: "p", Organization: "example.com", Existence: dmarc.Exists},
			walk: "example.com com",
		},
		{
			name: "70 testing for a subdomain",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=none; sp=quarantine; t=y"`,
			ask:  "www.example.com",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.Quarantine, Applied: dmarc.None, Source: "sp", Organization: "example.com"},
			walk: "www.example.com example.com com",
		},
		{
			name: "71 the own name cannot be looked up",
			zone: `_dmarc.example.com INCONCLUSIVE`,
			ask:  "example.com",
			want: dmarc.Discovery{Status: dmarc.StatusInconclusive},
			walk: "example.com",
		},
		{
			name: "71 an ancestor cannot be looked up",
			zone: `_dmarc.example.com INCONCLUSIVE`,
			ask:  "www.example.com",
			want: dmarc.Discovery{Status: dmarc.StatusInconclusive},
			walk: "www.example.com example.com",
		},
		{
			name: "an own record is known though an ancestor is not",
			zone: `_dmarc.www.example.com TXT "v=DMARC1; p=reject"
				_dmarc.example.com INCONCLUSIVE`,
			ask:  "www.example.com",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "www.example.com", Policy: dmarc.Reject, Source: "p", Existence: dmarc.Exists},
			walk: "www.example.com example.com",
		},
		{
			name: "two own records and an ancestor that cannot be looked up",
			zone: `_dmarc.www.example.com TXT "v=DMARC1; p=reject"
				_dmarc.www.example.com TXT "v=DMARC1; p=none"
				_dmarc.example.com INCONCLUSIVE`,
			ask:  "www.example.com",
			want: dmarc.Discovery{Status: dmarc.StatusInconclusive, Existence: dmarc.Exists},
			walk: "www.example.com example.com",
		},
		{
			name: "the existence of the domain cannot be told",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=none; np=reject"
				www.example.com INCONCLUSIVE`,
			ask: "www.example.com", a: true,
			want: dmarc.Discovery{Status: dmarc.StatusInconclusive, Organization: "example.com"},
			walk: "www.example.com example.com com",
		},
		{
			name: "the existence of the domain does not matter without np",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=none; sp=reject"
				www.example.com INCONCLUSIVE`,
			ask:  "www.example.com",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.Reject, Source: "sp", Organization: "example.com"},
			walk: "www.example.com example.com com",
		},
		{
			name: "an invalid sp makes the record act as p=none",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=reject; sp=bogus; rua=mailto:a@example.com"`,
			ask:  "example.com",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.None, Source: "p", Organization: "example.com", Existence: dmarc.Exists},
			walk: "example.com com",
		},
		{
			name: "np of a record that acts as p=none is not asked about",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=reject; sp=bogus; np=reject; rua=mailto:a@example.com"`,
			ask:  "nope.example.com",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.None, Source: "p", Organization: "example.com"},
			walk: "nope.example.com example.com com",
		},
		{
			name: "an unusable own record",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=reject; sp=bogus"`,
			ask:  "example.com",
			want: dmarc.Discovery{Status: dmarc.StatusUnusable, RecordDomain: "example.com", Organization: "example.com", Existence: dmarc.Exists},
			walk: "example.com com",
		},
		{
			name: "an unusable own record is not replaced by an ancestor's",
			zone: `_dmarc.www.example.com TXT "v=DMARC1; p=none; p=none"
				_dmarc.example.com TXT "v=DMARC1; p=reject"`,
			ask:  "www.example.com",
			want: dmarc.Discovery{Status: dmarc.StatusUnusable, RecordDomain: "www.example.com", Organization: "example.com", Existence: dmarc.Exists},
			walk: "www.example.com example.com com",
		},
		{
			name: "an unusable record of an ancestor",
			zone: `_dmarc.example.com TXT "v=DMARC1"`,
			ask:  "www.example.com",
			want: dmarc.Discovery{Status: dmarc.StatusUnusable, RecordDomain: "example.com", Organization: "example.com"},
			walk: "www.example.com example.com com",
		},
		{
			name: "an alias at the DMARC name is followed",
			zone: `_dmarc.example.com CNAME example.com.hosted.example.net
				example.com.hosted.example.net TXT "v=DMARC1; p=reject"`,
			ask:  "example.com",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.Reject, Source: "p", Organization: "example.com"},
			walk: "example.com com",
		},
		{
			name: "no domain name", ask: "bad..example",
			want: dmarc.Discovery{Status: dmarc.StatusNone, Organization: "bad..example"},
		},
		{
			name: "no name at all", ask: "",
			want: dmarc.Discovery{Status: dmarc.StatusNone},
		},
	})
}

func TestDiscoverSteps(t *testing.T) {
	t.Parallel()
	zone := dnstest.New(`
_dmarc.www.example.com  TXT   "v=dmarc1; p=reject"
_dmarc.example.com      CNAME dmarc.example.net
dmarc.example.net       TXT   "v=DMARC1; p=none"
dmarc.example.net       TXT   "v=DMARC1; p=reject"`)
	d := dmarc.Discover(t.Context(), zone, "www.example.com")
	if got, want := len(d.Steps), 3; got != want {
		t.Fatalf("steps: got %d want %d", got, want)
	}
	own, parent, top := d.Steps[0], d.Steps[1], d.Steps[2]
	if want := []string{"v=dmarc1; p=reject"}; len(own.Records) != 0 || !slices.Equal(own.Others, want) {
		t.Errorf("own: got %d records and %q want 0 and %q", len(own.Records), own.Others, want)
	}
	if want := []string{"dmarc.example.net"}; len(parent.Records) != 2 || !slices.Equal(parent.Answer.Aliases, want) {
		t.Errorf("parent: got %d records by %q want 2 by %q", len(parent.Records), parent.Answer.Aliases, want)
	}
	if _, ok := parent.Record(); ok {
		t.Error("parent: got one record want none of the two")
	}
	if top.Domain != "com" || top.Answer.Outcome != dns.NoSuchName {
		t.Errorf("top: got %q %v want %q %v", top.Domain, top.Answer.Outcome, "com", dns.NoSuchName)
	}
}

func TestDiscoverLongestNames(t *testing.T) {
	t.Parallel()
	label := strings.Repeat("x", 60)
	name := strings.Join([]string{label, label, label, label, "example"}, ".") // 251 octets
	zone := dnstest.New(`_dmarc.example TXT "v=DMARC1; p=reject"`)
	d := dmarc.Discover(t.Context(), zone, name)
	if d.Status != dmarc.StatusOK || d.RecordDomain != "example" {
		t.Errorf("got %v at %q want %v at %q", d.Status, d.RecordDomain, dmarc.StatusOK, "example")
	}
	for _, q := range zone.Asked() {
		if len(q.Name) > 253 {
			t.Errorf("asked for a name of %d octets", len(q.Name))
		}
	}
}

func TestDiscoverStopsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d := dmarc.Discover(ctx, dnstest.New(`_dmarc.example.com TXT "v=DMARC1; p=none"`), "example.com")
	if d.Status != dmarc.StatusInconclusive || d.Reason != context.Canceled.Error() {
		t.Errorf("got %v %q want %v %q", d.Status, d.Reason, dmarc.StatusInconclusive, context.Canceled)
	}
}

func TestClassifyMiss(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, txt string
		want      dmarc.Miss
	}{
		{"6 lower case", "v=dmarc1; p=reject", dmarc.VersionCase},
		{"mixed case without a semicolon", "V=Dmarc1", dmarc.VersionCase},
		{"7 version with a fraction", "v=DMARC1.0; p=reject", dmarc.OtherVersion},
		{"7 version twelve", "v=DMARC12; p=none", dmarc.OtherVersion},
		{"version two", "v=DMARC2; p=none", dmarc.OtherVersion},
		{"no number", "v=DMARC; p=none", dmarc.OtherVersion},
		{"no number, and nothing else", "v=DMARC", dmarc.OtherVersion},
		{"8 version last", "p=reject; v=DMARC1", dmarc.VersionNotFirst},
		{"tags without a version", "p=reject; sp=none", dmarc.Unrelated},
		{"9 no separator", "v=DMARC1 p=none", dmarc.MissingSeparator},
		{"comma as separator", "v=DMARC1, p=none", dmarc.MissingSeparator},
		{"10 leading space", " v=DMARC1; p=reject", dmarc.LeadingSpace},
		{"leading line break", "\nv=DMARC1; p=reject", dmarc.LeadingSpace},
		{"trailing line break only", "v=DMARC1 p=reject\n", dmarc.MissingSeparator},
		{"quotes inside", `"v=DMARC1; p=reject"`, dmarc.Quoted},
		{"typographic quotes", "“v=DMARC1; p=reject”", dmarc.Quoted},
		{"escaped semicolons", `v=DMARC1\; p=reject`, dmarc.EscapedSeparator},
		{"39 SPF", "v=spf1 -all", dmarc.SPFRecord},
		{"SPF alone", "V=SPF1", dmarc.SPFRecord},
		{"not quite SPF", "v=spf10 -all", dmarc.Unrelated},
		{"something else", "google-site-verification=abc", dmarc.Unrelated},
		{"something else in quotes", `"hello"`, dmarc.Unrelated},
		{"empty", "", dmarc.Unrelated},
		{"v alone", "v", dmarc.Unrelated},
		{"a record", "v=DMARC1; p=none", dmarc.NoMiss},
		{"a record without anything", "v=DMARC1", dmarc.NoMiss},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := dmarc.ClassifyMiss(tt.txt); got != tt.want {
				t.Errorf("%q: got %q want %q", tt.txt, got, tt.want)
			}
			if _, ok := dmarc.Parse(tt.txt); ok != (tt.want == dmarc.NoMiss) {
				t.Errorf("%q: taken for a DMARC record: got %v want %v", tt.txt, ok, !ok)
			}
		})
	}
}
