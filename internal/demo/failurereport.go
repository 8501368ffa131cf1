package demo

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"text/template"
	"time"

	"github.com/dmarcd/dmarcd"
)

// failureOdds is how likely it is that a receiver reports a single failure of a day:
// most receivers send no failure reports, and those that do send few.
const failureOdds = 0.06

// failures returns the failure reports about one day of a domain.
func (s *Scenario) failures(d *domain, ago int, rows [][]row, dice *rand.Rand) []Document {
	if !d.failureReports {
		return nil
	}
	var documents []Document
	for i := range receivers {
		r := &receivers[i]
		if !r.failures || dice.Float64() > failureOdds {
			continue
		}
		failed := failing(rows[i])
		if len(failed) > 0 {
			documents = append(documents, s.failureReport(d, r, ago, failed[dice.IntN(len(failed))], dice))
		}
	}
	return documents
}

// failing returns the rows of mail that failed.
func failing(rows []row) []row {
	var failed []row
	for _, row := range rows {
		if !row.record.Compliant() {
			failed = append(failed, row)
		}
	}
	return failed
}

// failureMail is a failure report about one message: RFC 9991 in the form of RFC
// 6591, with the header of the message.
var failureMail = template.Must(template.New("").Parse(`From: DMARC failure reports <noreply-dmarc@{{.Receiver}}>
To: {{.To}}
Subject: DMARC failure report for {{.Domain}}
Date: {{.Sent}}
Message-ID: <{{.ID}}@{{.Receiver}}>
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report; boundary="{{.ID}}"

--{{.ID}}
Content-Type: text/plain; charset=utf-8

This is a report about one message that claimed to be from {{.Domain}}.

--{{.ID}}
Content-Type: message/feedback-report

Feedback-Type: auth-failure
User-Agent: dmarcd-demo/1.0
Version: 1
Auth-Failure: dmarc
Identity-Alignment: dkim, spf
Authentication-Results: mx.{{.Receiver}}; dmarc=fail header.from={{.From}};
 spf={{.SPF}} smtp.mailfrom={{.Envelope}}
Original-Mail-From: <{{.Local}}@{{.Envelope}}>
Arrival-Date: {{.Arrived}}
Reporting-MTA: dns; mx.{{.Receiver}}
Source-IP: {{.Source}}
Reported-Domain: {{.From}}
Delivery-Result: {{.Result}}

--{{.ID}}
Content-Type: text/rfc822-headers

From: {{.Local}}@{{.From}}
To: someone@{{.Receiver}}
Subject: {{.Subject}}
Date: {{.Arrived}}
Message-ID: <{{.ID}}.original@{{.From}}>

--{{.ID}}--
`))

// subjects are those of mails that failed.
var subjects = []string{"Your invoice", "Ticket 48213 was updated", "Please confirm your account", "Order received", "Payment overdue"}

// results are the words of RFC 6591 §3.2.2 for what receivers did.
var results = map[string]string{"none": "delivered", "quarantine": "spam", "reject": "reject"}

func (s *Scenario) failureReport(d *domain, r *receiver, ago int, failed row, dice *rand.Rand) Document {
	arrived := s.dayBefore(ago).Add(time.Duration(dice.IntN(24*60*60)) * time.Second)
	record := &failed.record
	id := fmt.Sprintf("%016x", dice.Uint64())
	fields := map[string]string{
		"Receiver": r.domain, "To": s.options.ReportAddress(d.name), "Domain": d.name, "ID": id,
		"Sent": arrived.Add(time.Minute).Format(time.RFC1123Z), "Arrived": arrived.Format(time.RFC1123Z),
		"From": record.HeaderFrom, "Envelope": record.EnvelopeFrom, "Local": "service",
		"SPF": string(record.SPFResults[0].Result), "Source": record.Source,
		"Result": results[string(record.Disposition)], "Subject": subjects[dice.IntN(len(subjects))],
	}
	name := fmt.Sprintf("%s-%s.eml", r.domain, id)
	document := s.document(dmarcd.KindFailure, d, name, ago, func(w *bytes.Buffer) error {
		var lines strings.Builder
		if err := failureMail.Execute(&lines, fields); err != nil {
			return err
		}
		_, err := w.WriteString(strings.ReplaceAll(lines.String(), "\n", "\r\n"))
		return err
	})
	document.SentAt = arrived.Add(time.Minute)
	return document
}
