package aggregate

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/dmarcd/dmarcd/internal/reporttext"
)

// opened resets the state of an element.
func (r *Reader) opened(n node) {
	r.seen &^= n.parts()
	switch n {
	case record:
		r.startRecord()
	case reason:
		r.row.reason = Reason{}
		r.row.reasonText = r.row.reasonText[:0]
	case dkim:
		r.row.dkim = DKIMResult{}
	case spf:
		r.row.spf = SPFResult{}
	default:
		if n.isValue() {
			r.value = r.value[:0]
		}
	}
}

// closed stores the content of an element.
func (r *Reader) closed(n node) {
	switch n {
	case record:
		r.endRecord()
	case reason:
		r.endReason()
		r.row.reasons = appendWithin(r, r.row.reasons, r.row.reason, r.limits.Reasons, &r.row.bytes, r.row.reason.size())
	case dkim:
		r.row.dkims = appendWithin(r, r.row.dkims, r.row.dkim, r.limits.AuthResults, &r.row.bytes, r.row.dkim.size())
	case spf:
		r.row.spfs = appendWithin(r, r.row.spfs, r.row.spf, r.limits.AuthResults, &r.row.bytes, r.row.spf.size())
	default:
		if n.isValue() {
			r.set(n, r.text(n, r.value))
		}
	}
}

// endReason uses text outside the elements of a reason as its comment.
func (r *Reader) endReason() {
	reason := &r.row.reason
	r.quirks.NoteIf(reason.Type == "", ReasonTypeMissing)
	text := bytes.TrimSpace(r.row.reasonText)
	switch {
	case len(text) == 0:
	case reason.Comment == "":
		r.quirks.Note(ReasonText)
		reason.Comment = r.interned(text)
	default:
		r.quirks.Note(StrayText)
	}
}

// appendWithin appends to a list up to a limit, and while the texts of all lists, whose size is sum, are
// within theirs.
func appendWithin[T any](r *Reader, list []T, item T, limit int, sum *int, size int) []T {
	if len(list) >= limit || *sum+size > r.limits.RecordBytes {
		r.quirks.Note(ElementsDropped)
		return list
	}
	*sum += size
	return append(list, item)
}

func (r Reason) size() int { return len(r.Type) + len(r.Comment) }

func (d DKIMResult) size() int {
	return len(d.Domain) + len(d.Selector) + len(d.Result) + len(d.HumanResult)
}

func (s SPFResult) size() int {
	return len(s.Domain) + len(s.Scope) + len(s.Result) + len(s.HumanResult)
}

// text returns a trimmed value. Values often repeat, so it returns the previous string of
// the element or an interned one; source addresses rarely repeat.
func (r *Reader) text(n node, value []byte) string {
	trimmed := bytes.TrimSpace(value)
	r.quirks.NoteIf(len(trimmed) < len(value) && len(trimmed) > 0, ValuePadded)
	switch {
	case string(trimmed) == r.latest[n]:
	case n == sourceIP:
		r.latest[n] = string(trimmed)
	default:
		r.latest[n] = r.interned(trimmed)
	}
	return r.latest[n]
}

func (r *Reader) set(n node, value string) {
	if n > record {
		r.setRecord(n, value)
		return
	}
	switch n {
	case version:
		r.report.Version = value
	case orgName:
		r.report.Metadata.OrgName = value
	case email:
		r.report.Metadata.Email = value
	case extraContact:
		r.report.Metadata.ExtraContact = value
	case reportID:
		r.report.Metadata.ReportID = value
	case rangeBegin:
		r.report.Metadata.Begin = r.time(n, value)
	case rangeEnd:
		r.report.Metadata.End = r.time(n, value)
	case reportError:
		errs := slices.Clip(r.report.Metadata.Errors)
		sum := 0
		for _, e := range errs {
			sum += len(e)
		}
		r.report.Metadata.Errors = appendWithin(r, errs, value, r.limits.Reasons, &sum, len(value))
	case generator:
		r.report.Metadata.Generator = value
	default:
		r.setPolicy(n, value)
	}
}

