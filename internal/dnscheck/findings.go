package dnscheck

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
)

const (
	inconclusive = "inconclusive"
	// maxPerID limits the findings of one type; a hostile record can produce thousands.
	maxPerID = 5
)

// evaluation derives findings from facts, without I/O.
type evaluation struct {
	facts    facts.Facts
	request  Request
	findings []dmarcd.Finding
	counts   map[string]int
}

// evaluate returns the findings for the facts, the most severe first.
func evaluate(facts facts.Facts, request Request) []dmarcd.Finding {
	e := &evaluation{facts: facts, request: request, counts: map[string]int{}}
	e.dmarc()
	e.managed()
	if facts.Missing {
		e.add(domainMissing, nil)
	} else {
		e.beyondDMARC()
	}
	e.agree()
	return bySeverity(e.findings)
}

// beyondDMARC evaluates the parts that only an existing name can have.
func (e *evaluation) beyondDMARC() {
	e.spf()
	e.dkim()
	e.mx()
	e.parked()
	if takesMail(e.facts.MX) {
		e.mtasts()
		e.tlsrpt()
		e.dane()
		e.starttls()
	}
	e.dnssec()
	e.bimi()
}

func rank(level dmarcd.Level) int {
	return slices.Index([]dmarcd.Level{dmarcd.LevelError, dmarcd.LevelWarning, dmarcd.LevelInfo, dmarcd.LevelGood}, level)
}

// add appends the finding with that id. The words may be nil; {domain} is always set.
func (e *evaluation) add(id string, w words) { e.addRecord(id, w, dmarcd.DNSRecord{}) }

// addRecord is add with the exact record to publish, which is used if the fix announces
// one.
func (e *evaluation) addRecord(id string, w words, record dmarcd.DNSRecord) {
	all := words{"domain": e.facts.Domain}
	for name, word := range w {
		all[name] = word
	}
	entry := findEntry(id)
	finding := dmarcd.Finding{
		ID: entry.ID, Level: entry.Level, RFC: entry.RFC, Points: entry.Points,
		What: fill(entry.What, all), Why: fill(entry.Why, all), Fix: fill(entry.Fix, all),
	}
	if strings.HasSuffix(entry.Fix, ":") {
		finding.Record = record
	}
	if facts.OfServer(id) {
		finding.Host = all["at"]
	}
	if e.counts[id] >= maxPerID || slices.Contains(e.findings, finding) {
		return
	}
	e.counts[id]++
	e.findings = append(e.findings, finding)
}

// problemWords returns the placeholder values of a problem.
func problemWords(p facts.Problem) words {
	return words{
		"at": p.At, "part": p.Part, "text": p.Text, "name": p.Name, "other": p.Other, "reason": p.Reason,
		"count": strconv.Itoa(p.Count), "limit": strconv.Itoa(p.Limit),
	}
}

// with adds one value and returns w.
func (w words) with(name, word string) words {
	w[name] = word
	return w
}

// mapping assigns a kind of problem to a finding and to the text of its {flaw}, which may
// contain placeholders. An empty id means that another finding covers the problem.
type mapping struct{ id, flaw string }

// addProblem adds the finding that table assigns to a problem, with additional words and
// the record to publish. A test checks that the tables are complete.
func (e *evaluation) addProblem(table map[string]mapping, p facts.Problem, w words, record dmarcd.DNSRecord) {
	how := table[p.Kind]
	if how.id == "" {
		return
	}
	all := problemWords(p)
	for name, word := range w {
		all[name] = word
	}
	e.addRecord(how.id, all.with("flaw", fill(how.flaw, all)), record)
}
