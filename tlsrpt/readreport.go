package tlsrpt

import (
	"errors"
	"io"
	"strings"
)

// leastMembers is how many members of RFC 8460 a document needs to be taken for a
// report. A report with nothing but a policy domain has as many.
const leastMembers = 3

// ReadReport reads the report in a JSON document. Nothing of RFC 8460 §4.4 has to be
// there but enough of it to tell that the document is a TLS report.
//
// It returns a *RefusedError where the document is no report that can be used, and
// the error of in. Where in ends with io.ErrUnexpectedEOF, as an archive that was
// cut off does, the complete policies of what came before are read.
func ReadReport(in io.Reader, limits Limits) (Report, error) {
	r := reportReader{}
	r.limits = limits.orDefault()
	r.lex = newLexer(in, r.limits.TextBytes, &r.quirks)
	err := r.read()
	damaged := errors.Is(err, errTruncated) || errors.Is(err, errMalformed)
	if err != nil && !damaged {
		return Report{}, err
	}
	if err := r.judge(damaged); err != nil {
		return Report{}, err
	}
	r.quirks.noteIf(errors.Is(err, errTruncated), Truncated)
	r.quirks.noteIf(errors.Is(err, errMalformed), Malformed)
	r.check()
	r.report.Quirks = r.quirks.counts()
	r.report.Content = contentOf(&r.report)
	return r.report, nil
}

// reportReader builds a report from a document.
type reportReader struct {
	document

	report   Report
	seen     members // of the report
	policies int     // all that were begun, also those that count no longer
	failures int
}

// read reads the whole document, or up to the place where it is damaged.
func (r *reportReader) read() error {
	r.lex.skipByteOrderMark()
	first, err := r.lex.peekPastBlanks()
	switch {
	case errors.Is(err, errTruncated):
		return refuse(RefusedEmpty, "the document is empty")
	case err != nil:
		return err
	case first == '<':
		return refuse(RefusedXML, "the content is XML or HTML and not JSON")
	case first != '{' && first != '[':
		return refuse(RefusedNotJSON, "the content is not a JSON object")
	}
	tok, err := r.lex.next()
	if err == nil && tok == '[' {
		r.quirks.note(StrayWrapper)
		tok, err = r.lex.next()
	}
	if err != nil {
		return err
	}
	if tok != '{' {
		return refuse(RefusedOtherJSON, "the content is JSON but not an object")
	}
	if r.seen, err = r.object(tok, reportMembers, r.setReport); err != nil {
		return err
	}
	return r.readRest()
}

// readRest looks at what follows the report.
func (r *reportReader) readRest() error {
	wrapped := r.quirks[StrayWrapper] > 0
	for {
		c, err := r.lex.peekPastBlanks()
		switch {
		case errors.Is(err, errTruncated):
			return nil
		case err != nil:
			return err
		case c != ']' || !wrapped:
			r.quirks.note(TrailingJunk)
			return nil
		}
		wrapped = false
		if _, err := r.lex.next(); err != nil {
			return err
		}
	}
}

// judge refuses a document that is no report, or one with nothing usable in it.
func (r *reportReader) judge(damaged bool) error {
	named := r.seen.has(reportMembers, memberPolicies) || r.seen.has(reportMembers, memberRange)
	switch {
	case damaged && r.known == 0:
		return refuse(RefusedNotJSON, "the content is not JSON")
	case damaged && len(r.report.Policies) == 0:
		return refuse(RefusedDamaged, "the report is damaged and has no complete policy")
	case !named || r.known < leastMembers:
		return refuse(RefusedOtherJSON, "the content is JSON but not a TLS report")
	}
	return nil
}

// setReport takes a member of the report.
func (r *reportReader) setReport(member string, tok token) (err error) {
	switch member {
	case memberOrganization:
		r.report.OrgName, err = r.text(tok)
	case memberContact:
		r.report.ContactInfo, err = r.text(tok)
	case memberReportID:
		r.report.ReportID, err = r.text(tok)
	case memberRange:
		r.report.Begin, r.report.End = 0, 0
		_, err = r.object(tok, rangeMembers, r.setRange)
	case memberPolicies:
		r.report.Policies = nil
		err = r.list(tok, SingleValue, r.addPolicy)
	}
	return err
}

// setRange takes a member of the time range.
func (r *reportReader) setRange(member string, tok token) (err error) {
	switch member {
	case memberStart:
		r.report.Begin, err = r.time(tok)
	case memberEnd:
		r.report.End, err = r.time(tok)
	}
	return err
}

// check notes what is missing or odd in the head of the report.
func (r *reportReader) check() {
	q, report := &r.quirks, &r.report
	report.checkRange(q)
	q.noteIf(report.OrgName == "", OrgNameMissing)
	q.noteIf(report.ContactInfo == "", ContactMissing)
	q.noteIf(report.ReportID == "", ReportIDMissing)
	q.noteIf(strings.ContainsAny(report.ReportID, "+/@<>"), ReportIDForm)
	q.noteIf(len(report.Policies) == 0, PoliciesEmpty)
}
