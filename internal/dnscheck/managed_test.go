package dnscheck_test

import (
	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
)

// managed are the managed records of managedCases.
var managed = dnscheck.Request{Managed: []dnscheck.Managed{
	{Kind: dmarcd.RecordDMARC, Target: "d.dns.example.net", Content: "v=DMARC1; p=reject"},
	{Kind: dmarcd.RecordSPF, Target: "s.dns.example.net", Term: "redirect=s.dns.example.net", Content: "v=spf1 ip4:192.0.2.1 -all"},
	{Kind: dmarcd.RecordTLSRPT, Target: "t.dns.example.net", Content: "v=TLSRPTv1; rua=mailto:t@example.com"},
}}

// managedCases compare managed records with the DNS.
var managedCases = []findingCase{
	{
		name: "managed records as they were published", request: managed,
		zone: without("_dmarc", "_smtp") + `
			_dmarc.example.com     CNAME d.dns.example.net
			d.dns.example.net      TXT   "v=DMARC1; p=reject"
			_smtp._tls.example.com CNAME t.dns.example.net
			t.dns.example.net      TXT   "v=TLSRPTv1; rua=mailto:t@example.com"`,
		not: []string{"dmarc.managed_elsewhere", "dmarc.managed_differs", "tls_rpt.managed_elsewhere", "tls_rpt.managed_differs"},
	},
	{
		name: "managed records whose CNAME records are gone", request: managed, zone: without("_dmarc", "_smtp"),
		want: []string{"dmarc.managed_elsewhere", "tls_rpt.managed_elsewhere"}, not: []string{"dmarc.managed_differs", "tls_rpt.managed_differs"},
		message: "_dmarc.example.com has no CNAME record to d.dns.example.net",
	},
	{
		name: "records of the domain's own instead of managed ones", request: managed, zone: sound,
		want: []string{"dmarc.managed_elsewhere", "tls_rpt.managed_elsewhere"},
	},
	{
		name: "the CNAME record of another service, and another record in the zone", request: managed,
		zone: without("_dmarc", "_smtp") + `
			_dmarc.example.com     CNAME d.example.net
			d.example.net          TXT   "v=DMARC1; p=reject"
			_smtp._tls.example.com CNAME t.dns.example.net
			t.dns.example.net      TXT   "v=TLSRPTv1; rua=mailto:other@example.com"`,
		want: []string{"dmarc.managed_elsewhere", "tls_rpt.managed_differs"}, not: []string{"tls_rpt.managed_elsewhere"},
	},
	{
		name: "an old version of a managed record", request: managed,
		zone: without("_dmarc") + `
			_dmarc.example.com CNAME d.dns.example.net
			d.dns.example.net  TXT   "v=DMARC1; p=none"`,
		want: []string{"dmarc.managed_differs"}, not: []string{"dmarc.managed_elsewhere"},
		message: "v=DMARC1; p=none",
	},
	{
		name: "managed records without an answer", request: managed,
		zone: without("_dmarc", "_smtp") + `
			_dmarc.example.com     INCONCLUSIVE
			_smtp._tls.example.com INCONCLUSIVE`,
		not: []string{"dmarc.managed_elsewhere", "tls_rpt.managed_elsewhere"},
	},
	{
		name: "a managed SPF record as it is served", request: managed,
		zone: without("v=spf1") + `
			example.com       TXT "v=spf1 redirect=S.dns.example.net"
			s.dns.example.net TXT "v=spf1 ip4:192.0.2.1 -all"`,
		not: []string{"spf.managed_elsewhere", "spf.managed_differs"},
	},
	{
		name: "an SPF record that does not lead to the managed one", request: managed, zone: sound,
		want: []string{"spf.managed_elsewhere"}, not: []string{"spf.managed_differs"},
		message: "does not have the term redirect=s.dns.example.net",
	},
	{
		name: "an SPF record that includes what should replace it", request: managed,
		zone: without("v=spf1") + `
			example.com       TXT "v=spf1 include:s.dns.example.net -all"
			s.dns.example.net TXT "v=spf1 ip4:192.0.2.1 -all"`,
		want: []string{"spf.managed_elsewhere"},
	},
	{
		name: "no SPF record instead of the managed one", request: managed, zone: without("v=spf1"), want: []string{"spf.managed_elsewhere"},
	},
	{
		name: "an old version of a managed SPF record", request: managed,
		zone: without("v=spf1") + `
			example.com       TXT "v=spf1 redirect=s.dns.example.net"
			s.dns.example.net TXT "v=spf1 ip4:192.0.2.7 -all"`,
		want: []string{"spf.managed_differs"}, not: []string{"spf.managed_elsewhere"},
		message: "v=spf1 ip4:192.0.2.7 -all",
	},
	{
		name: "a managed SPF record without an answer", request: managed,
		zone: without("v=spf1") + "\n\t\t\texample.com INCONCLUSIVE",
		not:  []string{"spf.managed_elsewhere", "spf.managed_differs"},
	},
	{
		name: "a record at the domain's own server", zone: sound,
		request: dnscheck.Request{Managed: []dnscheck.Managed{{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=reject; rua=mailto:dmarc@example.com"}}},
		not:     []string{"dmarc.managed_elsewhere", "dmarc.managed_differs"},
	},
	{
		name: "a record that was changed at the domain's own server", zone: without("_dmarc"),
		request: dnscheck.Request{Managed: []dnscheck.Managed{{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=reject"}}},
		want:    []string{"dmarc.managed_differs"}, not: []string{"dmarc.managed_elsewhere"},
		message: "none",
	},
	{
		name: "a managed policy and logo as they were published", request: managedElse,
		zone: without("_mta-sts", "mta-sts") + `
			_mta-sts.example.com      CNAME m.dns.example.net
			mta-sts.example.com       CNAME m.dns.example.net
			m.dns.example.net         TXT   "v=STSv1; id=1"
			default._bimi.example.com CNAME b.dns.example.net
			b.dns.example.net         TXT   "v=BIMI1; l="`,
		not: []string{"mta_sts.managed_elsewhere", "bimi.managed_elsewhere", "bimi.managed_differs"},
	},
	{
		name: "a managed policy without the CNAME record of its host", request: managedElse,
		zone: without("_mta-sts", "mta-sts") + `
			_mta-sts.example.com CNAME m.dns.example.net
			m.dns.example.net    TXT   "v=STSv1; id=1"`,
		want: []string{"mta_sts.managed_elsewhere", "bimi.managed_elsewhere"}, not: []string{"bimi.managed_differs"},
	},
	{
		name: "another BIMI record in the zone", request: managedElse,
		zone: sound + `
			default._bimi.example.com CNAME b.dns.example.net
			b.dns.example.net         TXT   "v=BIMI1; l=https://www.example.com/old.svg"`,
		want: []string{"bimi.managed_differs", "mta_sts.managed_elsewhere"}, not: []string{"bimi.managed_elsewhere"},
	},
	{
		name: "a managed policy without an answer", request: managedElse,
		zone: without("_mta-sts", "mta-sts") + `
			_mta-sts.example.com      INCONCLUSIVE
			mta-sts.example.com       INCONCLUSIVE
			default._bimi.example.com INCONCLUSIVE`,
		not: []string{"mta_sts.managed_elsewhere", "bimi.managed_elsewhere"},
	},
}

// managedElse are the managed records whose CNAME records are looked up apart.
var managedElse = dnscheck.Request{Managed: []dnscheck.Managed{
	{Kind: dmarcd.RecordMTASTS, Target: "m.dns.example.net", Content: "version: STSv1\nmode: testing\nmx: mx.example.com\nmax_age: 604800"},
	{Kind: dmarcd.RecordBIMI, Target: "b.dns.example.net", Content: "v=BIMI1; l="},
}}
