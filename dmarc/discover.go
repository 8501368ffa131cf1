package dmarc

import (
	"context"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd/dns"
)

// Status is the state of the domain's own name, even if the record of an ancestor applies.
type Status uint8

const (
	// StatusInconclusive means that a query needed for the policy failed. Nothing is known
	// about the policy.
	StatusInconclusive Status = iota
	// StatusOK means that a usable record applies, the domain's own or, if it has none, an
	// ancestor's.
	StatusOK
	// StatusNone means that no record applies.
	StatusNone
	// StatusMultiple means that the name has several records. Receivers discard all of
	// them; the record of an ancestor may apply.
	StatusMultiple
	// StatusUnusable means that the applicable record is unusable.
	StatusUnusable
)

var statusWords = [...]string{
	StatusInconclusive: "inconclusive", StatusOK: "ok", StatusNone: "none",
	StatusMultiple: "multiple", StatusUnusable: "unusable",
}

// String returns the status in one word.
func (s Status) String() string { return statusWords[s] }

// Existence is whether a domain exists in DNS.
type Existence uint8

const (
	// ExistenceUnknown means that it was not needed, or that the query failed.
	ExistenceUnknown Existence = iota
	// Exists means that the name, or one below it, has a record of some type.
	Exists
	// Missing means NXDOMAIN.
	Missing
)

// Discovery is the result of policy discovery for an author domain.
//
// The policy and the organizational domain are independent: a domain with its own record
// has a policy even if lookups of the names above it fail.
type Discovery struct {
	// Domain is the author domain.
	Domain string
	Status Status
	// Record is the applicable record, usable or not; nil if there is none or Status is
	// StatusInconclusive.
	Record *Record
	// RecordDomain is the domain that publishes Record, or "".
	RecordDomain string
	// Policy is the policy of Record for Domain; Unstated if there is no usable record.
	Policy Policy
	// Applied is Policy after the t tag.
	Applied Policy
	// Source is the tag of Policy: p, sp or np; "" if it is Unstated.
	Source string
	// Organization is the organizational domain of Domain, "" if a necessary query was
	// inconclusive.
	Organization string
	// Existence is whether Domain exists, if it was queried or is implied by the walk. It
	// matters only for a record with np.
	Existence Existence
	// Steps is the tree walk in order, starting with the domain's own name.
	Steps []Step
	// Reason is why Status is StatusInconclusive or Organization is unknown; "" otherwise.
	Reason string
}

// Queried returns the names queried by the tree walk, in order.
func (d Discovery) Queried() []string {
	names := make([]string, len(d.Steps))
	for i, s := range d.Steps {
		names[i] = QueryName(s.Domain)
	}
	return names
}

// Discover finds the policy that applies to mail from a domain, as RFC 9989 §4.10.1
// describes. It makes at most eight sequential queries for records, and at most one more
// for the existence of the domain. A name that is invalid in DNS has no record and is not
// queried.
func Discover(ctx context.Context, r dns.Resolver, name string) Discovery {
	return discover(ctx, r, name, true)
}

// DiscoverRecord is Discover without the organizational domain of a domain with its own record,
// for which it makes a single query: Steps has one element, and Organization is "".
func DiscoverRecord(ctx context.Context, r dns.Resolver, name string) Discovery {
	return discover(ctx, r, name, false)
}

func discover(ctx context.Context, r dns.Resolver, name string, whole bool) Discovery {
	name = dns.Name(name)
	d := Discovery{Domain: name}
	if !dns.ValidName(name) {
		d.Status, d.Organization = StatusNone, name
		return d
	}
	own := look(ctx, r, name)
	d.Existence = impliedExistence(own.Answer)
	record, published := own.Record()
	if published {
		d.apply(record, name, Itself)
		if !whole {
			d.Steps = []Step{own}
			return d
		}
	}
	d.Steps = walk(ctx, r, own)
	d.Organization, _ = organization(name, d.Steps)
	d.Reason = d.Steps[len(d.Steps)-1].Answer.Reason
	if published || d.Organization == "" {
		return d
	}
	d.inherit(ctx, r)
	if d.Status != StatusInconclusive && len(own.Records) > 1 {
		d.Status = StatusMultiple
	}
	return d
}

// inherit uses the record of the organizational domain or, if that has none, of the public
// suffix domain above it. Records at other names on the path supply no policy.
func (d *Discovery) inherit(ctx context.Context, r dns.Resolver) {
	record, domain, ok := d.inherited()
	if !ok {
		d.Status = StatusNone
		return
	}
	subject := Subdomain
	if record.State == OK && record.NP != Unstated {
		if d.Existence == ExistenceUnknown {
			d.Existence, d.Reason = existence(ctx, r, d.Domain)
		}
		switch d.Existence {
		case ExistenceUnknown:
			return
		case Missing:
			subject = MissingSubdomain
		}
	}
	d.apply(record, domain, subject)
}

// inherited returns the record that applies to a domain without its own.
func (d *Discovery) inherited() (record Record, domain string, ok bool) {
	at := slices.IndexFunc(d.Steps, func(s Step) bool { return s.Domain == d.Organization })
	if at >= 0 {
		if record, ok = d.Steps[at].Record(); ok {
			return record, d.Organization, true
		}
	}
	// Any record without psd=y would have made its name, or a shorter one, the
	// organizational domain; and psd=y ends the walk.
	last := d.Steps[len(d.Steps)-1]
	record, ok = last.Record()
	return record, last.Domain, ok
}

