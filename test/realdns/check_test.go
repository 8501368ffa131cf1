package realdns_test

import (
	"context"
	"crypto/x509"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/certtest"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/outbound"
)

// statuses is what a test compares of a check: the states of the parts.
type statuses struct {
	DMARC, Policy, SPF, MX, MTASTS, Fetch, TLSRPT, DANE, DNSSEC string
}

// good is how the domain of mailZones stands.
func good() statuses {
	return statuses{
		DMARC: "ok", Policy: "reject", SPF: "ok", MX: "ok", MTASTS: "ok", Fetch: "ok",
		TLSRPT: "ok", DANE: "ok", DNSSEC: "signed",
	}
}

func statusesOf(c facts.Check) statuses {
	f := c.Facts
	return statuses{
		DMARC: f.DMARC.Status, Policy: f.DMARC.Policy, SPF: f.SPF.Status, MX: f.MX.Status,
		MTASTS: f.MTASTS.Status, Fetch: f.MTASTS.Fetch, TLSRPT: f.TLSRPT.Status, DANE: f.DANE.Status,
		DNSSEC: f.DNSSEC.Status,
	}
}

// office is a domain with mail, and what a check of it needs.
type office struct {
	*network
	zones   []zone
	host    *policyHost
	options dnscheck.Options
}

const policy = "version: STSv1\r\nmode: enforce\r\nmx: *.example.test\r\nmax_age: 2419200\r\n"

func startOffice(t *testing.T) *office {
	t.Helper()
	certificate := certtest.New(t, nil, x509.Certificate{DNSNames: []string{"mail.example.test"}}).Leaf
	o := &office{zones: mailZones(t, certificate), host: startPolicyHost(t, "mta-sts.example.test")}
	o.network = startNetwork(t, o.zones...)
	o.host.serve(policy)
	o.options = dnscheck.Options{
		Resolver: newResolver(t, o.unbound.address).Fresh(),
		Dialer:   outbound.Dialer{Allow: loopback(), Connect: o.host.dial},
		WebRoots: o.host.roots,
		DialMX: func(context.Context, string, string) ([]*x509.Certificate, error) {
			return []*x509.Certificate{certificate}, nil
		},
		Now: time.Now,
	}
	return o
}

// examine checks the domain. One of its selectors is known from a report.
func (o *office) examine(t *testing.T) facts.Check {
	t.Helper()
	return dnscheck.New(o.options).Examine(t.Context(), dnscheck.Request{
		Domain: "example.test",
		Selectors: []dnscheck.Selector{
			{Name: "s1", From: dnscheck.FromOwner},
			{Name: "s2", From: dnscheck.FromReport},
		},
	})
}

// wantFindings wants a check to have findings with some ids.
func wantFindings(t *testing.T, c facts.Check, ids ...string) {
	t.Helper()
	var got []string
	for _, f := range c.Findings {
		got = append(got, f.ID)
	}
	for _, id := range ids {
		if !slices.Contains(got, id) {
			t.Errorf("got findings %q want %s among them", got, id)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	got := startOffice(t).examine(t)
	if diff := cmp.Diff(good(), statusesOf(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.Grade != "A+" {
		t.Errorf("got grade %q want A+", got.Grade)
	}
	for _, f := range got.Findings {
		if f.Level != dmarcd.LevelGood {
			t.Errorf("got finding %s of level %s (%s) want good ones only", f.ID, f.Level, f.What)
		}
	}
	wantFindings(t, got, "dmarc.reject", "spf.valid", "dkim.found", "mta_sts.enforced", "dane.protected", "dnssec.signed")
	destinations := []facts.Destination{{
		Tag: "rua", URI: "mailto:dmarc@provider.test", Address: "dmarc@provider.test", Host: "provider.test",
		Consent: "authorized", Queried: "example.test._report._dmarc.provider.test", Mail: "yes",
	}}
	if diff := cmp.Diff(destinations, got.Facts.DMARC.Destinations); diff != "" {
		t.Errorf("destinations (-want +got):\n%s", diff)
	}
	hosts := []facts.MXHost{{Name: "mail.example.test", Preference: 10, Status: "ok", Addresses: []string{"192.0.2.25", "2001:db8::25"}}}
	if diff := cmp.Diff(hosts, got.Facts.MX.Hosts); diff != "" {
		t.Errorf("MX hosts (-want +got):\n%s", diff)
	}
	type key struct {
		Selector, From, Status, Algorithm string
		Bits                              int
		Alias                             string
	}
	var keys []key
	for _, k := range got.Facts.DKIM.Keys {
		keys = append(keys, key{k.Selector, k.From, k.Status, k.Algorithm, k.Bits, strings.Join(k.Aliases, " ")})
	}
	wantKeys := []key{
		{"s2", "report", "found", "ed25519", 256, "example.dkim.provider.test"},
		{"s1", "declared", "found", "rsa", 2048, ""},
	}
	if diff := cmp.Diff(wantKeys, keys); diff != "" {
		t.Errorf("DKIM keys (-want +got):\n%s", diff)
	}
	wantDNSSEC := facts.DNSSEC{
		Status: "signed", Zone: "example.test", Nameservers: []string{"ns.example.test"},
		Algorithms: []int{13}, Digests: []int{2},
	}
	if diff := cmp.Diff(wantDNSSEC, got.Facts.DNSSEC); diff != "" {
		t.Errorf("DNSSEC (-want +got):\n%s", diff)
	}
	sts := got.Facts.MTASTS
	if got.Facts.SPF.Lookups != 2 || sts.Mode != "enforce" || sts.MaxAge != 2419200 || !slices.Equal(sts.MX, []string{"*.example.test"}) {
		t.Errorf("got %d lookups of SPF, MTA-STS %+v want 2, %q", got.Facts.SPF.Lookups, sts, policy)
	}
}

// TestCheckWithoutValidation asks a server that validates nothing.
func TestCheckWithoutValidation(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	o := startOffice(t)
	o.options.Resolver = newResolver(t, o.knot.address)
	got := o.examine(t)
	want := good()
	want.DANE, want.DNSSEC = "insecure", "unvalidated"
	if diff := cmp.Diff(want, statusesOf(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	wantFindings(t, got, "dnssec.unvalidated", "dane.without_dnssec")
}
