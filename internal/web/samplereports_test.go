package web_test

import (
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web"
)

func sampleRecords() []web.Record {
	return []web.Record{
		{
			Report: "rep_1", Reporter: "bigmail.example", Begin: now.AddDate(0, 0, -1), Address: "192.0.2.17", Messages: 12345,
			Disposition: "none", DKIM: "pass", SPF: "pass", HeaderFrom: sampleDomain, EnvelopeFrom: "bounce.example.com",
			DKIMResults: []string{"pass (example.com, s1)"}, SPFResults: []string{"pass (bounce.example.com)"},
		},
		{
			Report: "rep_1", Reporter: hostile, Begin: now.AddDate(0, 0, -1), Address: "2001:db8::bad", Messages: 3,
			Disposition: "reject", DKIM: "fail", SPF: "fail", HeaderFrom: hostile, EnvelopeFrom: formula,
			DKIMResults: []string{"fail (" + hostile + ")"}, SPFResults: []string{"softfail (evil.example)"}, Reasons: []string{"local_policy: " + hostile},
		},
		{Reporter: "mailbox.example", Begin: now, Address: "", Messages: 0, Disposition: "quarantine", HeaderFrom: ""},
	}
}

func sampleReports() []dmarcd.Report {
	report := func(id dmarcd.ReportID, kind dmarcd.ReportKind, organization string) dmarcd.Report {
		return dmarcd.Report{
			ID: id, Kind: kind, Organization: organization, ExternalID: "2026-11-14.0123456789", Domain: sampleDomain,
			Begin: now.AddDate(0, 0, -1), End: now.Add(-time.Second), Records: 3, Messages: 12348, Compliant: 12345,
			Intake: dmarcd.IntakeSMTP, ReceivedAt: now.Add(-3 * time.Hour), State: dmarcd.ReportCounted,
			Verdict: dmarcd.Verdict{
				Genuine: dmarcd.GenuineYes, From: "bigmail.example", Domain: "bigmail.example", DKIM: "pass", SPF: "pass", DMARC: "pass",
				Reason: "An aligned signature of bigmail.example verified.",
			},
		}
	}
	odd := report(2, dmarcd.KindAggregate, hostile)
	odd.ExternalID, odd.Domain, odd.Member, odd.Damage = formula, hostile, hostile, "The archive ends early."
	odd.Quirks = []dmarcd.Quirk{{Name: "missing-version", Count: 1}, {Name: hostile, Count: 3}}
	odd.Verdict = dmarcd.Verdict{Genuine: dmarcd.GenuineNo, From: hostile, Reason: hostile}
	odd.Intake, odd.State = dmarcd.IntakeUpload, dmarcd.ReportReplaced
	failure := report(3, dmarcd.KindFailure, "mailbox.example")
	failure.Verdict = dmarcd.Verdict{}
	return []dmarcd.Report{
		report(1, dmarcd.KindAggregate, "bigmail.example"), odd, failure, report(4, dmarcd.KindTLS, "bigmail.example"),
	}
}

func sampleDocument(r dmarcd.Report) web.ReportDocument {
	doc := web.ReportDocument{Report: r, Facts: []web.Fact{
		{Name: "Contact", Value: "postmaster@bigmail.example"}, {Name: "Policy", Value: "p=quarantine; sp=reject"}, {Name: "Comment", Value: hostile},
	}}
	switch r.Kind {
	case dmarcd.KindAggregate:
		doc.Records, doc.Next = sampleRecords(), "further"
	case dmarcd.KindFailure:
		doc.Message = "From: <x@example.com>\nSubject: " + hostile
	case dmarcd.KindTLS:
		doc.Policies = []web.TLSPolicy{{
			Type: "sts", Domain: sampleDomain, Successful: 5326, Failed: 303, Policy: []string{"version: STSv1", hostile},
			MailServers: []string{"*.mail.example.com"},
			Failures: []web.TLSFailure{
				{Result: "certificate-expired", Server: "mx1.mail.example.com", Address: "192.0.2.4", Sessions: 300},
				{Result: hostile, Server: hostile, Sessions: 3},
			},
		}}
	}
	return doc
}

func sampleReceipts() []dmarcd.Receipt {
	return []dmarcd.Receipt{
		{Kind: dmarcd.KindAggregate, Status: dmarcd.Stored, ID: 1, Organization: "bigmail.example", ExternalID: "2026-11-14.0123456789", Domain: sampleDomain, Records: 3, Messages: 12348, Member: "report.xml"},
		{Kind: dmarcd.KindAggregate, Status: dmarcd.Duplicate, ID: 1, Organization: "bigmail.example", Domain: sampleDomain},
		{Status: dmarcd.Refused, Member: hostile, Reason: "This is no report."},
	}
}

func sampleRejected() []dmarcd.Rejected {
	return []dmarcd.Rejected{
		{ID: 1, Refusal: dmarcd.Refusal{Kind: dmarcd.KindAggregate, Member: "inner.xml", Reason: "The XML ends in the middle of a record, and no record is complete."}, Intake: dmarcd.IntakeSMTP, Name: "bigmail.example!example.com!1.zip", ReceivedAt: now.AddDate(0, 0, -2), Size: 18231},
		{ID: 2, Refusal: dmarcd.Refusal{Reason: hostile}, Intake: dmarcd.IntakeUpload, Name: hostile, ReceivedAt: now.AddDate(0, 0, -3), Size: 0},
	}
}
