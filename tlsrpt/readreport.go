package tlsrpt

import (
	"errors"
	"io"
	"strings"
)

// leastMembers is how many members of RFC 8460 a document must have to be a report. A
// report with only a policy domain has that many.
const leastMembers = 3

// ReadReport reads the report in a JSON document, the first if there are several. See
// Reader.
func ReadReport(in io.Reader, limits Limits) (Report, error) {
	return NewReader(in, limits).Next()
}

// reportReader reads one report.
type reportReader struct {
	document

	report      Report
	seen        members // of the report
	policyCount int     // including those of repeated members, which are discarded
	detailCount int
}

// read reads a report to its end, or to the point where it is damaged. The lexer is at
// its opening brace.
func (r *reportReader) read() (report Report, damage, err error) {
	r.lex.inReport = true
	defer func() { r.lex.inReport = false }()
	tok, err := r.lex.next()
	if err == nil {
		r.seen, err = object(r, tok, &r.report, reportMembers)
	}
	if err != nil && !isDamage(err) {
		return Report{}, nil, err
	}
	if rejection := r.finish(err != nil); rejection != nil {
		return Report{}, err, rejection
	}
	r.quirks.NoteIf(errors.Is(err, errTruncated), Truncated)
	r.quirks.NoteIf(errors.Is(err, errMalformed), Malformed)
	r.check()
	r.report.Content = contentOf(&r.report)
	return r.report, err, nil
}

// isDamage reports whether an error means that the document is damaged.
func isDamage(err error) bool {
	return errors.Is(err, errTruncated) || errors.Is(err, errMalformed)
}

// finish rejects a document that is not a usable report.
func (r *reportReader) finish(damaged bool) error {
	named := has(r.seen, reportMembers, memberPolicies) || has(r.seen, reportMembers, memberRange)
	switch {
	case damaged && r.known == 0:
		return reject(RejectedNotJSON, "the content is not JSON")
	case damaged && len(r.report.Policies) == 0:
		return reject(RejectedDamaged, "the report is damaged and has no complete policy")
	case !named || r.known < leastMembers:
		return reject(RejectedOtherJSON, "the content is JSON but not a TLS report")
	}
	return nil
}

// dateRange reads the period, which replaces an earlier one.
func (r *reportReader) dateRange(report *Report, tok token) error {
	report.Begin, report.End = 0, 0
	_, err := object(r, tok, report, rangeMembers)
	return err
}

// check notes deviations outside the policies.
func (r *reportReader) check() {
	q, report := r.quirks, &r.report
	report.checkRange(q, r.limits.Latest)
	q.NoteIf(report.OrgName == "", OrgNameMissing)
	q.NoteIf(report.ContactInfo == "", ContactMissing)
	q.NoteIf(report.ReportID == "", ReportIDMissing)
	q.NoteIf(strings.ContainsAny(report.ReportID, "+/@<>"), ReportIDForm)
	q.NoteIf(len(report.Policies) == 0, PoliciesEmpty)
}
