package aggregate

// rowText is the state of the current record. The lists are reused for the next one.
type rowText struct {
	count  string
	reason Reason
	// reasonText is the text in a reason outside its elements.
	reasonText []byte
	dkim       DKIMResult
	spf        SPFResult
	reasons    []Reason
	dkims      []DKIMResult
	spfs       []SPFResult
	// bytes is the size of the texts in the lists.
	bytes int
}

func (r *Reader) startRecord() {
	r.record = Record{}
	r.row.count = ""
	r.row.reasons = r.row.reasons[:0]
	r.row.dkims = r.row.dkims[:0]
	r.row.spfs = r.row.spfs[:0]
	r.row.bytes = 0
}

// endRecord completes the record, unless it has no valid count.
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
	c.Reasons = r.reasons.clone(r.row.reasons)
	c.DKIMResults = r.dkims.clone(r.row.dkims)
	c.SPFResults = r.spfs.clone(r.row.spfs)
	r.checkRecord(c)
	c.Disagrees = r.disagrees(c)
	r.quirks.NoteIf(c.Disagrees, EvaluationDisagrees)
	r.complete = true
}

// slab copies lists into shared allocations, because a record has several short ones.
type slab[T any] struct{ free []T }

// clone returns a copy that the caller may retain, nil for an empty list.
func (s *slab[T]) clone(list []T) []T {
	const lists = 32 // of one element, per allocation
	n := len(list)
	if n == 0 {
		return nil
	}
	if len(s.free) < n {
		s.free = make([]T, max(lists, n))
	}
	copied := s.free[:n:n]
	copy(copied, list)
	s.free = s.free[n:]
	return copied
}

// checkRecord notes what is missing in a record, and what its dialect does not allow.
func (r *Reader) checkRecord(c *Record) {
	modern := r.dialect() == DialectRFC9990
	q := &r.quirks
	q.NoteIf(c.Disposition == "", DispositionMissing)
	q.NoteIf(c.Disposition == PolicyPass && !modern, DispositionPass)
	q.NoteIf(c.DKIM == "" || c.SPF == "", EvaluatedMissing)
	q.NoteIf(c.HeaderFrom == "", HeaderFromMissing)
	// An empty envelope_from is the null sender; only a missing one is a deviation.
	// Drafts did not have it.
	q.NoteIf(!r.has(envelopeFrom) && r.dialect() == DialectRFC7489, EnvelopeFromMissing)
	if len(c.DKIMResults)+len(c.SPFResults) == 0 {
		q.Note(AuthResultsMissing)
		return
	}
	for i := range c.DKIMResults {
		q.NoteIf(c.DKIMResults[i].Domain == "", AuthDomainMissing)
		q.NoteIf(c.DKIMResults[i].Result == "", AuthResultMissing)
		q.NoteIf(c.DKIMResults[i].Selector == "" && modern, SelectorMissing)
	}
	for i := range c.SPFResults {
		q.NoteIf(c.SPFResults[i].Domain == "", AuthDomainMissing)
		q.NoteIf(c.SPFResults[i].Result == "", AuthResultMissing)
		q.NoteIf(c.SPFResults[i].Scope == "" && r.dialect() == DialectRFC7489, SPFScope)
		q.NoteIf(c.SPFResults[i].Scope == scopeHELO && modern, SPFScope)
	}
	q.NoteIf(len(c.SPFResults) == 0 && !modern, SPFMissing)
	q.NoteIf(len(c.SPFResults) > 1 && modern, SPFSeveral)
}
