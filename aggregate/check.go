package aggregate

import (
	"cmp"
	"strings"

	"github.com/dmarcd/dmarcd/dmarc"
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

const (
	scopeHELO  = "helo"
	modeStrict = "s"
)

// disagrees evaluates DMARC from the authentication results of a record (RFC 7489 §3.1),
// and reports whether the receiver came to a different result. It returns false without
// results, or if the policy follows the records, since its alignment modes are not known
// yet.
func (r *Reader) disagrees(c *Record) bool {
	if len(c.DKIMResults)+len(c.SPFResults) == 0 || !r.has(policy) {
		return false
	}
	return c.Compliant() != (r.passesDKIM(c) || r.passesSPF(c))
}

func (r *Reader) passesDKIM(c *Record) bool {
	for i := range c.DKIMResults {
		d := &c.DKIMResults[i]
		if d.Result == ResultPass && r.aligned(c, d.Domain, r.report.Policy.ADKIM) {
			return true
		}
	}
	return false
}

// passesSPF uses only the MAIL FROM identity, or the HELO identity for the null sender
// (RFC 7489 §3.1.2).
func (r *Reader) passesSPF(c *Record) bool {
	for i := range c.SPFResults {
		s := &c.SPFResults[i]
		if s.Result == ResultPass && (s.Scope != scopeHELO || c.EnvelopeFrom == "") &&
			r.aligned(c, s.Domain, r.report.Policy.ASPF) {
			return true
		}
	}
	return false
}

// aligned reports whether an identifier is aligned with the author domain of the record,
// or with the policy domain if there is none.
func (r *Reader) aligned(c *Record, identifier, mode string) bool {
	author := cmp.Or(c.HeaderFrom, r.report.Policy.Domain)
	if author == identifier {
		return author != ""
	}
	return mode != modeStrict && r.organization(author) == r.organization(identifier)
}

// organization returns the organizational domain according to the Public Suffix List.
func (r *Reader) organization(domain string) string {
	const most, longestName = 4096, 255
	if len(domain) > longestName {
		return domain // not a valid name, and expensive to hash
	}
	if known, ok := r.organize[domain]; ok {
		return known
	}
	if len(r.organize) == most {
		clear(r.organize)
	}
	found := dmarc.LegacyOrganization(domain)
	r.organize[domain] = found
	return found
}
