package demo

import (
	"bytes"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
)

// Load says how much there is of reports that tell no story, for benchmarks.
type Load struct {
	Seed uint64
	// End is the present, as in Options.
	End time.Time
	// Domains is how many domains there are, Reports how many aggregate reports each
	// of them has, and Records how many records each of these has. All are above 0.
	Domains, Reports, Records int
}

// DomainNames returns the names of the domains.
func (l Load) DomainNames() []string {
	names := make([]string, l.Domains)
	for i := range names {
		names[i] = loadDomain(i)
	}
	return names
}

func loadDomain(i int) string { return fmt.Sprintf("domain%06d.example", i) }

// Documents returns the reports, day by day. The reports of a domain come from all
// receivers in turn, and are spread over the year before the present.
func (l Load) Documents() iter.Seq[Document] {
	return func(yield func(Document) bool) {
		for number := range l.Reports {
			for i := range l.Domains {
				if !yield(l.document(loadDomain(i), number)) {
					return
				}
			}
		}
	}
}

// document returns one report of a domain.
func (l Load) document(domain string, number int) Document {
	r := receivers[number%len(receivers)]
	begin := l.End.UTC().Truncate(day).AddDate(0, 0, number*daysOfStory/l.Reports-daysOfStory)
	end := begin.Add(day)
	report := aggregate.Report{
		Version: "1.0",
		Metadata: aggregate.Metadata{
			OrgName: r.name, Email: "dmarc-noreply@" + r.domain, ReportID: fmt.Sprintf("%s.%d", domain, number),
			Begin: begin.Unix(), End: end.Unix() - 1,
		},
		Policy: aggregate.PublishedPolicy{
			Domain: domain, P: quarantine, ADKIM: "r", ASPF: "r", Testing: "n", DiscoveryMethod: r.method,
		},
	}
	var content bytes.Buffer
	if err := aggregate.Render(&content, report, l.records(domain, number)); err != nil {
		panic("demo: a buffer refused a report: " + err.Error()) // it never does
	}
	return Document{
		Kind: dmarcd.KindAggregate, Intake: dmarcd.IntakeSMTP, Domain: domain, SentAt: end,
		Name:    fmt.Sprintf("%s!%s!%d!%d!%d.xml", r.domain, domain, report.Metadata.Begin, report.Metadata.End, number),
		Content: content.Bytes(),
	}
}

// records returns the records of one report. Nine of ten are of the domain's own
// senders.
func (l Load) records(domain string, number int) iter.Seq[aggregate.Record] {
	return func(yield func(aggregate.Record) bool) {
		dice := random(l.Seed, domain, number)
		for range l.Records {
			if !yield(loadRecord(domain, dice)) {
				return
			}
		}
	}
}

func loadRecord(domain string, dice *rand.Rand) aggregate.Record {
	good := dice.IntN(10) > 0
	h := spoofers[dice.IntN(len(spoofers))]
	result, disposition := aggregate.ResultFail, quarantine
	if good {
		h = houses[dice.IntN(len(houses)-len(spoofers))]
		result, disposition = aggregate.ResultPass, aggregate.PolicyPass
	}
	addr := h.address(dice.IntN(h.hosts))
	return aggregate.Record{
		Addr: addr, Source: addr.String(), Count: 1 + int64(dice.ExpFloat64()*20),
		Disposition: disposition, DKIM: result, SPF: result,
		HeaderFrom: domain, EnvelopeFrom: domain,
		DKIMResults: []aggregate.DKIMResult{{Domain: domain, Selector: "mail", Result: result}},
		SPFResults:  []aggregate.SPFResult{{Domain: domain, Scope: "mfrom", Result: result}},
	}
}
