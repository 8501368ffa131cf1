package tlsrpt

import (
	"errors"
	"io"
	"strings"
)

// leastMembers is how many members of RFC 8460 a document needs to be taken for a
// report. A report with nothing but a policy domain has as many.
const leastMembers = 3

// ReadReport reads the report in a JSON document, the first where there are several.
// See Reader.
func ReadReport(in io.Reader, limits Limits) (Report, error) {
	return NewReader(in, limits).Next()
}

// reportReader builds a report from a document.
type reportReader struct {
	document

	report   Report
	seen     members // of the report
	policies int     // all that were begun, also those that count no longer
	failures int
}

// read reads a report up to its end, or up to the place where it is damaged, and
// returns what it came to. The lexer is at its first brace.
func (r *reportReader) read() (report Report, damage, err error) {
	tok, err := r.lex.next()
	if err == nil {
		r.seen, err = r.object(tok, reportMembers, r.setReport)
	}
	if err != nil && !isDamage(err) {
		return Report{}, nil, err
	}
	if refusal := r.judge(err != nil); refusal != nil {
		return Report{}, err, refusal
	}
	r.quirks.noteIf(errors.Is(err, errTruncated), Truncated)
	r.quirks.noteIf(errors.Is(err, errMalformed), Malformed)
	r.check()
	r.report.Content = contentOf(&r.report)
	return r.report, err, nil
}

// isDamage reports whether an error says that the document is damaged.
func isDamage(err error) bool {
	return errors.Is(err, errTruncated) || errors.Is(err, errMalformed)
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
	q, report := r.quirks, &r.report
	report.checkRange(q, r.limits.Latest)
	q.noteIf(report.OrgName == "", OrgNameMissing)
	q.noteIf(report.ContactInfo == "", ContactMissing)
	q.noteIf(report.ReportID == "", ReportIDMissing)
	q.noteIf(strings.ContainsAny(report.ReportID, "+/@<>"), ReportIDForm)
	q.noteIf(len(report.Policies) == 0, PoliciesEmpty)
}
