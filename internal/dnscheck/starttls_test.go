package dnscheck_test

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
)

// TestPinnedCertificate wants the dates of a certificate that a TLSA record names to matter
// only if MTA-STS applies.
func TestPinnedCertificate(t *testing.T) {
	t.Parallel()
	web := newPolicyWeb(t)
	pinned := protected(fmt.Sprintf("_25._tcp.mx.example.com TLSA 030001 %x\n", sha256.Sum256(web.mail.Raw)))
	c := findingCase{zone: pinned, signed: []string{"example.com"}, probed: true, now: func() time.Time { return time.Now().Add(2 * time.Hour) }}
	if got := ids(c.examine(t, web)); slices.Contains(got, "starttls.certificate_expired") || slices.Contains(got, "dane.no_match") {
		t.Errorf("without MTA-STS: got %v, want neither an expired certificate nor a mismatch", got)
	}
	c.zone += "\n" + stsRecord
	if got := ids(c.examine(t, web)); !slices.Contains(got, "starttls.certificate_expired") {
		t.Errorf("with MTA-STS: got %v, want the expired certificate", got)
	}
}

// TestProbedHosts wants three servers to be contacted, those without an address not to matter,
// and a problem to be reported although another server does not answer.
func TestProbedHosts(t *testing.T) {
	t.Parallel()
	web := newPolicyWeb(t)
	const servers = "example.com MX 20 m2.example.com\nm2.example.com A 192.0.2.2\nexample.com MX 30 m3.example.com\nm3.example.com A 192.0.2.3\nexample.com MX 40 m4.example.com\nm4.example.com A 192.0.2.4\n"
	for _, row := range []struct {
		name, zone, silent string
		after              time.Duration
		want               string
		dialled, problems  int
	}{
		{name: "all answer", zone: sound + servers, want: "ok", dialled: 3},
		{name: "one is silent", zone: sound + servers, silent: "m2.example.com", want: "inconclusive", dialled: 3},
		{name: "one is silent, others have expired", zone: sound + servers, silent: "m2.example.com", after: 2 * time.Hour, want: "ok", dialled: 3, problems: 2},
		{name: "the fourth is not asked", zone: sound + servers, silent: "m4.example.com", want: "ok", dialled: 3},
		{name: "no mail", zone: without("MX"), want: "ok"},
		{name: "no answer for MX", zone: without("MX") + "example.com MX INCONCLUSIVE", want: "inconclusive"},
		{name: "no answer for the address", zone: without("mx.example.com          A") + "mx.example.com A INCONCLUSIVE", silent: "mx.example.com", want: "inconclusive", dialled: 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			dialled := make(chan string, 100)
			dial := func(_ context.Context, host, _ string) ([]*x509.Certificate, error) {
				dialled <- host
				if host == row.silent {
					return nil, errors.New("no answer")
				}
				return []*x509.Certificate{web.mail}, nil
			}
			options := dnscheck.Options{Resolver: dnstest.New(row.zone), DialMX: dial, Now: func() time.Time { return time.Now().Add(row.after) }}
			got := dnscheck.New(options).Examine(t.Context(), dnscheck.Request{Domain: "example.com"}).Facts.STARTTLS
			if silent := slices.Contains(got.Silent, row.silent); silent != (row.silent != "" && row.silent != "m4.example.com") || len(got.Silent) > 1 {
				t.Errorf("got %v as silent, want %q", got.Silent, row.silent)
			}
			if got.Status != row.want || len(dialled) != row.dialled || len(got.Problems) != row.problems {
				t.Errorf("got %+v after %d connections, want %s with %d problems after %d", got, len(dialled), row.want, row.problems, row.dialled)
			}
		})
	}
}
