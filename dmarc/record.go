package dmarc

import "strings"

// State is how receivers treat a record.
type State uint8

const (
	// OK means that the record is valid.
	OK State = iota
	// ActsAsNone means that p is missing or invalid, or sp or np is invalid, and that rua
	// has a URI: the record is treated as p=none (RFC 9989 §4.10.1).
	ActsAsNone
	// NoProcessing means the same without a URI in rua: receivers do not apply
	// DMARC at all (RFC 9989 §4.10.1).
	NoProcessing
	// Void means that a tag is repeated. RFC 9989 does not define this, but the tag lists
	// it builds on are invalid then (RFC 6376 §3.2): receivers differ.
	Void
)

var stateWords = [...]string{OK: "ok", ActsAsNone: "acts as p=none", NoProcessing: "no DMARC processing", Void: "void"}

// String returns the state in words.
func (s State) String() string { return stateWords[s] }

// Tag is a name and a value of a record as published, without surrounding white space.
type Tag struct{ Name, Value string }

// Record is a DMARC record. Fields have the stated value, or the default if the tag is
// absent or invalid.
type Record struct {
	// Text is the record as published.
	Text string
	// State is how receivers treat the record.
	State State
	// P, SP and NP are the stated policies: Unstated if the tag is absent or invalid. They
	// are set even if State disables them. See Policy.
	P, SP, NP Policy
	// ADKIM and ASPF are the alignment modes for DKIM and SPF.
	ADKIM, ASPF Mode
	// FO is when failure reports are requested.
	FO FailureOptions
	// PSD is whether the domain is a public suffix domain.
	PSD PSD
	// Testing is t=y: receivers apply one level less than the policy.
	Testing bool
	// RUA and RUF are the valid destinations of aggregate and failure reports, at most 100
	// each.
	RUA, RUF []URI
	// Tags are the first 100 tags after the version in order, including unknown and
	// invalid ones.
	Tags []Tag
	// Problems lists at most 100 problems: first those of single tags in order, then those
	// of the whole record.
	Problems []Problem
}

// Subject is the relation of an author domain to the domain of the record.
type Subject uint8

const (
	// Itself is the domain that publishes the record.
	Itself Subject = iota
	// Subdomain is an existing name below it.
	Subdomain
	// MissingSubdomain is a non-existent name below it.
	MissingSubdomain
)

// Usable reports whether receivers can apply the record.
func (r Record) Usable() bool { return r.State == OK || r.State == ActsAsNone }

// Policy returns the policy for a subject and the tag that supplies it. Both are empty if
// the record is not usable. It ignores the t tag; see Applied.
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

// Applied returns the policy that receivers apply if the policy is p: one level less in
// test mode.
func (r Record) Applied(p Policy) Policy {
	if r.Testing {
		return p.Weaker()
	}
	return p
}

// String returns the canonical form of the fields of r. Everything else is omitted, so the
// result for a record with problems is a repaired record.
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
