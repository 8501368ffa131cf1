package demo

import (
	"bytes"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
)

// brokenName is the name of a truncated file that a user uploads, brokenAgo how many days
// ago.
const (
	brokenName = "report of bigmail.xml"
	brokenAgo  = 7
)

// NonReports returns messages to the first team that are not reports: an automatic reply,
// received by mail, and a truncated report, which a user uploads.
func (s *Scenario) NonReports() []Document {
	return []Document{s.absence(), s.broken()}
}

// absence is the answer of a mailbox to mail that was not for it.
func (s *Scenario) absence() Document {
	const ago = 12
	sent := s.workday(ago)
	mail := strings.Join([]string{
		"From: Receiving desk <desk@telco.example>",
		"To: " + s.options.ReportAddress("brightpay.example"),
		"Subject: Automatic reply: Report domain: brightpay.example",
		"Date: " + sent.Format(time.RFC1123Z),
		"Message-ID: <away." + sent.Format("20060102") + "@telco.example>",
		"Auto-Submitted: auto-replied",
		"Content-Type: text/plain; charset=utf-8",
		"",
		"The desk is closed until Monday. Your message will be read then.",
		"",
	}, "\r\n")
	return Document{
		Intake: dmarcd.IntakeSMTP, Domain: "brightpay.example", Name: "automatic reply.eml", SentAt: sent, Content: []byte(mail),
	}
}

// broken is a report that ends in the middle of its first record.
func (s *Scenario) broken() Document {
	whole := s.documentsOf(&s.domains[0], brokenAgo+1)[0]
	begun, _, _ := bytes.Cut(whole.Content, []byte("</source_ip>"))
	return Document{
		Intake: dmarcd.IntakeUpload, Domain: whole.Domain, Name: brokenName, SentAt: s.workday(brokenAgo), Content: begun,
	}
}
