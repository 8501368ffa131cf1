package dmarc_test

import (
	"slices"
	"testing"

	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
)

const bank = `
_dmarc.bank.example        TXT "v=DMARC1; p=reject; psd=y"
_dmarc.giant.bank.example  TXT "v=DMARC1; p=quarantine"`

func TestDiscoverWalk(t *testing.T) {
	t.Parallel()
	runDiscover(t, []discoverCase{
		{
			name: "42 own record",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=none"
				_dmarc.signing.example.com TXT "v=DMARC1; p=none"`,
			ask:  "example.com",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.None, Source: "p", Organization: "example.com", Existence: dmarc.Exists},
			walk: "example.com com",
		},
		{
			name: "43 own record below another",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=none"
				_dmarc.signing.example.com TXT "v=DMARC1; p=none"`,
			ask:  "Signing.Example.COM.",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "signing.example.com", Policy: dmarc.None, Source: "p", Organization: "example.com", Existence: dmarc.Exists},
			walk: "signing.example.com example.com com",
		},
		{
			name: "44 a long name jumps to seven labels",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=reject; sp=quarantine"`,
			ask:  "a.b.c.d.e.f.g.h.i.j.k.example.com",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.Quarantine, Source: "sp", Organization: "example.com"},
			walk: "a.b.c.d.e.f.g.h.i.j.k.example.com g.h.i.j.k.example.com h.i.j.k.example.com i.j.k.example.com j.k.example.com k.example.com example.com com",
		},
		{
			name: "45 nothing anywhere",
			ask:  "a.b.c.d.e.f.g.h.i.j.mail.example.com",
			want: dmarc.Discovery{Status: dmarc.StatusNone, Organization: "a.b.c.d.e.f.g.h.i.j.mail.example.com"},
			walk: "a.b.c.d.e.f.g.h.i.j.mail.example.com g.h.i.j.mail.example.com h.i.j.mail.example.com i.j.mail.example.com j.mail.example.com mail.example.com example.com com",
		},
		{
			name: "nothing at a short name",
			ask:  "www.example.com",
			want: dmarc.Discovery{Status: dmarc.StatusNone, Organization: "www.example.com"},
			walk: "www.example.com example.com com",
		},
		{
			name: "46 below a public suffix",
			zone: bank, ask: "giant.bank.example",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "giant.bank.example", Policy: dmarc.Quarantine, Source: "p", Organization: "giant.bank.example", Existence: dmarc.Exists},
			walk: "giant.bank.example bank.example",
		},
		{
			name: "47 two below a public suffix",
			zone: bank, ask: "mail.giant.bank.example",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "giant.bank.example", Policy: dmarc.Quarantine, Source: "p", Organization: "giant.bank.example"},
			walk: "mail.giant.bank.example giant.bank.example bank.example",
		},
		{
			name: "48 the public suffix supplies the policy",
			zone: bank, ask: "mail.mega.bank.example",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "bank.example", Policy: dmarc.Reject, Source: "p", Organization: "mega.bank.example"},
			walk: "mail.mega.bank.example mega.bank.example bank.example",
		},
		{
			name: "49 the shortest name with a record wins",
			zone: `_dmarc.mail.example.com TXT "v=DMARC1; p=none"
				_dmarc.example.com TXT "v=DMARC1; p=reject"`,
			ask:  "a.mail.example.com",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.Reject, Source: "p", Organization: "example.com"},
			walk: "a.mail.example.com mail.example.com example.com com",
		},
		{
			name: "50 psd=n ends the walk",
			zone: `_dmarc.mail.example.com TXT "v=DMARC1; p=quarantine; psd=n"
				_dmarc.example.com TXT "v=DMARC1; p=reject"`,
			ask:  "a.mail.example.com",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "mail.example.com", Policy: dmarc.Quarantine, Source: "p", Organization: "mail.example.com"},
			walk: "a.mail.example.com mail.example.com",
		},
		{
			name: "51 a top-level domain with psd=y",
			zone: `_dmarc.com TXT "v=DMARC1; p=reject; psd=y"`,
			ask:  "a.mail.example.com",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "com", Policy: dmarc.Reject, Source: "p", Organization: "example.com"},
			walk: "a.mail.example.com mail.example.com example.com com",
		},
		{
			name: "52 psd=n at a name that is skipped",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=none"
				_dmarc.b.c.d.e.f.g.example.com TXT "v=DMARC1; p=reject; psd=n"`,
			ask:  "mail.a.b.c.d.e.f.g.example.com",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.None, Source: "p", Organization: "example.com"},
			walk: "mail.a.b.c.d.e.f.g.example.com c.d.e.f.g.example.com d.e.f.g.example.com e.f.g.example.com f.g.example.com g.example.com example.com com",
		},
		{
			name: "53 a record of its own fixes that",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=none"
				_dmarc.mail.a.b.c.d.e.f.g.example.com TXT "v=DMARC1; p=reject"`,
			ask:  "mail.a.b.c.d.e.f.g.example.com",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "mail.a.b.c.d.e.f.g.example.com", Policy: dmarc.Reject, Source: "p", Organization: "example.com", Existence: dmarc.Exists},
			walk: "mail.a.b.c.d.e.f.g.example.com c.d.e.f.g.example.com d.e.f.g.example.com e.f.g.example.com f.g.example.com g.example.com example.com com",
		},
		{
			name: "54 eight labels skip nothing",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=reject"`,
			ask:  "a.b.c.d.e.f.example.com",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.Reject, Source: "p", Organization: "example.com"},
			walk: "a.b.c.d.e.f.example.com b.c.d.e.f.example.com c.d.e.f.example.com d.e.f.example.com e.f.example.com f.example.com example.com com",
		},
		{
			name: "55 nine labels skip one",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=reject"`,
			ask:  "a.b.c.d.e.f.g.example.com",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.Reject, Source: "p", Organization: "example.com"},
			walk: "a.b.c.d.e.f.g.example.com c.d.e.f.g.example.com d.e.f.g.example.com e.f.g.example.com f.g.example.com g.example.com example.com com",
		},
		{
			name: "62 two records at an ancestor are passed over",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=reject"
				_dmarc.example.com TXT "v=DMARC1; p=none"
				_dmarc.mail.example.com TXT "v=DMARC1; p=quarantine; sp=reject"`,
			ask:  "a.mail.example.com",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "mail.example.com", Policy: dmarc.Reject, Source: "sp", Organization: "mail.example.com"},
			walk: "a.mail.example.com mail.example.com example.com com",
		},
		{
			name: "psd of several records does not end the walk",
			zone: `_dmarc.mail.example.com TXT "v=DMARC1; p=none; psd=n"
				_dmarc.mail.example.com TXT "v=DMARC1; p=reject; psd=n"`,
			ask:  "mail.example.com",
			want: dmarc.Discovery{Status: dmarc.StatusMultiple, Organization: "mail.example.com", Existence: dmarc.Exists},
			walk: "mail.example.com example.com com",
		},
		{
			name: "64 a public suffix itself",
			zone: `_dmarc.bank.example TXT "v=DMARC1; p=reject; psd=y"`,
			ask:  "bank.example",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "bank.example", Policy: dmarc.Reject, Source: "p", Organization: "bank.example", Existence: dmarc.Exists},
			walk: "bank.example",
		},
		{
			name: "66 a long name below a public suffix",
			zone: `_dmarc.bank.example TXT "v=DMARC1; p=reject; psd=y"`,
			ask:  "a.b.c.d.e.f.g.h.bank.example",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "bank.example", Policy: dmarc.Reject, Source: "p", Organization: "h.bank.example"},
			walk: "a.b.c.d.e.f.g.h.bank.example d.e.f.g.h.bank.example e.f.g.h.bank.example f.g.h.bank.example g.h.bank.example h.bank.example bank.example",
		},
		{
			name: "an organizational domain that the walk skips",
			zone: `_dmarc.c.d.e.f.g.h.example TXT "v=DMARC1; p=reject; psd=y"
				_dmarc.b.c.d.e.f.g.h.example TXT "v=DMARC1; p=none"`,
			ask:  "a.b.c.d.e.f.g.h.example",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "c.d.e.f.g.h.example", Policy: dmarc.Reject, Source: "p", Organization: "b.c.d.e.f.g.h.example"},
			walk: "a.b.c.d.e.f.g.h.example c.d.e.f.g.h.example",
		},
		{
			name: "67 a top-level domain without psd",
			zone: `_dmarc.example TXT "v=DMARC1; p=none"
				_dmarc.corp.example TXT "v=DMARC1; p=reject"`,
			ask:  "mail.corp.example",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example", Policy: dmarc.None, Source: "p", Organization: "example"},
			walk: "mail.corp.example corp.example example",
		},
		{
			name: "68 psd=n guards against that",
			zone: `_dmarc.example TXT "v=DMARC1; p=none"
				_dmarc.corp.example TXT "v=DMARC1; p=reject; psd=n"`,
			ask:  "mail.corp.example",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "corp.example", Policy: dmarc.Reject, Source: "p", Organization: "corp.example"},
			walk: "mail.corp.example corp.example",
		},
		{
			name: "what is above psd=n need not be looked up",
			zone: `_dmarc.example.com TXT "v=DMARC1; p=reject; psd=n"
				_dmarc.com INCONCLUSIVE`,
			ask:  "www.example.com",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example.com", Policy: dmarc.Reject, Source: "p", Organization: "example.com"},
			walk: "www.example.com example.com",
		},
		{
			name: "a single label",
			zone: `_dmarc.example TXT "v=DMARC1; p=reject"`,
			ask:  "example",
			want: dmarc.Discovery{Status: dmarc.StatusOK, RecordDomain: "example", Policy: dmarc.Reject, Source: "p", Organization: "example", Existence: dmarc.Exists},
			walk: "example",
		},
	})
}

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
