package dmarc_test

import (
	"slices"
	"testing"

	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
)

func TestAlign(t *testing.T) {
	t.Parallel()
	const (
		com    = `_dmarc.example.com TXT "v=DMARC1; p=none"`
		hazard = com + `
			_dmarc.mail.example.com TXT "v=DMARC1; p=none"`
		guarded = com + `
			_dmarc.mail.example.com TXT "v=DMARC1; p=none; psd=n"`
		sub = `_dmarc.sub.example.com TXT "v=DMARC1; p=none"`
	)
	const yes, no, unknown = dmarc.Aligned, dmarc.NotAligned, dmarc.AlignmentUnknown
	for _, tt := range []struct {
		name, zone, author, identifier string
		relaxed, strict                dmarc.Alignment
		legacy                         bool // relaxed, by the Public Suffix List
	}{
		{"an identifier that is not a name", com, "example.com", "a..example.com", no, no, false},
		{"an author that is not a name", com, "a..example.com", "example.com", no, no, false},
		{"72 the same name", com, "example.com", "example.com", yes, yes, true},
		{"73 a subdomain signs", com, "example.com", "child.example.com", yes, no, true},
		{"74 the parent signs", com, "child.example.com", "example.com", yes, no, true},
		{"75 another domain signs", com, "child.example.com", "example.net", no, no, false},
		{"a domain below the same public suffix signs", com, "child.example.com", "other.com", no, no, false},
		{"76 a sibling signs", com, "news.example.com", "foo.example.com", yes, no, true},
		{"77 the same name in another case", com, "news.example.com", "NEWS.Example.COM.", yes, yes, true},
		{"78 below a public suffix", bank, "giant.bank.example", "mail.giant.bank.example", yes, no, true},
		{"79 two below a public suffix", bank, "giant.bank.example", "mail.mega.bank.example", no, no, true},
		{"80 the documented hazard", hazard, "evil.example.com", "mail.example.com", yes, no, true},
		{"81 psd=n guards against it", guarded, "evil.example.com", "mail.example.com", no, no, true},
		{"81 within the guarded domain", guarded, "a.mail.example.com", "mail.example.com", yes, no, true},
		{"82 a record at the subdomain only", sub, "sub.example.com", "example.com", no, no, true},
		{"no record anywhere", "", "a.example.com", "b.example.com", no, no, true},
		{"a name that only ends alike", com, "example.com", "notexample.com", no, no, false},
		{"a label that is a public suffix", com, "example.com", "com", no, no, false},
		{"the author cannot be looked up", "_dmarc.a.example.com INCONCLUSIVE", "a.example.com", "b.example.com", unknown, no, true},
		{"the identifier cannot be looked up", com + "\n_dmarc.b.example.com INCONCLUSIVE", "a.example.com", "b.example.com", unknown, no, true},
		{"no question is needed", "_dmarc.example.com INCONCLUSIVE", "example.com", "example.com", yes, yes, true},
		{"no domain name", com, "example.com", "", no, no, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			zone := dnstest.New(tt.zone)
			if got := dmarc.Align(t.Context(), zone, tt.author, tt.identifier, dmarc.Strict); got != tt.strict {
				t.Errorf("strict: got %v want %v", got, tt.strict)
			}
			if asked := zone.Asked(); len(asked) > 0 {
				t.Errorf("strict: got questions %v want none", asked)
			}
			if got := dmarc.Align(t.Context(), zone, tt.author, tt.identifier, dmarc.Relaxed); got != tt.relaxed {
				t.Errorf("relaxed: got %v want %v", got, tt.relaxed)
			}
			if got, want := dmarc.LegacyAlign(tt.author, tt.identifier, dmarc.Strict), tt.strict == yes; got != want {
				t.Errorf("legacy strict: got %v want %v", got, want)
			}
			if got := dmarc.LegacyAlign(tt.author, tt.identifier, dmarc.Relaxed); got != tt.legacy {
				t.Errorf("legacy relaxed: got %v want %v", got, tt.legacy)
			}
		})
	}
}

func TestAlignAsksNoMoreThanNeeded(t *testing.T) {
	t.Parallel()
	const zone = `_dmarc.example.com TXT "v=DMARC1; p=none; psd=n"`
	for _, tt := range []struct {
		name, author, identifier, want string
	}{
		{"equal names", "a.example.com", "a.example.com", ""},
		{"another top", "a.example.com", "a.example.net", ""},
		{"another organization", "a.example.com", "other.com", "a.example.com example.com"},
		{"the same organization", "a.example.com", "b.example.com", "a.example.com example.com b.example.com example.com"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			z := dnstest.New(zone)
			dmarc.Align(t.Context(), z, tt.author, tt.identifier, dmarc.Relaxed)
			var want []dns.Question
			for _, name := range queries(tt.want) {
				want = append(want, dns.Question{Name: name, Type: dns.TXT})
			}
			if got := z.Asked(); !slices.Equal(got, want) {
				t.Errorf("questions: got %v want %v", got, want)
			}
		})
	}
}

func TestOrganization(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, zone, ask, want string
		known                 bool
	}{
		{"an ancestor with a record", `_dmarc.example.com TXT "v=DMARC1; p=none"`, "A.b.example.com", "example.com", true},
		{"no record", "", "a.example.com", "a.example.com", true},
		{"an unusable record counts", `_dmarc.example.com TXT "v=DMARC1"`, "a.example.com", "example.com", true},
		{"inconclusive", "_dmarc.com INCONCLUSIVE", "a.example.com", "", false},
		{"no domain name", "", "a..b", "a..b", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, known := dmarc.Organization(t.Context(), dnstest.New(tt.zone), tt.ask)
			if got != tt.want || known != tt.known {
				t.Errorf("got %q %v want %q %v", got, known, tt.want, tt.known)
			}
		})
	}
}
