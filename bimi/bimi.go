// Package bimi parses BIMI assertion records and validates what they refer to, following
// draft-brand-indicators-for-message-identification: the record (§4.3), its lookup
// (§7.2), the required DMARC policy (§7.1), the image (SVG Tiny Portable/Secure,
// draft-svg-tiny-ps-abrotman), and the evidence document with a mark certificate
// (draft-fetch-validation-vmc-wchuang).
//
// The caller provides the dns.Resolver, the HTTP client, deadlines and trusted root
// certificates. The package does not evaluate messages, and checks neither revocation nor
// certificate transparency. A Problem is a kind, a subject and a text; the caller turns
// it into a message for users.
package bimi

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/txt"
)

// State is how receivers treat a record.
type State uint8

const (
	// OK means that the record refers to an image.
	OK State = iota
	// Declined means that the owner declines to participate: l and a are both empty
	// (§4.3.1).
	Declined
	// Invalid means that receivers cannot use the record.
	Invalid
)

var stateWords = [...]string{OK: "ok", Declined: "declined", Invalid: "invalid"}

// String returns the state in one word.
func (s State) String() string { return stateWords[s] }

// Avatar is the image that the owner prefers.
type Avatar uint8

const (
	// Brand is the image of the record.
	Brand Avatar = iota
	// Personal is the sender's profile picture at the mailbox provider.
	Personal
)

// String returns the value of the avp tag.
func (a Avatar) String() string {
	if a == Personal {
		return "personal"
	}
	return "brand"
}

// Tag is a name and a trimmed value of a record.
type Tag struct{ Name, Value string }

// Record is a BIMI assertion record. The fields of tags that are absent or invalid have
// their defaults.
type Record struct {
	// Text is the published record.
	Text  string
	State State
	// Location is the URI of the image (l).
	Location string
	// Evidence is the URI of the evidence document (a).
	Evidence string
	// LocalParts are the local part prefixes with their own records (lps), at most 100.
	LocalParts []string
	// Avatar is the owner's preference (avp).
	Avatar Avatar
	// Tags are the first 100 tags after the version in order, known or not, valid or not.
	Tags []Tag
	// Problems contains at most 100 problems: first those of single tags in order, then
	// those of the whole record.
	Problems []Problem
}

// String returns the record in canonical form. If r has problems, the result is a
// repaired or declining record, not an equal one.
func (r Record) String() string {
	var b strings.Builder
	b.WriteString("v=BIMI1; l=" + r.Location + "; a=" + r.Evidence)
	if len(r.LocalParts) > 0 {
		b.WriteString("; lps=" + strings.Join(r.LocalParts, ","))
	}
	if r.Avatar != Brand {
		b.WriteString("; avp=" + r.Avatar.String())
	}
	return b.String()
}

// DefaultSelector is the selector of messages that do not specify one.
const DefaultSelector = "default"

// Status is the result of a lookup.
type Status uint8

const (
	// StatusInconclusive means that a query failed.
	StatusInconclusive Status = iota
	// StatusOK means that a record applies and refers to an image.
	StatusOK
	// StatusNone means that no record applies.
	StatusNone
	// StatusDeclined means that the applicable record declines to participate.
	StatusDeclined
	// StatusMultiple means that there are several records; receivers ignore them all.
	StatusMultiple
	// StatusInvalid means that the applicable record is unusable.
	StatusInvalid
)

var statusWords = [...]string{
	StatusInconclusive: "inconclusive", StatusOK: "ok", StatusNone: "none",
	StatusDeclined: "declined", StatusMultiple: "multiple", StatusInvalid: "invalid",
}

// String returns the status in one word.
func (s Status) String() string { return statusWords[s] }

// Query specifies the record to look up.
type Query struct {
	// Domain is the author domain.
	Domain string
	// Organization is its organizational domain as in DMARC. If it is "" or the domain
	// itself, there is no fallback.
	Organization string
	// Selector is the selector of the message; "" is the default.
	Selector string
}

// normalized returns the query with normalized names and the default selector filled in.
func (q Query) normalized() Query {
	q.Domain, q.Organization, q.Selector = dns.Name(q.Domain), dns.Name(q.Organization), dns.Name(q.Selector)
	q.Selector = cmp.Or(q.Selector, DefaultSelector)
	return q
}

