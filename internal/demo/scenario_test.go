package demo_test

import (
	"bytes"
	"crypto/sha256"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/failure"
	"github.com/dmarcd/dmarcd/internal/demo"
	"github.com/dmarcd/dmarcd/internal/intake/unpack"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

var end = time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)

func scenario() *demo.Scenario { return demo.New(demo.Options{Seed: 1, End: end}) }

// parsed is a document after it was read.
type parsed struct {
	document  demo.Document
	aggregate aggregate.Report
	records   []aggregate.Record
	failure   failure.Report
	tls       tlsrpt.Report
}

// parse reads a document as an import would.
func parse(t *testing.T, document demo.Document) parsed {
	t.Helper()
	p := parsed{document: document}
	var kind unpack.Kind
	err := new(unpack.Walker).Walk(t.Context(), bytes.NewReader(document.Content), unpack.DefaultLimits(), func(part *unpack.Part) (err error) {
		kind = part.Kind
		switch kind {
		case unpack.Aggregate:
			reader := aggregate.NewReader(part, aggregate.DefaultLimits())
			for record, err := range reader.All() {
				if err != nil {
					return err
				}
				p.records = append(p.records, record)
			}
			p.aggregate = reader.Report()
		case unpack.TLS:
			p.tls, err = tlsrpt.ReadReport(part, tlsrpt.DefaultLimits())
		case unpack.Failure:
			p.failure, err = failure.Parse(part.Failure, failure.Options{})
		default:
			err = part.Err
		}
		return err
	})
	if err != nil || kind.String() != string(document.Kind) {
		t.Fatalf("%s: got kind %q and %v, want a report of kind %q", document.Name, kind, err, document.Kind)
	}
	return p
}

// days returns the documents about every step-th day of a scenario.
func days(s *demo.Scenario, step int) iter.Seq[demo.Document] {
	return func(yield func(demo.Document) bool) {
		for at := s.Begin(); at.Before(end.AddDate(0, 0, -1)); at = at.AddDate(0, 0, step) {
			for document := range s.DocumentsAbout(at) {
				if !yield(document) {
					return
				}
			}
		}
	}
}

func TestEveryReportIsSound(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	names := map[string]bool{}
	keys := map[aggregate.Key]bool{}
	for document := range days(scenario(), 13) {
		if names[document.Name] {
			t.Errorf("got %s twice", document.Name)
		}
		names[document.Name] = true
		p := parse(t, document)
		if len(p.aggregate.Quirks)+len(p.tls.Quirks)+len(p.failure.Quirks) > 0 {
			t.Fatalf("%s: got the quirks %v %v %v, want none:\n%s", document.Name, p.aggregate.Quirks, p.tls.Quirks, p.failure.Quirks, document.Content)
		}
		if document.Kind != dmarcd.KindAggregate {
			continue
		}
		if keys[p.aggregate.Key()] {
			t.Errorf("%s: got the key of another report: %+v", document.Name, p.aggregate.Key())
		}
		keys[p.aggregate.Key()] = true
		if p.aggregate.Policy.Domain != document.Domain || !document.SentAt.After(time.Unix(p.aggregate.Metadata.End, 0)) {
			t.Errorf("%s: got a report about %s until %d, sent at %s", document.Name, p.aggregate.Policy.Domain, p.aggregate.Metadata.End, document.SentAt)
		}
	}
}

// census is what the documents about every third day of the scenario amount to.
type census struct {
	reports map[dmarcd.ReportKind]int
	records int
	// days holds what was counted for each domain, by how many days ago it was.
	days map[string]map[int]dmarcd.Summary
}