func (r *Reader) setPolicy(n node, value string) {
	p := &r.report.Policy
	switch n {
	case policyDomain:
		p.Domain = r.domain(value)
	case policyP:
		p.P = Policy(r.quirks.word(value, policyWords))
	case policySP:
		p.SP = Policy(r.quirks.word(value, policyWords))
	case policyNP:
		p.NP = Policy(r.quirks.word(value, policyWords))
	case policyADKIM:
		p.ADKIM = r.quirks.word(value, modeWords)
	case policyASPF:
		p.ASPF = r.quirks.word(value, modeWords)
	case policyPercent:
		p.Percent = value
	case policyFO:
		p.FailureOptions = value
	case policyTesting:
		p.Testing = r.quirks.word(value, testingWords)
	case policyDiscovery:
		p.DiscoveryMethod = r.quirks.word(value, discoveryWords)
	case policyPSD:
		p.PSD = value
	}
}

func (r *Reader) setRecord(n node, value string) {
	c, w := &r.record, &r.row
	switch n {
	case sourceIP:
		c.Source = value
	case count:
		w.count = value
	case disposition:
		c.Disposition = Policy(r.quirks.word(value, dispositionWords))
	case evaluatedDKIM:
		c.DKIM = Result(r.quirks.word(value, evaluatedWords))
	case evaluatedSPF:
		c.SPF = Result(r.quirks.word(value, evaluatedWords))
	case reasonType:
		w.reason.Type = r.quirks.word(value, reasonWords)
	case reasonComment:
		w.reason.Comment = value
	case headerFrom:
		c.HeaderFrom = r.domain(value)
	case envelopeFrom:
		c.EnvelopeFrom = r.domain(value)
	case envelopeTo:
		c.EnvelopeTo = r.domain(value)
	case dkimDomain:
		w.dkim.Domain = r.domain(value)
	case dkimSelector:
		w.dkim.Selector = value
	case dkimResult:
		w.dkim.Result = r.quirks.result(value)
	case dkimHuman:
		w.dkim.HumanResult = value
	case spfDomain:
		w.spf.Domain = r.domain(value)
	case spfScope:
		w.spf.Scope = r.quirks.word(value, scopeWords)
	case spfResult:
		w.spf.Result = r.quirks.result(value)
	case spfHuman:
		w.spf.HumanResult = value
	}
}

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

// In the content hash each field is preceded by its length, so that it is unambiguous.
// Records are hashed as they arrive and the rest at the end, so that its position in the
// document does not matter.

func (r *Reader) addContent() {
	c := &r.record
	b := reporttext.AppendTexts(r.scratch[:0], c.Source, string(c.Disposition), string(c.DKIM), string(c.SPF),
		c.HeaderFrom, c.EnvelopeFrom, c.EnvelopeTo)
	b = binary.AppendVarint(b, c.Count)
	b = binary.AppendUvarint(b, uint64(len(c.Reasons)))
	for i := range c.Reasons {
		b = reporttext.AppendTexts(b, c.Reasons[i].Type, c.Reasons[i].Comment)
	}
	b = binary.AppendUvarint(b, uint64(len(c.DKIMResults)))
	for i := range c.DKIMResults {
		d := &c.DKIMResults[i]
		b = reporttext.AppendTexts(b, d.Domain, d.Selector, string(d.Result), d.HumanResult)
	}
	b = binary.AppendUvarint(b, uint64(len(c.SPFResults)))
	for i := range c.SPFResults {
		s := &c.SPFResults[i]
		b = reporttext.AppendTexts(b, s.Domain, s.Scope, string(s.Result), s.HumanResult)
	}
	r.content.Write(b)
	r.scratch = b
}

// hashContent computes the hash of the whole report.
func (r *Reader) hashContent() {
	m, p := &r.report.Metadata, &r.report.Policy
	b := reporttext.AppendTexts(r.content.Sum(nil), r.report.Version, m.OrgName, m.Email, m.ExtraContact, m.ReportID, m.Generator,
		p.Domain, string(p.P), string(p.SP), string(p.NP), p.ADKIM, p.ASPF, p.Percent, p.FailureOptions, p.Testing,
		p.DiscoveryMethod, p.PSD)
	b = binary.AppendVarint(b, m.Begin)
	b = binary.AppendVarint(b, m.End)
	b = binary.AppendUvarint(b, uint64(len(m.Errors)))
	b = reporttext.AppendTexts(b, m.Errors...)
	r.report.Content = sha256.Sum256(b)
}
