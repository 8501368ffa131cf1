package demo

import (
	"bytes"
	"context"
	_ "embed" // for the text of failure reports
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/dkim"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/resolver/zone"
	"github.com/dmarcd/dmarcd/spf"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// domainDay is the state of a domain on a day, as receivers see it.
type domainDay struct {
	*Scenario
	domain *domain
	ago    int
	zone   *zone.Zone
	policy dmarc.Record
	dice   *rand.Rand
}

func (s *Scenario) dayOf(d *domain, ago int) *domainDay {
	z := s.Zone(s.dayBefore(ago))
	found := dmarc.DiscoverRecord(context.Background(), z, d.Name) // the zone never blocks
	return &domainDay{Scenario: s, domain: d, ago: ago, zone: z, policy: *found.Record, dice: s.random(d.Name, ago)}
}

// ask returns the records of a name on the day.
func (d *domainDay) ask(name string, kind dns.Type) []dns.Record {
	return d.zone.Resolve(context.Background(), dns.Question{Name: name, Type: kind}).Records
}

// mail returns the records of the domain's mail on the day for each receiver, in their order.
func (d *domainDay) mail() [][]aggregate.Record {
	seen := make([][]aggregate.Record, len(d.Receivers))
	for index := range d.domain.Streams {
		stream := &d.domain.Streams[index]
		volume := d.volume(index)
		if volume == 0 {
			continue
		}
		authenticated, asked := d.authenticate(stream), d.asked(stream.From)
		for i := range d.Receivers {
			r := &d.Receivers[i]
			for _, load := range d.distribute(stream.network, around(d.dice, volume*r.Fraction)) {
				record := authenticated
				record.Addr = stream.network.address(load.host)
				record.Source, record.Count = record.Addr.String(), int64(load.messages)
				record.Disposition, record.Reasons = d.dispose(r, stream, record.Compliant(), asked)
				seen[i] = append(seen[i], record)
			}
		}
	}
	return seen
}

// volume returns the number of messages of a stream on the day.
func (d *domainDay) volume(index int) float64 {
	stream, at := &d.domain.Streams[index], d.dayBefore(d.ago)
	if !there(stream.Since, stream.Until, d.ago) {
		return 0
	}
	var full float64
	if stream.Rhythm != "" {
		full = d.Rhythms[stream.Rhythm][at.Weekday()]
	} else {
		week := int(at.Unix() / int64(7*day/time.Second))
		full = wave(at.Weekday(), d.random(d.domain.Name, week*len(d.domain.Streams)+index))
	}
	// The volume grows by a fifth over the year and varies from day to day.
	growth := 1.2 - 0.2*float64(d.ago)/daysOfScenario
	return stream.Daily * full * growth * (0.85 + 0.3*d.dice.Float64())
}

// wave is the rhythm of spoofed mail: little most of the time, much on a few days of some
// weeks. The dice are the same on all days of a week.
func wave(weekday time.Weekday, dice *rand.Rand) float64 {
	high, from := dice.Float64(), dice.IntN(4)
	if since := int(weekday) - from; high > 0.7 && since >= 0 && since < 4 {
		return high * (1 - 0.2*float64(since))
	}
	return 0.06
}

// around returns a random count with the mean.
func around(dice *rand.Rand, mean float64) int {
	return max(0, int(math.Round(mean+math.Sqrt(mean)*dice.NormFloat64())))
}

// mostHosts is the maximum number of hosts of one network that a receiver sees per day.
const mostHosts = 6

// load is the number of messages from a host.
type load struct {
	host, messages int
}

// distribute returns the number of messages per host of a network: either all hosts, with most
// messages from the first ones, or different hosts every day.
func (d *domainDay) distribute(n *network, count int) []load {
	used, first := min(n.Hosts, mostHosts, 1+count/8), 0
	if n.Hosts > mostHosts {
		first = d.dice.IntN(n.Hosts)
	}
	var loads []load
	for i, left := 0, count; left > 0; i++ {
		messages := left
		if i < used-1 {
			messages = max(1, int(float64(left)*(0.2+0.5*d.dice.Float64())))
		}
		loads = append(loads, load{host: (first + i) % n.Hosts, messages: messages})
		left -= messages
	}
	return loads
}

// authenticate returns the authentication results for mail of a stream.
func (d *domainDay) authenticate(s *stream) aggregate.Record {
	identity := spf.Identity{IP: s.network.address(0), MailFrom: "bounce@" + s.Envelope}
	found := aggregate.Result(strings.ToLower(spf.Check(context.Background(), d.zone, identity).Result.String()))
	record := aggregate.Record{
		HeaderFrom: s.From, EnvelopeFrom: s.Envelope, DKIM: aggregate.ResultFail, SPF: aggregate.ResultFail,
		SPFResults: []aggregate.SPFResult{{Domain: s.Envelope, Scope: "mfrom", Result: found}},
	}
	if found == aggregate.ResultPass && dmarcd.Covers(d.domain.Name, s.Envelope) {
		record.SPF = aggregate.ResultPass
	}
	if s.Selector != "" {
		signature := d.signature(s)
		record.DKIMResults = append(record.DKIMResults, signature)
		if signature.Result == aggregate.ResultPass {
			record.DKIM = aggregate.ResultPass
		}
	}
	if s.Signed {
		record.DKIMResults = append(record.DKIMResults, aggregate.DKIMResult{Domain: s.network.Domain, Selector: "k2024", Result: aggregate.ResultPass})
	}
	return record
}

// signature returns the result of the domain's signature.
func (d *domainDay) signature(s *stream) aggregate.DKIMResult {
	result := aggregate.DKIMResult{Domain: d.domain.Name, Selector: s.Selector, Result: aggregate.ResultPass}
	switch {
	case s.List:
		result.Result, result.HumanResult = aggregate.ResultFail, "body hash did not verify"
	case dkim.LookupKey(context.Background(), d.zone, s.Selector, d.domain.Name).Status != dkim.StatusFound:
		result.Result, result.HumanResult = aggregate.ResultPermerror, "no key for signature"
	}
	return result
}

// asked returns the policy for failing mail of an author domain.
func (d *domainDay) asked(from string) aggregate.Policy {
	subject := dmarc.Itself
	if from != d.domain.Name {
		subject = dmarc.Subdomain
	}
	policy, _ := d.policy.Policy(subject)
	return aggregate.Policy(policy.String())
}

// dispose returns the disposition of a receiver, and the reason if it differs from the policy.
func (d *domainDay) dispose(r *receiver, s *stream, compliant bool, asked aggregate.Policy) (aggregate.Policy, []aggregate.Reason) {
	switch {
	case compliant && asked != aggregate.PolicyNone:
		return aggregate.PolicyPass, nil
	case compliant:
		return aggregate.PolicyNone, nil
	case d.policy.Testing:
		return aggregate.PolicyNone, []aggregate.Reason{{Type: "policy_test_mode"}}
	case asked == aggregate.PolicyNone:
		return asked, nil
	case r.Trusts && s.List:
		return aggregate.PolicyNone, []aggregate.Reason{{Type: "mailing_list", Comment: "arc=pass"}}
	case r.Trusts && s.Forwarded:
		return aggregate.PolicyNone, []aggregate.Reason{{Type: "trusted_forwarder"}}
	case r.Lenient && asked == aggregate.PolicyReject && d.dice.Float64() < 0.2:
		return aggregate.PolicyQuarantine, []aggregate.Reason{{Type: "local_policy", Comment: "not sure enough to reject"}}
	default:
		return asked, nil
	}
}

// Document is a report as it was sent.
type Document struct {
	// Kind is "" for a document that is not a report.
	Kind   dmarcd.ReportKind
	Intake dmarcd.Intake
	Domain string
	// Name is the file name of an XML or JSON document, or of a mail.
	Name string
	// SentAt is the time at which the reporter sent it.
	SentAt time.Time
	// Content is the document. The caller owns it.
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

// document returns a report whose content write writes. It is sent a few hours after its day.
func (d *domainDay) document(kind dmarcd.ReportKind, name string, write func(w *bytes.Buffer) error) Document {
	const sent = 4 * time.Hour
	var content bytes.Buffer
	if err := write(&content); err != nil {
		panic("demo: write a report: " + err.Error()) // a buffer never fails
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

// reportID returns a unique report id of the receiver.
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

// failureMail is the template of a failure report (RFC 9991, in the format of RFC 6591) with the
// header of the message.
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

// asMail returns a text with CRLF line endings.
func asMail(text []byte) []byte { return bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")) }

// The days, counted back from today, on which a certificate had expired.
const (
	certificateExpired = 33
	certificateRenewed = 30
)

// tls returns the report about TLS sessions with the mail server of the domain.
func (d *domainDay) tls(r *receiver) Document {
	exchange := d.ask(d.domain.Name, dns.MX)[0].Host
	p := tlsrpt.Policy{
		Type: tlsrpt.PolicyNotFound, Domain: d.domain.Name,
		Successful: int64(around(d.dice, 900*r.Fraction*d.Rhythms["office"][d.dayBefore(d.ago).Weekday()])),
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