// takeCensus is done once for all tests.
var takeCensus = sync.OnceValues(func() (census, error) {
	c := census{reports: map[dmarcd.ReportKind]int{}, days: map[string]map[int]dmarcd.Summary{}}
	today := dmarcd.DayOf(end)
	for document := range days(scenario(), 3) {
		c.reports[document.Kind]++
		if document.Kind != dmarcd.KindAggregate {
			continue
		}
		reader := aggregate.NewReader(bytes.NewReader(document.Content), aggregate.DefaultLimits())
		var counted dmarcd.Summary
		for record, err := range reader.All() {
			if err != nil {
				return c, err
			}
			c.records++
			if record.Compliant() {
				counted.Compliant += record.Count
			} else {
				counted.NonCompliant += record.Count
			}
		}
		ago := int(today - dmarcd.DayOf(time.Unix(reader.Report().Metadata.Begin, 0)))
		if c.days[document.Domain] == nil {
			c.days[document.Domain] = map[int]dmarcd.Summary{}
		}
		before := c.days[document.Domain][ago]
		c.days[document.Domain][ago] = dmarcd.Summary{
			Compliant: before.Compliant + counted.Compliant, NonCompliant: before.NonCompliant + counted.NonCompliant,
		}
	}
	return c, nil
})

func TestScenarioIsAYear(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	c := musttest.Get(takeCensus())(t)
	for _, d := range scenario().Domains() {
		days := slices.Sorted(maps.Keys(c.days[d.Name]))
		long := 365
		if d.Team == demo.SecondTeam {
			long = 120
		}
		if len(days) < long/3-6 || days[0] < 1 || days[len(days)-1] > long {
			t.Errorf("%s: got reports about %d days, want nearly every third of the %d before today", d.Name, len(days), long)
		}
	}
	if got := 3 * c.reports[dmarcd.KindAggregate]; got < 8_000 || got > 14_000 {
		t.Errorf("got %d aggregate reports, want about 13,000", got)
	}
	if got := 3 * c.records; got < 120_000 || got > 200_000 {
		t.Errorf("got %d records, want about 180,000", got)
	}
	if got := 3 * c.reports[dmarcd.KindFailure]; got < 20 || got > 200 {
		t.Errorf("got %d failure reports, want a few", got)
	}
	if got := 3 * c.reports[dmarcd.KindTLS]; got != 2*(90+60) {
		t.Errorf("got %d TLS reports, want those of two receivers for 90 and 60 days", got)
	}
}

// fingerprint returns a hash of the first weeks of a scenario.
func fingerprint(s *demo.Scenario) [sha256.Size]byte {
	hash := sha256.New()
	left := 600
	for document := range days(s, 1) {
		if left--; left < 0 {
			break
		}
		hash.Write([]byte(document.Name))
		hash.Write(document.Content)
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

func TestScenarioFollowsFromTheSeed(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	first := fingerprint(scenario())
	if fingerprint(scenario()) != first {
		t.Error("got another scenario from the same seed")
	}
	if fingerprint(demo.New(demo.Options{Seed: 1, End: end.Add(10 * time.Hour)})) != first {
		t.Error("got another scenario from another hour of the day")
	}
	if fingerprint(demo.New(demo.Options{Seed: 2, End: end})) == first {
		t.Error("got the same scenario from another seed")
	}
}

// rate returns the part of a domain's messages that comply, from one day before the
// end of the scenario to another, and how many messages there are.
func (c census) rate(domain string, from, to int) (compliant float64, messages int64) {
	var sum dmarcd.Summary
	for ago, counted := range c.days[domain] {
		if ago <= from && ago >= to {
			sum.Compliant += counted.Compliant
			sum.NonCompliant += counted.NonCompliant
		}
	}
	return float64(sum.Compliant) / float64(sum.Total()), sum.Total()
}

func TestResultsInReports(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	for _, test := range []struct {
		name, domain string
		from, to     int
		least, most  float64
	}{
		{"the good one is good", "harbourlight.example", 60, 1, 0.97, 0.9999},
		{"before the support software", "tinwhistle.example", 300, 220, 0.85, 0.97},
		{"with the support software", "tinwhistle.example", 200, 130, 0.65, 0.86},
		{"with the support software fixed", "tinwhistle.example", 90, 30, 0.88, 0.98},
		{"with a broken SPF record", "tinwhistle.example", 20, 1, 0.70, 0.87},
		{"nothing of the parked one is real", "oldmill.example", 365, 300, 0, 0},
		{"the spoofed one", "brightpay.example", 120, 1, 0.4, 0.75},
		{"the school at first", "fernlea.example", 365, 300, 0.05, 0.4},
		{"the school at last", "fernlea.example", 60, 1, 0.93, 0.999},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := musttest.Get(takeCensus())(t)
			got, messages := c.rate(test.domain, test.from, test.to)
			if messages == 0 || got < test.least || got > test.most {
				t.Errorf("got %.4f of %d messages compliant, want from %.2f to %.2f", got, messages, test.least, test.most)
			}
		})
	}
}

