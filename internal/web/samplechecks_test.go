package web_test

import (
	"time"

	"github.com/dmarcd/dmarcd/internal/wire"
)

func sampleCheck() wire.KeptCheck {
	next := wire.Finding{
		ID: "dmarc.policy-not-reject", Level: "warning", What: "The policy is quarantine, not reject.",
		Why:    "Mail of strangers is delivered to a folder where people still find it.",
		Fix:    `Publish this record: _dmarc.example.com. TXT "v=DMARC1; p=reject; rua=mailto:r4x7@reports.example"`,
		Record: `_dmarc.example.com. TXT "v=DMARC1; p=reject; rua=mailto:r4x7@reports.example"`, RFC: "RFC 9989 §4.7", Points: 10,
	}
	return wire.KeptCheck{
		ID: "chk_1", FirstAt: wire.Time(now.AddDate(0, 0, -6)), LastAt: wire.Time(now.Add(-20 * time.Minute)),
		Check: wire.Check{
			Domain: sampleDomain, CheckedAt: wire.Time(now.Add(-20 * time.Minute)), Grade: "B",
			DMARC: wire.DMARC{Status: "ok", Record: "v=DMARC1; p=quarantine; rua=mailto:r4x7@reports.example", Policy: "quarantine"},
			SPF: wire.SPF{
				Status: "permerror", Reason: "Too many look-ups.", Record: "v=spf1 include:_spf.mailbox.example include:newsletter.example mx -all", Lookups: 12, VoidLookups: 1,
				Tree: []wire.SPFTerm{
					{Term: "include:_spf.mailbox.example", Target: "_spf.mailbox.example", Provider: "Mailbox Example", Cost: 8, Lookups: 8, Record: "v=spf1 include:a.mailbox.example ~all", Terms: []wire.SPFTerm{
						{Term: "include:a.mailbox.example", Cost: 7, Lookups: 8, Record: "v=spf1 ip4:192.0.2.0/24 ~all", Terms: []wire.SPFTerm{{Term: "ip4:192.0.2.0/24"}, {Term: "~all"}}},
						{Term: "~all"},
					}},
					{Term: "include:newsletter.example", Cost: 3, Lookups: 11, Note: "does not exist"},
					{Term: hostile, Cost: 1, Lookups: 12, Note: hostile},
					{Term: "-all"},
				},
			},
			DKIM: []wire.DKIMKey{
				{Selector: "s1", Status: "ok", Record: "v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQ", Algorithm: "rsa", Bits: 1024},
				{Selector: hostile, Status: "inconclusive", Reason: hostile},
			},
			MX:       []wire.MXHost{{Host: "mx1.example.com", Preference: 10, Status: "ok"}},
			MTASTS:   wire.MTASTS{Status: "none"},
			TLSRPT:   wire.TLSRPT{Status: "ok", Record: "v=TLSRPTv1; rua=mailto:r4x7@reports.example"},
			BIMI:     wire.BIMI{Status: "none"},
			DANE:     wire.DANE{Status: "insecure"},
			DNSSEC:   wire.DNSSEC{Status: "signed", Zone: sampleDomain},
			NextStep: &next,
			Findings: []wire.Finding{
				{ID: "spf.too-many-lookups", Level: "error", What: "The SPF record needs 12 look-ups, and receivers stop after 10.", Why: "Receivers treat the record as broken, and SPF never passes.", Fix: "Remove includes that are not used any more.", RFC: "RFC 7208 §4.6.4", Points: 20},
				next,
				{ID: "dkim.short-key", Level: "warning", What: "The key of the selector s1 has 1024 bits.", Why: "Keys of that length can be broken with effort.", Fix: "Make a key of 2048 bits.", RFC: "RFC 8301 §3.2", Points: 5},
				{ID: "mta-sts.missing", Level: "info", What: "There is no MTA-STS policy.", Why: hostile, RFC: "RFC 8461"},
				{ID: "dnssec.signed", Level: "good", What: "The zone is signed.", Why: "Answers cannot be forged on the way."},
			},
		},
		Changes: []wire.Change{
			{Path: "dmarc.record", Before: "v=DMARC1; p=none; rua=mailto:r4x7@reports.example", After: "v=DMARC1; p=quarantine; rua=mailto:r4x7@reports.example"},
			{Path: "spf.record", Before: "v=spf1 include:_spf.mailbox.example mx -all", After: "v=spf1 include:_spf.mailbox.example include:newsletter.example mx -all"},
			{Path: "spf.lookups", Before: "9", After: "12"},
			{Path: "spf.tree.include:_spf.mailbox.example.record", Before: "v=spf1 ip4:192.0.2.0/28 -all", After: "v=spf1 ip4:192.0.2.0/24 -all"},
			{Path: "dkim." + hostile, After: hostile},
			{Path: "dkim.s2.bits", After: "2048"},
			{Path: "dkim.s2.from", After: "probed"},
			{Path: "dkim.s2.record", After: "v=DKIM1; p=MIIB"},
			{Path: "dkim.s2.selector", After: "s2"},
			{Path: "dmarc.applied", Before: "none", After: "quarantine"},
			{Path: "dmarc.policy", Before: "none", After: "quarantine"},
			{Path: "findings.spf.too-many-lookups", After: "error"},
			{Path: "mx.mx1.example.com.addresses.192.0.2.2", Before: "192.0.2.2"},
			{Path: "tls_rpt.destinations.mailto:r4x7@reports.example", After: "mailto:r4x7@reports.example"},
			{Path: "tls_rpt.record", After: "v=TLSRPTv1; rua=mailto:r4x7@reports.example"},
			{Path: "tls_rpt.status", Before: "none", After: "ok"},
		},
	}
}

func sampleHistory() wire.Page[wire.KeptCheck] {
	first := sampleCheck()
	first.Changes, first.Grade = nil, "D"
	first.FirstAt, first.LastAt = wire.Time(now.AddDate(-1, 0, 0)), wire.Time(now.AddDate(0, 0, -6))
	next := "older"
	return wire.Page[wire.KeptCheck]{Items: []wire.KeptCheck{sampleCheck(), first}, Next: &next}
}

func sampleSetup() wire.Setup {
	address, checkedAt, yes, no := "r4x7@reports.example", wire.Time(now.Add(-20*time.Second)), true, false
	return wire.Setup{Domain: sampleDomain, ReportAddress: &address, CheckedAt: &checkedAt, Records: []wire.SetupRecord{
		{Purpose: "dmarc", Name: "_dmarc.example.com", Type: "TXT", Value: "v=DMARC1; p=none; rua=mailto:r4x7@reports.example", Seen: &yes, Why: "Receivers then send a report a day."},
		{Purpose: "report_authorization", Name: "example.com._report._dmarc.reports.example", Type: "TXT", Value: "v=DMARC1;", Why: "The report domain agrees to take reports about yours."},
		{Purpose: "tls_rpt", Name: "_smtp._tls.example.com", Type: "TXT", Value: "v=TLSRPTv1; rua=mailto:r4x7@reports.example", Seen: &no, Why: "Receivers then say whether mail to you came encrypted."},
	}}
}
