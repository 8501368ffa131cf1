package dmarc

import "strings"

// State tells what receivers make of a record.
type State uint8

const (
	// OK means that the record says what to do.
	OK State = iota
	// ActsAsNone means that p is missing or invalid, or sp or np is invalid, and
	// that rua lists a URI: the whole record acts as if it said p=none (RFC 9989
	// §4.10.1).
	ActsAsNone
	// NoProcessing means the same without a URI in rua: receivers do not apply
	// DMARC at all (RFC 9989 §4.10.1).
	NoProcessing
	// Void means that a tag appears twice. RFC 9989 is silent on it, but the tag
	// lists that it builds on become void (RFC 6376 §3.2): receivers differ, and
	// none may be relied on.
	Void
)

// String returns the state in words.
func (s State) String() string {
	switch s {
	case OK:
		return "ok"
	case ActsAsNone:
		return "acts as p=none"
	case NoProcessing:
		return "no DMARC processing"
	default:
		return "void"
	}
}

// Tag is a name and a value of a record as they were written, without the white
// space around them.
type Tag struct{ Name, Value string }

// Record is a DMARC record. The fields of the tags hold what was stated, or the
// default where a tag is absent or invalid.
type Record struct {
	// Text is the record as it was published.
	Text string
	// State tells what receivers make of the record.
	State State
	// P, SP and NP are the literal policies: Unstated where the tag is absent or
	// invalid, and kept even where State takes their effect away. See Policy.
	P, SP, NP Policy
	// ADKIM and ASPF are the alignment modes for DKIM and SPF.
	ADKIM, ASPF Mode
	// FO tells when failure reports are wanted.
	FO FailureOptions
	// PSD tells whether the domain is a public suffix domain.
	PSD PSD
	// Testing is t=y: the owner asks for one level less than the policy says.
	Testing bool
	// RUA and RUF hold the valid destinations of aggregate and failure reports,
	// at most 100 each.
	RUA, RUF []URI
	// Tags holds the first 100 tags after the version in their order, known or
	// not, valid or not.
	Tags []Tag
	// Problems holds what is wrong, at most 100: first what concerns single tags
	// in their order, then what concerns the whole.
	Problems []Problem
}

// Subject is whose mail a policy is for, seen from the domain of the record.
type Subject uint8

const (
	// Itself is the domain that publishes the record.
	Itself Subject = iota
	// Subdomain is a name below it that exists.
	Subdomain
	// MissingSubdomain is a name below it that does not exist.
	MissingSubdomain
)

// Usable reports whether receivers can act on the record.
func (r Record) Usable() bool { return r.State == OK || r.State == ActsAsNone }

// Policy returns the policy that the record asks for and the name of the tag that
// supplies it. Both are empty where the record is not usable. The t tag is not
// considered; see Applied.
func (r Record) Policy(s Subject) (policy Policy, tag string) {
	switch {
	case !r.Usable():
		return Unstated, ""
	case r.State == ActsAsNone:
		return None, tagP
	case s == MissingSubdomain && r.NP != Unstated:
		return r.NP, tagNP
	case s != Itself && r.SP != Unstated:
		return r.SP, tagSP
	default:
		return r.P, tagP
	}
}

// Applied returns what receivers are asked to apply where the policy is p: one
// level less in testing.
func (r Record) Applied(p Policy) Policy {
	if r.Testing {
		return p.Weaker()
	}
	return p
}

// String returns a record that states the fields of r and nothing else, in one
// canonical form. What is not in the fields is left out, so that for a record
// with problems the result is a repaired record and not an equal one.
func (r Record) String() string {
	var b strings.Builder
	b.WriteString(tagV + "=" + version)
	write := func(tag, value string, stated bool) {
		if stated {
			b.WriteString("; " + tag + "=" + value)
		}
	}
	write(tagP, r.P.String(), r.P != Unstated)
	write(tagSP, r.SP.String(), r.SP != Unstated)
	write(tagNP, r.NP.String(), r.NP != Unstated)
	write(tagADKIM, r.ADKIM.String(), r.ADKIM != Relaxed)
	write(tagASPF, r.ASPF.String(), r.ASPF != Relaxed)
	write(tagPSD, r.PSD.String(), r.PSD != PSDUnknown)
	write(tagT, "y", r.Testing)
	write(tagRUA, joinURIs(r.RUA), len(r.RUA) > 0)
	write(tagRUF, joinURIs(r.RUF), len(r.RUF) > 0)
	write(tagFO, r.FO.String(), r.FO != 0 && r.FO != FailureAll)
	return b.String()
}