// apply sets the policy of a record.
func (d *Discovery) apply(record Record, domain string, subject Subject) {
	d.Record, d.RecordDomain = &record, domain
	d.Policy, d.Source = record.Policy(subject)
	d.Applied = record.Applied(d.Policy)
	d.Status = StatusUnusable
	if record.Usable() {
		d.Status = StatusOK
	}
}

// impliedExistence returns what the answer for _dmarc.<name> implies about the name: if a
// name below it exists, so does the name (RFC 8020). An alias implies nothing, since a
// DNAME synthesizes names.
func impliedExistence(a dns.Answer) Existence {
	if len(a.Aliases) == 0 && (a.Outcome == dns.Data || a.Outcome == dns.NoData) {
		return Exists
	}
	return ExistenceUnknown
}

// existence queries whether a name exists: it does unless the answer is NXDOMAIN (RFC 9989
// §4.7, np). Any type would do; even unusual servers answer address queries correctly.
func existence(ctx context.Context, r dns.Resolver, name string) (e Existence, reason string) {
	a := r.Resolve(ctx, dns.Question{Name: name, Type: dns.A})
	switch {
	case a.Outcome == dns.Inconclusive:
		return ExistenceUnknown, a.Reason
	case a.Outcome == dns.NoSuchName && len(a.Aliases) == 0:
		return Missing, ""
	default:
		// NXDOMAIN after an alias refers to the target of the alias.
		return Exists, ""
	}
}

// Miss is why a text at a DMARC name is not a DMARC record. The values are stable.
type Miss string

const (
	// Unrelated: the text has nothing to do with DMARC.
	Unrelated Miss = "unrelated"
	// VersionCase: the version is not written DMARC1, such as in v=dmarc1.
	VersionCase Miss = "version-case"
	// OtherVersion: the version is another one, such as DMARC2 or DMARC1.0.
	OtherVersion Miss = "other-version"
	// LeadingSpace: there is white space before the version.
	LeadingSpace Miss = "leading-space"
	// Quoted: the text itself is wrapped in quotation marks.
	Quoted Miss = "quoted"
	// EscapedSeparator: the semicolons are escaped by backslashes.
	EscapedSeparator Miss = "escaped-separator"
	// MissingSeparator: no semicolon follows the version.
	MissingSeparator Miss = "missing-separator"
	// VersionNotFirst: there is a version, but another tag precedes it.
	VersionNotFirst Miss = "version-not-first"
	// SPFRecord: the text is an SPF record at the wrong name.
	SPFRecord Miss = "spf-record"
	// NoMiss: the text is a DMARC record.
	NoMiss Miss = ""
)

// quotationMarks are the straight and the typographic ones.
const quotationMarks = "\"'“”„‘’"

// ClassifyMiss returns the first error of a text that Parse does not accept as a DMARC
// record.
func ClassifyMiss(txt string) Miss {
	if _, _, ok := cutVersion(txt); ok {
		return NoMiss
	}
	trimmed := strings.TrimSpace(txt)
	lower := strings.ToLower(trimmed)
	if lower == "v=spf1" || strings.HasPrefix(lower, "v=spf1 ") {
		return SPFRecord
	}
	if unquoted := strings.Trim(trimmed, quotationMarks); unquoted != trimmed && namesVersion(unquoted) {
		return Quoted
	}
	if !namesVersion(trimmed) {
		if _, after, ok := strings.Cut(lower, ";"); ok && hasVersionElement(after) {
			return VersionNotFirst
		}
		return Unrelated
	}
	if !strings.HasPrefix(txt, trimmed) {
		return LeadingSpace
	}
	return versionMiss(trimmed)
}

// versionMiss classifies a text that starts with a DMARC version.
func versionMiss(txt string) Miss {
	_, value, _ := strings.Cut(txt, "=")
	value = strings.TrimLeft(value, whitespace)
	end := strings.IndexAny(value, "; \t\\,")
	if end < 0 {
		end = len(value)
	}
	word, after := value[:end], strings.TrimLeft(value[end:], whitespace)
	switch {
	case word != version && strings.EqualFold(word, version):
		return VersionCase
	case word != version:
		return OtherVersion
	case strings.HasPrefix(after, `\`):
		return EscapedSeparator
	default:
		return MissingSeparator
	}
}

// namesVersion reports whether txt begins with v=DMARC in any case.
func namesVersion(txt string) bool {
	name, value, ok := strings.Cut(txt, "=")
	if !ok || !strings.EqualFold(strings.Trim(name, whitespace), tagV) {
		return false
	}
	value = strings.TrimLeft(value, whitespace)
	const word = "dmarc"
	return len(value) >= len(word) && strings.EqualFold(value[:len(word)], word)
}

// hasVersionElement reports whether one of the elements is a version of DMARC.
func hasVersionElement(elements string) bool {
	for element := range strings.SplitSeq(elements, ";") {
		if namesVersion(strings.Trim(element, whitespace)) {
			return true
		}
	}
	return false
}
