package dnscheck

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
)

const (
	inconclusive = "inconclusive"
	// maxPerID is how many findings of one sort are told; a record can be made to
	// provoke thousands.
	maxPerID = 5
)

// judgement turns facts into findings. It asks nobody.
type judgement struct {
	facts    dmarcd.Facts
	request  Request
	findings []dmarcd.Finding
	told     map[string]int
}

// judge returns what there is to say about the facts, the most serious first.
func judge(facts dmarcd.Facts, request Request) []dmarcd.Finding {
	j := &judgement{facts: facts, request: request, told: map[string]int{}}
	j.dmarc()
	if facts.Missing {
		j.say("domain.missing", nil)
	} else {
		j.beyondDMARC()
	}
	slices.SortStableFunc(j.findings, func(a, b dmarcd.Finding) int {
		return cmp.Or(cmp.Compare(rank(a.Level), rank(b.Level)), cmp.Compare(b.Points, a.Points))
	})
	return j.findings
}

// beyondDMARC judges the parts that only a name that exists has.
func (j *judgement) beyondDMARC() {
	j.spf()
	j.dkim()
	j.mx()
	j.parked()
	if takesMail(j.facts.MX) {
		j.mtasts()
		j.tlsrpt()
		j.dane()
	}
	j.dnssec()
	j.bimi()
}

func rank(level dmarcd.Level) int {
	return slices.Index([]dmarcd.Level{dmarcd.LevelError, dmarcd.LevelWarning, dmarcd.LevelInfo, dmarcd.LevelGood}, level)
}

// say adds the finding with that id. The words may be nil; the domain is always
// known.
func (j *judgement) say(id string, w words) { j.sayRecord(id, w, "") }

// sayRecord is say with the exact record to publish, where the fix announces one.
func (j *judgement) sayRecord(id string, w words, record string) {
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
	if j.told[id] >= maxPerID || slices.Contains(j.findings, finding) {
		return
	}
	j.told[id]++
	j.findings = append(j.findings, finding)
}

// problemWords returns the words of a problem.
func problemWords(p dmarcd.Problem) words {
	return words{
		"at": p.At, "part": p.Part, "text": p.Text, "name": p.Name, "other": p.Other, "reason": p.Reason,
		"count": strconv.Itoa(p.Count), "limit": strconv.Itoa(p.Limit),
	}
}

// with returns the words with one more.
func (w words) with(name, word string) words {
	w[name] = word
	return w
}

// telling says how the problems of one kind are told: by which finding, and with
// which flaw in words, where {part}, {text} and the like may stand. An empty id
// means that another finding tells it already.
type telling struct{ id, flaw string }

// tell tells a problem by a table, with more words than the problem has itself and
// the record to publish. A kind that the table does not have is one that its
// protocol came to know later; a test compares the two.
func (j *judgement) tell(table map[string]telling, p dmarcd.Problem, w words, record string) {
	how := table[p.Kind]
	if how.id == "" {
		return
	}
	all := problemWords(p)
	for name, word := range w {
		all[name] = word
	}
	j.sayRecord(how.id, all.with("flaw", fill(how.flaw, all)), record)
}
