package aggregate

import (
	"strings"

	"github.com/dmarcd/dmarcd/internal/reporttext"
)

const (
	// longRange is longer than a day, even if daylight saving time ends during it.
	longRange    = 25 * 60 * 60
	usualVersion = "1.0"
)

// dialect returns the specification that the report follows, according to what has been
// read so far.
func (r *Reader) dialect() Dialect {
	const modern = 1<<generator | 1<<policyTesting | 1<<policyDiscovery | 1<<extension
	switch {
	case r.report.Namespace == namespaceRFC9990, r.report.Namespace == namespaceDraft, r.seen&modern != 0:
		return DialectRFC9990
	case r.report.Version != "":
		return DialectRFC7489
	default:
		return DialectDraft
	}
}

// checkHead rejects a report without a period or domain, and notes other deviations
// outside the records.
func (r *Reader) checkHead() error {
	m := &r.report.Metadata
	hasBegin, hasEnd := r.has(rangeBegin), r.has(rangeEnd)
	switch {
	case !hasBegin && !hasEnd:
		return reject(RejectedIncomplete, "the report has no time range")
	case r.report.Policy.Domain == "" && r.firstFrom == "":
		return reject(RejectedIncomplete, "the report names neither a policy domain nor an author domain")
	case !hasBegin:
		m.Begin = m.End
	case !hasEnd:
		m.End = m.Begin
	}
	q := &r.quirks
	if r.report.Policy.Domain == "" {
		q.Note(PolicyDomainMissing)
		r.report.Policy.Domain = r.firstFrom
	}
	q.NoteIf(hasBegin && !reporttext.Plausible(m.Begin, r.limits.Latest), TimeImplausible)
	q.NoteIf(hasEnd && !reporttext.Plausible(m.End, r.limits.Latest), TimeImplausible)
	q.NoteIf(!hasBegin || !hasEnd, RangeIncomplete)
	q.NoteIf(m.Begin == m.End && hasBegin && hasEnd, RangeEmpty)
	q.NoteIf(m.Begin > m.End, RangeReversed)
	q.NoteIf(m.End-m.Begin > longRange, RangeLong)
	q.NoteIf(m.OrgName == "", OrgNameMissing)
	q.NoteIf(m.Email == "", EmailMissing)
	q.NoteIf(m.ReportID == "", ReportIDMissing)
	q.NoteIf(m.ReportID != "" && !isReportID(m.ReportID), ReportIDForm)
	r.checkDialect()
	return nil
}

// checkDialect notes what the dialect of the report requires.
func (r *Reader) checkDialect() {
	q, p, dialect := &r.quirks, &r.report.Policy, r.dialect()
	q.NoteIf(r.report.Version == "" && dialect != DialectRFC9990, VersionMissing)
	q.NoteIf(r.report.Version != "" && r.report.Version != usualVersion, VersionUnusual)
	q.NoteIf(dialect == DialectRFC9990 && r.report.Namespace != namespaceRFC9990 && r.report.Namespace != namespaceDraft,
		NamespaceMissing)
	q.NoteIf(p.P == "", PolicyIncomplete)
	q.NoteIf(p.SP == "" && (dialect != DialectRFC9990 || r.has(policySP)), PolicyIncomplete)
	q.NoteIf(p.Percent == "" && (dialect != DialectRFC9990 || r.has(policyPercent)), PolicyIncomplete)
	q.NoteIf(p.FailureOptions == "" && (dialect == DialectRFC7489 || r.has(policyFO)), PolicyIncomplete)
	q.NoteIf(p.ADKIM == "" && r.has(policyADKIM), PolicyIncomplete)
	q.NoteIf(p.ASPF == "" && r.has(policyASPF), PolicyIncomplete)
}

// isReportID reports whether the id is a dot-atom, optionally followed by "@" and a
// domain. RFC 9990 allows angle brackets around it; the key does not include them.
func isReportID(id string) bool {
	left, right, hasDomain := strings.Cut(id, "@")
	return isDotAtom(left) && (!hasDomain || isDotAtom(right))
}

// isDotAtom follows RFC 5322 §3.2.3.
func isDotAtom(s string) bool {
	for atom := range strings.SplitSeq(s, ".") {
		if atom == "" {
			return false
		}
		for i := range len(atom) {
			if c := atom[i]; !isAlphanumeric(c) && strings.IndexByte("!#$%&'*+-/=?^_`{|}~", c) < 0 {
				return false
			}
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
}
