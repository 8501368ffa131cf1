package aggregate

import "slices"

// rowText holds what is read of a record before it is whole. The lists are used
// again for the next record.
type rowText struct {
	count  string
	reason Reason
	// reasonText is the text in a reason that is in none of its elements.
	reasonText []byte
	dkim       DKIMResult
	spf        SPFResult
	reasons    []Reason
	dkims      []DKIMResult
	spfs       []SPFResult
}

func (r *Reader) startRecord() {
	r.record = Record{}
	r.row.count = ""
	r.row.reasons = r.row.reasons[:0]
	r.row.dkims = r.row.dkims[:0]
	r.row.spfs = r.row.spfs[:0]
}

// endRecord makes a record of what was read, unless it has no valid count.
func (r *Reader) endRecord() {
	r.met++
	messages, ok := r.count(r.row.count)
	if !ok {
		return
	}
	c := &r.record
	c.Count = messages
	if r.firstFrom == "" {
		r.firstFrom = c.HeaderFrom
	}
	c.Addr, c.Source = r.address(c.Source)
	c.Reasons = cloned(r.row.reasons)
	c.DKIMResults = cloned(r.row.dkims)
	c.SPFResults = cloned(r.row.spfs)
	r.judge(c)
	c.Disagrees = r.disagrees(c)
	r.quirks.noteIf(c.Disagrees, EvaluationDisagrees)
	r.complete = true
}

// cloned returns a copy that the caller may keep, nil for an empty list.
func cloned[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return slices.Clone(list)
}

// judge notes what is missing in a record, and what its dialect does not have.
func (r *Reader) judge(c *Record) {
	modern := r.dialect() == DialectRFC9990
	q := &r.quirks
	q.noteIf(c.Disposition == "", DispositionMissing)
	q.noteIf(c.Disposition == PolicyPass && !modern, DispositionPass)
	q.noteIf(c.DKIM == "" || c.SPF == "", EvaluatedMissing)
	q.noteIf(c.HeaderFrom == "", HeaderFromMissing)
	// An empty envelope_from is the null sender, an absent one a deviation. The
	// drafts did not have it.
	q.noteIf(!r.has(envelopeFrom) && r.dialect() == DialectRFC7489, EnvelopeFromMissing)
	if len(c.DKIMResults)+len(c.SPFResults) == 0 {
		q.note(AuthResultsMissing)
		return
	}
	for i := range c.DKIMResults {
		q.noteIf(c.DKIMResults[i].Domain == "", AuthDomainMissing)
		q.noteIf(c.DKIMResults[i].Result == "", AuthResultMissing)
		q.noteIf(c.DKIMResults[i].Selector == "" && modern, SelectorMissing)
	}
	for i := range c.SPFResults {
		q.noteIf(c.SPFResults[i].Domain == "", AuthDomainMissing)
		q.noteIf(c.SPFResults[i].Result == "", AuthResultMissing)
		q.noteIf(c.SPFResults[i].Scope == "" && r.dialect() == DialectRFC7489, SPFScope)
		q.noteIf(c.SPFResults[i].Scope == scopeHELO && modern, SPFScope)
	}
	q.noteIf(len(c.SPFResults) == 0 && !modern, SPFMissing)
	q.noteIf(len(c.SPFResults) > 1 && modern, SPFSeveral)
}
