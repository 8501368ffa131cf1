package demo

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"iter"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
)

// aggregate returns the report of a receiver about one day of a domain.
func (s *Scenario) aggregate(d *domain, r *receiver, ago int, rows []row) Document {
	report := aggregate.Report{
		Version: "1.0",
		Metadata: aggregate.Metadata{
			OrgName: r.name, Email: "dmarc-noreply@" + r.domain, ReportID: s.reportID(d, r, ago),
			Begin: s.dayBefore(ago).Unix(), End: s.dayBefore(ago-1).Unix() - 1,
			Generator: "dmarcd demo",
		},
		Policy: d.publishedPolicy(r, ago),
	}
	name := fmt.Sprintf("%s!%s!%d!%d.xml", r.domain, d.name, report.Metadata.Begin, report.Metadata.End)
	return s.document(dmarcd.KindAggregate, d, name, ago, func(w *bytes.Buffer) error {
		return aggregate.Render(w, report, records(rows))
	})
}

// publishedPolicy returns the policy of a day as a receiver found it.
func (d *domain) publishedPolicy(r *receiver, ago int) aggregate.PublishedPolicy {
	p := d.policyAt(ago)
	published := aggregate.PublishedPolicy{
		Domain: d.name, P: p.p, SP: p.sp, ADKIM: "r", ASPF: "r", Testing: "n", DiscoveryMethod: r.method,
	}
	if p.testing {
		published.Testing = "y"
	}
	if d.failureReports {
		published.FailureOptions = "1"
	}
	return published
}

func records(rows []row) iter.Seq[aggregate.Record] {
	return func(yield func(aggregate.Record) bool) {
		for i := range rows {
			if !yield(rows[i].record) {
				return
			}
		}
	}
}

// reportID returns an id that no other report of the receiver has.
func (s *Scenario) reportID(d *domain, r *receiver, ago int) string {
	hash := fnv.New64a()
	_, _ = fmt.Fprint(hash, s.options.Seed, d.name, r.domain) // never fails
	return fmt.Sprintf("%s.%016x", s.dayBefore(ago).Format("20060102"), hash.Sum64())
}
