package aggregate

import (
	"bytes"
	"slices"
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
