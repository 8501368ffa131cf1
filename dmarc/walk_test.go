package dmarc_test

import (
	"testing"

	"github.com/dmarcd/dmarcd/dmarc"
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
