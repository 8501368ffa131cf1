package dnscheck_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/facts"
)

func TestSetup(t *testing.T) {
	t.Parallel()
	const address = "box@reports.example.net"
	seen := time.Unix(1_800_000_000, 0)
	domain := func(record, at string) dmarcd.Domain {
		return dmarcd.Domain{Name: "mail.example.com", Record: record, RecordDomain: at, ReportMailbox: "box", KnownAt: seen}
	}
	type step struct {
		purpose     dmarcd.SetupPurpose
		value       string
		known, seen bool
	}
	tls := step{dmarcd.SetupTLS, "v=TLSRPTv1; rua=mailto:" + address, false, false}
	consent := step{dmarcd.SetupConsent, "v=DMARC1", false, false}
	for _, row := range []struct {
		name         string
		domain       dmarcd.Domain
		reportDomain string
		baseURL      string
		published    facts.Published
		want         []step
	}{
		{name: "no report domain", domain: domain("", "")},
		{
			name: "no check yet", domain: dmarcd.Domain{Name: "mail.example.com", ReportMailbox: "box"}, reportDomain: "reports.example.net",
			want: []step{{dmarcd.SetupDMARC, "v=DMARC1; p=none; rua=mailto:" + address, false, false}, consent, tls},
		},
		{
			name: "a record without us", domain: domain("v=DMARC1; p=reject; rua=mailto:a@example.com", "mail.example.com"), reportDomain: "reports.example.net",
			want: []step{{dmarcd.SetupDMARC, "v=DMARC1; p=reject; rua=mailto:a@example.com,mailto:" + address, true, false}, consent, tls},
		},
		{
			name: "the record of the domain above", domain: domain("v=DMARC1; p=reject; sp=quarantine", "example.com"), reportDomain: "reports.example.net",
			want: []step{{dmarcd.SetupDMARC, "v=DMARC1; p=quarantine; rua=mailto:" + address, true, false}, consent, tls},
		},
		{
			name: "all is there", domain: domain("v=DMARC1; p=none; rua=mailto:BOX@reports.example.net", "mail.example.com"), reportDomain: "reports.example.net",
			published: facts.Published{Consent: "authorized", TLSRecord: "v=TLSRPTv1; rua=mailto:" + address, TLSKnown: true},
			want: []step{
				{dmarcd.SetupDMARC, "v=DMARC1; p=none; rua=mailto:BOX@reports.example.net", true, true},
				{dmarcd.SetupConsent, "v=DMARC1", true, true},
				{dmarcd.SetupTLS, "v=TLSRPTv1; rua=mailto:" + address, true, true},
			},
		},
		{
			name:   "the address of a deleted domain beside another team's",
			domain: domain("v=DMARC1; p=none; rua=mailto:Gone@reports.example.net,mailto:other@reports.example.net,mailto:gone@example.com", "mail.example.com"), reportDomain: "reports.example.net",
			want: []step{{dmarcd.SetupDMARC, "v=DMARC1; p=none; rua=mailto:other@reports.example.net,mailto:gone@example.com,mailto:" + address, true, false}, consent, tls},
		},
		{
			name:   "the address of a deleted domain beside ours",
			domain: domain("v=DMARC1; p=none; rua=mailto:"+address+",mailto:gone@reports.example.net", "mail.example.com"), reportDomain: "reports.example.net",
			want: []step{{dmarcd.SetupDMARC, "v=DMARC1; p=none; rua=mailto:" + address, true, true}, consent, tls},
		},
		{
			name: "one organization needs no consent", domain: domain("", ""), reportDomain: "reports.example.com",
			want: []step{
				{dmarcd.SetupDMARC, "v=DMARC1; p=none; rua=mailto:box@reports.example.com", true, false},
				{dmarcd.SetupTLS, "v=TLSRPTv1; rua=mailto:box@reports.example.com", false, false},
			},
		},
		{
			name: "TLS reports by HTTPS too", domain: domain("", ""), reportDomain: "reports.example.com", baseURL: "https://dmarc.example.com:8443/mail/api",
			want: []step{
				{dmarcd.SetupDMARC, "v=DMARC1; p=none; rua=mailto:box@reports.example.com", true, false},
				{dmarcd.SetupTLS, "v=TLSRPTv1; rua=mailto:box@reports.example.com,https://dmarc.example.com:8443/tlsrpt/box", false, false},
			},
		},
		{
			name: "TLS reports by HTTPS alone are asked for", domain: domain("", ""), reportDomain: "reports.example.com", baseURL: "https://dmarc.example.com/api",
			published: facts.Published{TLSRecord: "v=TLSRPTv1; rua=https://dmarc.example.com/tlsrpt/box", TLSKnown: true},
			want: []step{
				{dmarcd.SetupDMARC, "v=DMARC1; p=none; rua=mailto:box@reports.example.com", true, false},
				{dmarcd.SetupTLS, "v=TLSRPTv1; rua=mailto:box@reports.example.com,https://dmarc.example.com/tlsrpt/box", true, true},
			},
		},
		{
			name: "reporters speak no plain HTTP", domain: domain("", ""), reportDomain: "reports.example.com", baseURL: "http://localhost:8080/api",
			published: facts.Published{TLSRecord: "v=TLSRPTv1; rua=https://localhost:8080/tlsrpt/box", TLSKnown: true},
			want: []step{
				{dmarcd.SetupDMARC, "v=DMARC1; p=none; rua=mailto:box@reports.example.com", true, false},
				{dmarcd.SetupTLS, "v=TLSRPTv1; rua=mailto:box@reports.example.com", true, false},
			},
		},
		{name: "HTTPS without a report domain", domain: domain("", ""), baseURL: "https://dmarc.example.com/api"},
		{
			name: "the check saw that no consent is needed", domain: domain("v=DMARC1; p=none; rua=mailto:"+address, "mail.example.com"),
			reportDomain: "reports.example.net", published: facts.Published{Consent: "not needed"},
			want: []step{{dmarcd.SetupDMARC, "v=DMARC1; p=none; rua=mailto:" + address, true, true}, tls},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var got []step
			for _, r := range dnscheck.Setup(row.domain, row.reportDomain, row.baseURL, row.published, func(mailbox string) bool { return mailbox != "gone" }) {
				got = append(got, step{r.Purpose, r.Value, r.Known, r.Seen})
				if r.Name == "" || r.Why == "" {
					t.Errorf("got %+v, want a name and a reason", r)
				}
			}
			if diff := cmp.Diff(row.want, got, cmp.AllowUnexported(step{})); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}
