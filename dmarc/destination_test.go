package dmarc_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
)

func TestDestinations(t *testing.T) {
	t.Parallel()
	const (
		name = "blue.example.com._report._dmarc.red.example.net"
		rua  = "v=DMARC1; p=none; rua=mailto:r@red.example.net"
	)
	for _, tt := range []struct {
		name, zone, record string
		consent            dmarc.Consent
		queried            string
		replacements       []dmarc.URI
	}{
		{name: "84 the name asked for", record: rua, consent: dmarc.NotAuthorized, queried: name},
		{name: "5 the shortest consent", record: rua, zone: name + ` TXT "v=DMARC1;"`, consent: dmarc.Authorized, queried: name},
		{name: "consent without a semicolon", record: rua, zone: name + ` TXT "v=DMARC1"`, consent: dmarc.Authorized, queried: name},
		{name: "85 a replacement elsewhere", record: rua, zone: name + ` TXT "v=DMARC1; rua=mailto:x@other.example"`, consent: dmarc.NotAuthorized, queried: name},
		{
			name: "86 unrelated text beside it", record: rua, consent: dmarc.Authorized, queried: name,
			zone: name + ` TXT "hello"` + "\n" + name + ` TXT "v=DMARC1"`,
		},
		{name: "unrelated text alone", record: rua, zone: name + ` TXT "hello"`, consent: dmarc.NotAuthorized, queried: name},
		{name: "another type at the name", record: rua, zone: name + ` A 192.0.2.1`, consent: dmarc.NotAuthorized, queried: name},
		{
			name: "consent twice", record: rua, consent: dmarc.Authorized, queried: name,
			zone: name + ` TXT "v=DMARC1"` + "\n" + name + ` TXT "v=DMARC1; p=none"`,
		},
		{name: "a wildcard", record: rua, zone: `*._report._dmarc.red.example.net TXT "v=DMARC1"`, consent: dmarc.Authorized, queried: name},
		{
			name: "a name of its own hides the wildcard", record: rua, consent: dmarc.NotAuthorized, queried: name,
			zone: `*._report._dmarc.red.example.net TXT "v=DMARC1"` + "\n" + name + ` TXT "no"`,
		},
		{name: "inconclusive", record: rua, zone: name + ` INCONCLUSIVE`, consent: dmarc.ConsentUnknown, queried: name},
		{
			name: "a replacement at the same host", record: rua, consent: dmarc.Authorized, queried: name,
			zone: name + ` TXT "v=DMARC1; rua=mailto:new@red.example.net"`, replacements: mailboxes("new@red.example.net"),
		},
		{
			name: "only the replacement at the same host", record: rua, consent: dmarc.Authorized, queried: name,
			zone: name + ` TXT "v=DMARC1; rua=mailto:x@other.example,mailto:new@red.example.net"`, replacements: mailboxes("new@red.example.net"),
		},
		{
			name: "ruf does not replace rua", record: rua, consent: dmarc.Authorized, queried: name,
			zone: name + ` TXT "v=DMARC1; ruf=mailto:x@other.example"`,
		},
		{
			name: "ruf replaces ruf", record: "v=DMARC1; p=none; ruf=mailto:r@red.example.net", consent: dmarc.Authorized, queried: name,
			zone: name + ` TXT "v=DMARC1; ruf=mailto:f@red.example.net; rua=mailto:x@other.example"`, replacements: mailboxes("f@red.example.net"),
		},
		{name: "the same name", record: "v=DMARC1; p=none; rua=mailto:r@BLUE.example.com", consent: dmarc.NotNeeded},
		{
			name: "the same organizational domain", record: "v=DMARC1; p=none; rua=mailto:r@example.com", consent: dmarc.NotNeeded,
			zone: `_dmarc.example.com TXT "v=DMARC1; p=none"`,
		},
		{
			name: "the same organizational domain cannot be told", record: "v=DMARC1; p=none; rua=mailto:r@example.com", consent: dmarc.ConsentUnknown,
			zone: `_dmarc.example.com INCONCLUSIVE`,
		},
		{name: "another scheme", record: "v=DMARC1; p=none; rua=https://red.example.net/x", zone: name + ` TXT "v=DMARC1"`, consent: dmarc.Authorized, queried: name},
		{name: "no host", record: "v=DMARC1; p=none; rua=urn:x", consent: dmarc.NotAuthorized},
		{name: "an address for a host", record: "v=DMARC1; p=none; rua=https://[2001:db8::1]/", consent: dmarc.NotAuthorized},
		{name: "a host too long for the question", record: "v=DMARC1; p=none; rua=mailto:r@" + strings.Repeat("x.", 120) + "net", consent: dmarc.NotAuthorized},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			record, _ := dmarc.Parse(tt.record)
			got := dmarc.Destinations(t.Context(), dnstest.New(tt.zone), "Blue.example.com.", record)
			want := []dmarc.Destination{{Tag: "rua", Consent: tt.consent, Queried: tt.queried, Replacements: tt.replacements}}
			if len(record.RUA) > 0 {
				want[0].URI = record.RUA[0]
			} else {
				want[0].Tag, want[0].URI = "ruf", record.RUF[0]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("destinations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDestinationsInOrder(t *testing.T) {
	t.Parallel()
	zone := dnstest.New(`example.com._report._dmarc.reports.example TXT "v=DMARC1"`)
	record, _ := dmarc.Parse("v=DMARC1; p=none; ruf=mailto:f@reports.example; rua=mailto:a@reports.example,mailto:b@example.com")
	var got []string
	for _, d := range dmarc.Destinations(t.Context(), zone, "example.com", record) {
		got = append(got, fmt.Sprint(d.Tag, " ", d.URI.Address, ": ", d.Consent))
	}
	want := []string{"rua a@reports.example: authorized", "rua b@example.com: not needed", "ruf f@reports.example: authorized"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q want %q", got, want)
	}
	asked := []dns.Question{{Name: "example.com._report._dmarc.reports.example", Type: dns.TXT}}
	if got := zone.Asked(); !slices.Equal(got, asked) {
		t.Errorf("questions: got %v want %v", got, asked)
	}
}

func TestDestinationsBound(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("v=DMARC1; p=none; rua=mailto:a@h0.example")
	for i := range 90 {
		fmt.Fprintf(&b, ",mailto:a@h%d.example", i+1)
	}
	record, _ := dmarc.Parse(b.String())
	zone := dnstest.New("")
	got := dmarc.Destinations(t.Context(), zone, "example.com", record)
	if len(got) != 91 {
		t.Errorf("destinations: got %d want 91", len(got))
	}
	if n := len(zone.Asked()); n != 20 {
		t.Errorf("questions: got %d want 20", n)
	}
	if first, last := got[0].Consent, got[90].Consent; first != dmarc.NotAuthorized || last != dmarc.ConsentUnknown {
		t.Errorf("got %v and %v want %v and %v", first, last, dmarc.NotAuthorized, dmarc.ConsentUnknown)
	}
}

func TestConsentName(t *testing.T) {
	t.Parallel()
	name, ok := dmarc.ConsentName("Blue.example.com", "RED.example.net.")
	if want := "blue.example.com._report._dmarc.red.example.net"; name != want || !ok {
		t.Errorf("got %q %v want %q true", name, ok, want)
	}
	if name, ok := dmarc.ConsentName(strings.Repeat("x", 64), "example.net"); ok {
		t.Errorf("got %q, which has a label of 64 octets", name)
	}
}
