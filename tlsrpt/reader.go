package tlsrpt

import (
	"errors"
	"io"
	"strings"
)

// Reader reads the reports of a JSON document. Most have one; some have several in a list
// or in lines (NDJSON). It is not safe for concurrent use.
type Reader struct {
	in     io.Reader
	limits Limits
	lex    *lexer
	head   tally // the quirks of the document's encoding
	quirks tally // the quirks of the current report
	// listed is true if the reports are in a list.
	listed bool
	// resumed is true after invalid JSON: what follows may be a fragment of it, and is
	// ignored unless it is a report.
	resumed bool
	ended   error
}

// NewReader returns a reader for the reports in a document. It reads nothing yet. If in
// returns io.ErrUnexpectedEOF, as a truncated archive does, the complete policies before
// it are read.
func NewReader(in io.Reader, limits Limits) *Reader {
	return &Reader{in: in, limits: limits.orDefault()}
}

// Next returns the next report. All members of RFC 8460 §4.4 are optional, as long as the
// document is recognizable as a TLS report.
//
// It returns io.EOF after the last report, but a *RejectedError if the document contains
// none. It also returns a *RejectedError for an unusable report, which others may follow,
// and the error of the underlying reader.
func (r *Reader) Next() (Report, error) {
	for {
		if r.ended != nil {
			return Report{}, r.ended
		}
		resumed := r.resumed
		report, err := r.next()
		rejected := new(RejectedError)
		if err != nil && !errors.As(err, &rejected) {
			r.ended = err
		}
		if err == nil || !resumed || !errors.As(err, &rejected) || rejected.Why == RejectedLimit {
			return report, err
		}
	}
}

func (r *Reader) next() (Report, error) {
	if r.lex == nil {
		if err := r.begin(); err != nil {
			r.ended = io.EOF
			return Report{}, err
		}
	}
	r.quirks = r.head
	r.quirks.NoteIf(r.listed, StrayWrapper)
	reading := reportReader{document: document{lex: r.lex, limits: r.limits, quirks: &r.quirks}}
	report, damage, err := reading.read()
	if end := r.readRest(damage, err); end != nil {
		if !errors.Is(end, io.EOF) {
			return Report{}, end
		}
		r.ended = end
	}
	report.Quirks = r.quirks.Counts()
	if err != nil {
		return Report{}, err
	}
	return report, nil
}

// begin finds the first report.
func (r *Reader) begin() error {
	in, err := inUTF8(r.in, &r.head)
	if err != nil {
		return err
	}
	r.lex = newLexer(in, r.limits.TextBytes, &r.quirks)
	first, err := r.lex.peekPastBlanks()
	switch {
	case errors.Is(err, errTruncated):
		return reject(RejectedEmpty, "the document is empty")
	case err != nil:
		return err
	case first == '<':
		return reject(RejectedXML, "the content is XML or HTML and not JSON")
	case first != '{' && first != '[':
		return reject(RejectedNotJSON, "the content is not a JSON object")
	case first == '{':
		return nil
	}
	r.listed = true
	if _, err := r.lex.next(); err != nil {
		return err
	}
	switch first, err = r.lex.peekPastBlanks(); {
	case errors.Is(err, errTruncated):
		return reject(RejectedNotJSON, "the content is not JSON")
	case err != nil:
		return err
	case first != '{':
		return reject(RejectedOtherJSON, "the content is JSON but not an object")
	}
	return nil
}

// readRest skips to the next report. It returns io.EOF if there is none.
func (r *Reader) readRest(damage, rejection error) error {
	rejected := new(RejectedError)
	switch {
	case errors.Is(damage, errTruncated):
		return io.EOF
	case damage != nil:
		r.resumed = true
		return r.lex.skipToObject()
	case rejection != nil && (!errors.As(rejection, &rejected) || rejected.Why == RejectedLimit):
		return io.EOF
	}
	for {
		c, err := r.lex.peekPastBlanks()
		switch {
		case errors.Is(err, errTruncated):
			return io.EOF
		case err != nil:
			return err
		case c == '{':
			return nil
		case c == ',' && r.listed:
		case c == ']' && r.listed:
			r.listed = false
		case c == '[' && !r.listed:
			r.listed = true
		default:
			r.quirks.Note(TrailingJunk)
			return io.EOF
		}
		if _, err := r.lex.next(); err != nil {
			return err
		}
	}
}

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