// Result is the result of a lookup.
type Result struct {
	// Query is the normalized query.
	Query  Query
	Status Status
	// Record is the applicable record, usable or not; nil if there is none or several.
	Record *Record
	// RecordDomain is the domain of the records: the author domain or its organizational
	// domain; "" if there are none.
	RecordDomain string
	// Texts are the BIMI records at RecordDomain, at most 100.
	Texts []string
	// Ignored are the other TXT records at the queried names, at most 100.
	Ignored []string
	// Queried are the queried names, in order.
	Queried []string
	// Reason explains StatusInconclusive; "" otherwise.
	Reason string
}

// QueryName returns the name of the record of a domain.
func QueryName(selector, domain string) string {
	return dns.Name(selector) + "._bimi." + dns.Name(domain)
}

// Lookup looks up the record for mail from a domain (§7.2): its own, or that of the
// organizational domain with the same selector. It makes at most two queries. Selectors
// derived from local parts are not tried, since there is no message.
func Lookup(ctx context.Context, r dns.Resolver, q Query) Result {
	q = q.normalized()
	result := Result{Query: q}
	if result.lookUp(ctx, r, q.Domain) || q.Organization == "" || q.Organization == q.Domain {
		return result
	}
	result.lookUp(ctx, r, q.Organization)
	return result
}

// lookUp looks up the record of one domain and reports whether the result is final.
func (result *Result) lookUp(ctx context.Context, r dns.Resolver, domain string) bool {
	name := QueryName(result.Query.Selector, domain)
	result.Queried = append(result.Queried, name)
	found := txt.Find(ctx, r, name, Parse)
	if found.Answer.Outcome == dns.Inconclusive {
		result.Status, result.Reason = StatusInconclusive, found.Answer.Reason
		return true
	}
	left := maxListed - len(result.Ignored)
	result.Ignored = append(result.Ignored, found.Others[:min(left, len(found.Others))]...)
	for _, record := range found.Records {
		result.Texts = append(result.Texts, record.Text)
	}
	if len(found.Records) == 0 {
		result.Status = StatusNone
		return false
	}
	result.RecordDomain = domain
	result.Status = StatusMultiple
	if record, ok := found.Record(); ok {
		result.Status, result.Record = statusOf(record.State), &record
	}
	return true
}

// statusOf returns the status for one applicable record.
func statusOf(s State) Status {
	switch s {
	case OK:
		return StatusOK
	case Declined:
		return StatusDeclined
	default:
		return StatusInvalid
	}
}

// The relevant DMARC policies.
const (
	policyNone       = "none"
	policyQuarantine = "quarantine"
)

// Policy contains the relevant parts of a domain's DMARC record.
type Policy struct {
	Domain string
	// P and SP are the policies in lower case, "" if not stated. A domain without P has
	// no policy.
	P, SP string
	// Percent is the text of pct, "" if not stated.
	Percent string
	// Testing is t=y.
	Testing bool
	// Collapsed is true for a broken record, which receivers treat as p=none or ignore.
	Collapsed bool
}

// Preconditions returns the problems in DMARC policies that prevent BIMI (§7.1). The
// policy of the author domain is required, and that of its organizational domain if
// different. Testing mode and broken records are newer than the draft, which refers to
// RFC 7489; they fail here because the stated policy is not applied.
func Preconditions(policies ...Policy) []Problem {
	var found problems
	for _, p := range policies {
		switch {
		case p.Collapsed:
			found.note(true, PolicyCollapsed, p.Domain, p.P)
		case p.P == "":
			found.note(true, PolicyMissing, p.Domain, "")
		}
		found.note(p.P == policyNone, PolicyNone, p.Domain, p.P)
		found.note(p.SP == policyNone, SubdomainPolicyNone, p.Domain, p.SP)
		found.note(p.P == policyQuarantine && p.Percent != "" && p.Percent != "100", PartialQuarantine, p.Domain, p.Percent)
		found.note(p.Testing, PolicyTesting, p.Domain, p.P)
	}
	return found
}

// maxListed limits the tags, problems and other items per source, so that hostile input
// stays cheap.
const maxListed = 100

// problems is a list without duplicates.
type problems []Problem

// note adds a problem if the condition holds.
func (p *problems) note(condition bool, kind Kind, subject, text string) {
	problem := Problem{Kind: kind, Subject: subject, Text: shorten(text)}
	if condition && len(*p) < maxListed && !slices.Contains(*p, problem) {
		*p = append(*p, problem)
	}
}

// maxTextBytes limits the text of one problem.
const maxTextBytes = 500

// shorten truncates a long text between two characters.
func shorten(text string) string {
	if len(text) > maxTextBytes {
		return strings.ToValidUTF8(text[:maxTextBytes], "")
	}
	return text
}
