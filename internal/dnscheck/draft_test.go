package dnscheck_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
)

// TestDrafts wants the findings of a record that is not published, whatever is.
func TestDrafts(t *testing.T) {
	t.Parallel()
	const policy = "version: STSv1\nmode: enforce\nmax_age: 604800\nmx: "
	web := newPolicyWeb(t)
	script := strings.Replace(logo, "<rect", "<script>alert(1)</script><rect", 1)
	remote := strings.Replace(logo, "<rect", `<image href="https://tracker.example/x.png"/><rect`, 1)
	for _, row := range []struct {
		name      string
		draft     dnscheck.Draft
		image     string
		want, not []string
		logo      bool
	}{
		{name: "SPF", draft: dnscheck.Draft{Part: dnscheck.PartSPF, Record: "v=spf1 mx -all"}, want: []string{"spf.valid"}},
		{name: "a long SPF record is one text", draft: dnscheck.Draft{Part: dnscheck.PartSPF, Record: "v=spf1 " + strings.Repeat("ip4:192.0.2.1 ", 20) + "-all"}, want: []string{"spf.duplicate_term"}, not: []string{"spf.syntax_error", "spf.long_string"}},
		{name: "SPF for everyone", draft: dnscheck.Draft{Part: dnscheck.PartSPF, Record: "v=spf1 +all"}, want: []string{"spf.pass_all"}},
		{name: "DMARC", draft: dnscheck.Draft{Part: dnscheck.PartDMARC, Record: "v=DMARC1; p=none; p=reject"}, want: []string{"dmarc.duplicate_tag"}},
		{name: "TLS-RPT", draft: dnscheck.Draft{Part: dnscheck.PartTLSRPT, Record: "v=TLSRPTv1; rua=nothing"}, want: []string{"tls_rpt.invalid_record"}},
		{name: "MTA-STS", draft: dnscheck.Draft{Part: dnscheck.PartMTASTS, Record: "v=STSv1; id=1", Policy: policy + "mx.example.com\n"}, want: []string{"mta_sts.enforced"}},
		{name: "MTA-STS for other servers", draft: dnscheck.Draft{Part: dnscheck.PartMTASTS, Record: "v=STSv1; id=1", Policy: policy + "mx.example.net\n"}, want: []string{"mta_sts.mx_not_covered"}, not: []string{"mta_sts.enforced"}},
		{name: "MTA-STS without a mode", draft: dnscheck.Draft{Part: dnscheck.PartMTASTS, Record: "v=STSv1; id=1", Policy: "version: STSv1\n"}, want: []string{"mta_sts.invalid_policy"}},
		{name: "a logo", draft: dnscheck.Draft{Part: dnscheck.PartBIMI, Record: "v=BIMI1; l=https://www.example.com/logo.svg"}, image: logo, want: []string{"bimi.no_evidence"}, logo: true},
		{name: "a logo with a script", draft: dnscheck.Draft{Part: dnscheck.PartBIMI, Record: "v=BIMI1; l=https://www.example.com/logo.svg"}, image: script, want: []string{"bimi.image"}},
		{name: "a logo that loads another", draft: dnscheck.Draft{Part: dnscheck.PartBIMI, Record: "v=BIMI1; l=https://www.example.com/logo.svg"}, image: remote, want: []string{"bimi.image"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			checker := dnscheck.New(dnscheck.Options{
				Resolver: dnstest.New(sound + webHost), Dialer: web.dialer(t, branded(row.image, "")), WebRoots: web.roots, Now: time.Now,
			})
			tried := checker.Try(t.Context(), dnscheck.Request{Domain: "example.com"}, row.draft)
			var ids []string
			for _, f := range tried.Findings {
				ids = append(ids, f.ID)
				if !strings.HasPrefix(f.ID, string(row.draft.Part)+".") {
					t.Errorf("got %s, want findings of %s alone", f.ID, row.draft.Part)
				}
			}
			for _, want := range row.want {
				if !slices.Contains(ids, want) {
					t.Errorf("got %v, want %s", ids, want)
				}
			}
			for _, not := range row.not {
				if slices.Contains(ids, not) {
					t.Errorf("got %v, want no %s", ids, not)
				}
			}
			if got := tried.Logo != nil; got != row.logo {
				t.Errorf("got a logo: %v, want %v", got, row.logo)
			}
		})
	}
}