// For a week the newsletter was signed with a key that was not there.
func TestMissingKey(t *testing.T) {
	t.Parallel()
	s := scenario()
	for _, test := range []struct {
		name     string
		from, to int // days ago
		missing  bool
	}{
		{"the week before", 125, 119, false},
		{"the week", 118, 112, true},
		{"the week after", 111, 105, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			found := false
			for ago := test.from; ago >= test.to; ago-- {
				for document := range s.DocumentsAbout(end.AddDate(0, 0, -ago)) {
					for _, record := range parse(t, document).records {
						missing := slices.ContainsFunc(record.DKIMResults, func(d aggregate.DKIMResult) bool {
							return d.Result == aggregate.ResultPermerror
						})
						if missing && (document.Domain != "tinwhistle.example" || record.Compliant()) {
							t.Errorf("%s: got a missing key in %+v, want it for mail of tinwhistle.example that fails", document.Name, record)
						}
						found = found || missing
					}
				}
			}
			if found != test.missing {
				t.Errorf("got a missing key: %t, want %t", found, test.missing)
			}
		})
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	s := scenario()
	changes := s.Changes()
	if !slices.IsSortedFunc(changes, time.Time.Compare) || !changes[0].Equal(s.Begin()) || !changes[len(changes)-1].Before(end) {
		t.Errorf("got the changes %v, want them in order, from the beginning to the present", changes)
	}
	for i, at := range changes[1:] {
		if text(t, s, changes[i]) == text(t, s, at) {
			t.Errorf("got the same records after %s as before", at)
		}
		if text(t, s, at.Add(-time.Second)) != text(t, s, changes[i]) {
			t.Errorf("got other records before %s, want those of %s", at, changes[i])
		}
	}
	if got := text(t, s, end); got != text(t, s, changes[len(changes)-1]) {
		t.Error("got other records at the end than since the last change")
	}
}

// text returns the facts of a check as one text.
func text(t *testing.T, s *demo.Scenario, at time.Time) string {
	t.Helper()
	var b bytes.Buffer
	zone := s.Zone(at)
	for _, d := range s.Domains() {
		for _, name := range []string{
			"_dmarc.", "", "_smtp._tls.", "mail._domainkey.", "selector1._domainkey.", "selector2._domainkey.",
			"dkim._domainkey.", "k1._domainkey.", "default._domainkey.",
		} {
			for _, record := range zone.Resolve(t.Context(), question(name+d.Name)).Texts() {
				b.WriteString(name + d.Name + " " + record + "\n")
			}
		}
	}
	for _, record := range zone.Resolve(t.Context(), question("_a.spf.cloudpost.example")).Texts() {
		b.WriteString(record) // which most of them include
	}
	return b.String()
}

func BenchmarkScenario(b *testing.B) {
	for b.Loop() {
		records, bytesMade := 0, 0
		for document := range days(scenario(), 1) {
			records += bytes.Count(document.Content, []byte("<record>"))
			bytesMade += len(document.Content)
		}
		b.ReportMetric(float64(records), "records/op")
		b.SetBytes(int64(bytesMade))
	}
}
