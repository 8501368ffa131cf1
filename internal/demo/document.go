package demo

import (
	"bytes"
	_ "embed" // for the text of failure reports
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"iter"
	"slices"
	"text/template"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// Document is a report as it was sent.
type Document struct {
	// Kind is "" for what is no report.
	Kind   dmarcd.ReportKind
	Intake dmarcd.Intake
	Domain string
	// Name is that of the file: an XML or JSON document, or a mail.
	Name string
	// SentAt is when the reporter sent it.
	SentAt time.Time
	// Content is the document. It is the receiver's to keep.
	Content []byte
}

// DocumentsAbout returns the reports about the UTC day of a moment of the scenario.
func (s *Scenario) DocumentsAbout(at time.Time) iter.Seq[Document] {
	return func(yield func(Document) bool) {
		for i := range s.scenarioData.Domains {
			for _, document := range s.dayOf(&s.scenarioData.Domains[i], s.ago(at)).documents() {
				if !yield(document) {
					return
				}
			}
		}
	}
}

// documents returns the reports about the day.
func (d *domainDay) documents() []Document {
	var documents []Document
	asksForTLS := len(d.ask("_smtp._tls."+d.domain.Name, dns.TXT)) > 0
	for i, records := range d.mail() {
		r := &d.Receivers[i]
		if len(records) > 0 {
			documents = append(documents, d.aggregate(r, records))
		}
		records = slices.DeleteFunc(records, aggregate.Record.Compliant)
		// Most receivers send no failure reports, and those that do send few.
		if len(d.policy.RUF) > 0 && r.Failures && len(records) > 0 && d.dice.Float64() < 0.06 {
			documents = append(documents, d.failure(r, records[d.dice.IntN(len(records))]))
		}
		if asksForTLS && r.TLS {
			documents = append(documents, d.tls(r))
		}
	}
	return documents
}

// document returns a report that write writes. It is sent a few hours after the day
// that it is about.
func (d *domainDay) document(kind dmarcd.ReportKind, name string, write func(w *bytes.Buffer) error) Document {
	const sent = 4 * time.Hour
	var content bytes.Buffer
	if err := write(&content); err != nil {
		panic("demo: a buffer refused a report: " + err.Error()) // it never does
	}
	return Document{
		Kind: kind, Intake: dmarcd.IntakeSMTP, Domain: d.domain.Name, Name: name,
		SentAt: d.dayBefore(d.ago - 1).Add(sent), Content: content.Bytes(),
	}
}

// span returns the first and the last second of the day.
func (d *domainDay) span() (begin, end int64) {
	return d.dayBefore(d.ago).Unix(), d.dayBefore(d.ago-1).Unix() - 1
}

// fileName returns the name of the file of a report.
func (d *domainDay) fileName(r *receiver, extension string) string {
	begin, end := d.span()
	return fmt.Sprintf("%s!%s!%d!%d.%s", r.Domain, d.domain.Name, begin, end, extension)
}

// reportID returns an id that no other report of the receiver has.
func (d *domainDay) reportID(r *receiver) string {
	hash := fnv.New64a()
	_, _ = fmt.Fprint(hash, d.options.Seed, d.domain.Name, r.Domain) // never fails
	return fmt.Sprintf("%s.%016x", d.dayBefore(d.ago).Format("20060102"), hash.Sum64())
}

func (d *domainDay) aggregate(r *receiver, records []aggregate.Record) Document {
	begin, end := d.span()
	report := aggregate.Report{
		Version: "1.0",
		Metadata: aggregate.Metadata{
			OrgName: r.Name, Email: "dmarc-noreply@" + r.Domain, ReportID: d.reportID(r),
			Begin: begin, End: end, Generator: "dmarcd demo",
		},
		Policy: aggregate.PublishedPolicy{
			Domain: d.domain.Name, P: aggregate.Policy(d.policy.P.String()), ADKIM: "r", ASPF: "r", Testing: "n", DiscoveryMethod: r.Method,
		},
	}
	if d.policy.Testing {
		report.Policy.Testing = "y"
	}
	if len(d.policy.RUF) > 0 {
		report.Policy.FailureOptions = "1"
	}
	return d.document(dmarcd.KindAggregate, d.fileName(r, "xml"), func(w *bytes.Buffer) error {
		return aggregate.Render(w, report, slices.Values(records))
	})
}

// failureMail is a failure report about one message: RFC 9991 in the form of RFC
// 6591, with the header of the message.
//
//go:embed failure.eml
var failureMail string

var failureTemplate = template.Must(template.New("").Parse(failureMail))

func (d *domainDay) failure(r *receiver, failed aggregate.Record) Document {
	arrived := d.dayBefore(d.ago).Add(time.Duration(d.dice.IntN(24*60*60)) * time.Second)
	sent := arrived.Add(time.Minute)
	fields := struct {
		aggregate.Record
		Receiver, Domain, To, ID, Arrived, Sent, Subject string
	}{
		failed, r.Domain, d.domain.Name, d.options.ReportAddress(d.domain.Name), fmt.Sprintf("%016x", d.dice.Uint64()),
		arrived.Format(time.RFC1123Z), sent.Format(time.RFC1123Z), d.Subjects[d.dice.IntN(len(d.Subjects))],
	}
	document := d.document(dmarcd.KindFailure, r.Domain+"-"+fields.ID+".eml", func(w *bytes.Buffer) error {
		return failureTemplate.Execute(w, fields)
	})
	document.Content, document.SentAt = asMail(document.Content), sent
	return document
}

// asMail returns a text with the ends of lines that mail has.
func asMail(text []byte) []byte { return bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")) }

// The days before the present on which a certificate had run out.
const (
	certificateExpired = 33
	certificateRenewed = 30
)

// tls returns what became of the sessions with the host of the domain.
func (d *domainDay) tls(r *receiver) Document {
	exchange := d.ask(d.domain.Name, dns.MX)[0].Host
	p := tlsrpt.Policy{
		Type: tlsrpt.PolicyNotFound, Domain: d.domain.Name,
		Successful: int64(around(d.dice, 900*r.Share*d.Rhythms["office"][d.dayBefore(d.ago).Weekday()])),
	}
	if certificates := d.ask("_25._tcp."+exchange, dns.TLSA); len(certificates) > 0 {
		raw := certificates[0].Raw
		p.Type, p.Strings = tlsrpt.PolicyTLSA, []string{fmt.Sprintf("%d %d %d %s", raw[0], raw[1], raw[2], hex.EncodeToString(raw[3:]))}
	} else if there(certificateExpired, certificateRenewed, d.ago) {
		p.Failed, p.Successful = p.Successful, 0
		p.Failures = []tlsrpt.Failure{{
			ResultType: tlsrpt.CertificateExpired, SendingMTAIP: "192.0.2.200", ReceivingMXHostname: exchange,
			ReceivingIP: d.ask(exchange, dns.A)[0].Addr.String(), FailedSessions: p.Failed,
		}}
	}
	begin, end := d.span()
	report := tlsrpt.Report{
		OrgName: r.Name, ContactInfo: "mailto:tls-noreply@" + r.Domain, ReportID: d.reportID(r),
		Begin: begin, End: end, Policies: []tlsrpt.Policy{p},
	}
	return d.document(dmarcd.KindTLS, d.fileName(r, "json"), func(w *bytes.Buffer) error { return tlsrpt.Render(w, report) })
}
