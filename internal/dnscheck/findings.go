package dnscheck

import (
	"cmp"
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

// judgement turns facts into findings, without I/O.
type judgement struct {
	facts    facts.Facts
	request  Request
	findings []dmarcd.Finding
	counts   map[string]int
}

// judge returns the findings for the facts, the most severe first.
func judge(facts facts.Facts, request Request) []dmarcd.Finding {
	j := &judgement{facts: facts, request: request, counts: map[string]int{}}
	j.dmarc()
	if facts.Missing {
		j.add(domainMissing, nil)
	} else {
		j.beyondDMARC()
	}
	j.agree()
	slices.SortStableFunc(j.findings, func(a, b dmarcd.Finding) int {
		return cmp.Or(cmp.Compare(rank(a.Level), rank(b.Level)), cmp.Compare(weight(b), weight(a)))
	})
	return j.findings
}

// beyondDMARC judges the parts that only an existing name can have.
func (j *judgement) beyondDMARC() {
	j.spf()
	j.dkim()
	j.mx()
	j.parked()
	if takesMail(j.facts.MX) {
		j.mtasts()
		j.tlsrpt()
		j.dane()
		j.starttls()
	}
	j.dnssec()
	j.bimi()
}

func rank(level dmarcd.Level) int {
	return slices.Index([]dmarcd.Level{dmarcd.LevelError, dmarcd.LevelWarning, dmarcd.LevelInfo, dmarcd.LevelGood}, level)
}

// add appends the finding with that id. The words may be nil; {domain} is always set.
func (j *judgement) add(id string, w words) { j.addRecord(id, w, dmarcd.DNSRecord{}) }

// addRecord is add with the exact record to publish, which is used if the fix announces
// one.
func (j *judgement) addRecord(id string, w words, record dmarcd.DNSRecord) {
	all := words{"domain": j.facts.Domain}
	for name, word := range w {
		all[name] = word
	}
	e := findEntry(id)
	finding := dmarcd.Finding{
		ID: e.ID, Level: e.Level, RFC: e.RFC, Points: e.Points,
		What: fill(e.What, all), Why: fill(e.Why, all), Fix: fill(e.Fix, all),
	}
	if strings.HasSuffix(e.Fix, ":") {
		finding.Record = record
	}
	if facts.OfServer(id) {
		finding.Host = all["at"]
	}
	if j.counts[id] >= maxPerID || slices.Contains(j.findings, finding) {
		return
	}
	j.counts[id]++
	j.findings = append(j.findings, finding)
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
func (j *judgement) addProblem(table map[string]mapping, p facts.Problem, w words, record dmarcd.DNSRecord) {
	how := table[p.Kind]
	if how.id == "" {
		return
	}
	all := problemWords(p)
	for name, word := range w {
		all[name] = word
	}
	j.addRecord(how.id, all.with("flaw", fill(how.flaw, all)), record)
}