// entry is an entry of the policies.
type entry struct {
	Policy

	counts members // of the summary
}

// policies reads the policies, which replace earlier ones. A policy counts once it is
// complete.
func (r *reportReader) policies(report *Report, tok token) error {
	report.Policies = nil
	return r.list(tok, SingleValue, func(tok token) error {
		if tok != '{' {
			return r.unusable(tok)
		}
		if r.policyCount++; r.policyCount > r.limits.Policies {
			return reject(RejectedLimit, "the report has too many policies")
		}
		var e entry
		seen, err := object(r, tok, &e, entryMembers)
		if err != nil {
			r.quirks.NoteIf(isDamage(err), PolicyIncomplete)
			return err
		}
		e.check(seen, r.quirks)
		report.Policies = append(report.Policies, e.Policy)
		return nil
	})
}

func (r *reportReader) policy(e *entry, tok token) error {
	e.Type, e.Domain, e.Strings, e.MXHosts = "", "", nil, nil
	_, err := object(r, tok, e, policyMembers)
	return err
}

func (r *reportReader) summary(e *entry, tok token) (err error) {
	e.Successful, e.Failed = 0, 0
	e.counts, err = object(r, tok, e, summaryMembers)
	return err
}

// failures reads the failure details, which replace earlier ones.
func (r *reportReader) failures(e *entry, tok token) error {
	e.Failures = nil
	return r.list(tok, SingleValue, func(tok token) error {
		if tok != '{' {
			return r.unusable(tok)
		}
		if r.detailCount++; r.detailCount > r.limits.Failures {
			return reject(RejectedLimit, "the report has too many failure details")
		}
		var f Failure
		seen, err := object(r, tok, &f, failureMembers)
		if err != nil {
			return err
		}
		r.quirks.NoteIf(f.ResultType == "", ResultTypeMissing)
		r.quirks.NoteIf(!has(seen, failureMembers, memberFailedSessions), CountMissing)
		r.quirks.NoteIf(f.SendingMTAIP == "" && f.ReceivingIP == "" && f.ReceivingMXHostname == "" && f.ReceivingMXHelo == "", PeerMissing)
		e.Failures = append(e.Failures, f)
		return nil
	})
}

func (d *document) policyType(tok token) (PolicyType, error) { return word(d, tok, policyTypes) }

func (d *document) resultType(tok token) (ResultType, error) { return word(d, tok, resultTypes) }

func (d *document) policyStrings(tok token) ([]string, error) {
	return d.textList(tok, SingleValue, func(text string) string { return text })
}

func (d *document) mxHosts(tok token) ([]string, error) {
	return d.textList(tok, MXHostText, d.mxHost)
}

// check notes deviations of the policy. seen are the members of the entry.
func (e *entry) check(seen members, q *tally) {
	if has(seen, entryMembers, memberPolicy) {
		q.NoteIf(e.Type == "", PolicyTypeMissing)
		q.NoteIf(e.Domain == "", PolicyDomainMissing)
		q.NoteIf(e.Type == PolicySTS && len(e.MXHosts) == 0, MXHostMissing)
	} else {
		q.Note(PolicyMissing)
	}
	if has(seen, entryMembers, memberSummary) {
		q.NoteIf(!has(e.counts, summaryMembers, memberSuccessful), CountMissing)
		q.NoteIf(!has(e.counts, summaryMembers, memberFailed), CountMissing)
	} else {
		q.Note(SummaryMissing)
	}
	var detailed int64
	for i := range e.Failures {
		detailed = addCount(detailed, e.Failures[i].FailedSessions)
	}
	q.NoteIf(e.Failed > 0 && len(e.Failures) == 0, DetailsMissing)
	q.NoteIf(detailed > e.Failed, DetailsExceed)
}
