package aggregate

import (
	"strings"

	"github.com/dmarcd/dmarcd/internal/reporttext"
)

const (
	// longRange is longer than a day even where daylight saving time ends in it.
	longRange    = 25 * 60 * 60
	usualVersion = "1.0"
)

// dialect tells the specification that the report follows, by what has been read
// so far.
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

// checkHead refuses a report that lacks what everything else depends on, and notes
// what else is missing or odd outside of its records.
func (r *Reader) checkHead() error {
	m := &r.report.Metadata
	hasBegin, hasEnd := r.has(rangeBegin), r.has(rangeEnd)
	switch {
	case !hasBegin && !hasEnd:
		return refuse(RefusedIncomplete, "the report has no time range")
	case r.report.Policy.Domain == "" && r.firstFrom == "":
		return refuse(RefusedIncomplete, "the report names neither a policy domain nor an author domain")
	case !hasBegin:
		m.Begin = m.End
	case !hasEnd:
		m.End = m.Begin
	}
	q := &r.quirks
	if r.report.Policy.Domain == "" {
		q.note(PolicyDomainMissing)
		r.report.Policy.Domain = r.firstFrom
	}
	q.noteIf(hasBegin && !reporttext.Plausible(m.Begin, r.limits.Latest), TimeImplausible)
	q.noteIf(hasEnd && !reporttext.Plausible(m.End, r.limits.Latest), TimeImplausible)
	q.noteIf(!hasBegin || !hasEnd, RangeIncomplete)
	q.noteIf(m.Begin == m.End && hasBegin && hasEnd, RangeEmpty)
	q.noteIf(m.Begin > m.End, RangeReversed)
	q.noteIf(m.End-m.Begin > longRange, RangeLong)
	q.noteIf(m.OrgName == "", OrgNameMissing)
	q.noteIf(m.Email == "", EmailMissing)
	q.noteIf(m.ReportID == "", ReportIDMissing)
	q.noteIf(m.ReportID != "" && !isReportID(m.ReportID), ReportIDForm)
	r.checkDialect()
	return nil
}

// checkDialect notes what the report's own dialect asks for.
func (r *Reader) checkDialect() {
	q, p, dialect := &r.quirks, &r.report.Policy, r.dialect()
	q.noteIf(r.report.Version == "" && dialect != DialectRFC9990, VersionMissing)
	q.noteIf(r.report.Version != "" && r.report.Version != usualVersion, VersionUnusual)
	q.noteIf(dialect == DialectRFC9990 && r.report.Namespace != namespaceRFC9990 && r.report.Namespace != namespaceDraft,
		NamespaceMissing)
	q.noteIf(p.P == "", PolicyIncomplete)
	q.noteIf(p.SP == "" && (dialect != DialectRFC9990 || r.has(policySP)), PolicyIncomplete)
	q.noteIf(p.Percent == "" && (dialect != DialectRFC9990 || r.has(policyPercent)), PolicyIncomplete)
	q.noteIf(p.FailureOptions == "" && (dialect == DialectRFC7489 || r.has(policyFO)), PolicyIncomplete)
	q.noteIf(p.ADKIM == "" && r.has(policyADKIM), PolicyIncomplete)
	q.noteIf(p.ASPF == "" && r.has(policyASPF), PolicyIncomplete)
}

// isReportID reports whether the id is a dot-atom, perhaps with a domain behind an
// "@". RFC 9990 allows angle brackets around it; the key of the report is without
// them.
func isReportID(id string) bool {
	left, right, hasDomain := strings.Cut(id, "@")
	return isDotAtom(left) && (!hasDomain || isDotAtom(right))
}

// isDotAtom is the rule of RFC 5322 §3.2.3.
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
