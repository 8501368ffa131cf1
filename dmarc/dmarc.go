// Package dmarc parses DMARC records and finds the policy that applies to a domain, as RFC
// 9989 describes: the record (§4.7, §4.8), the tree walk (§4.10), policy discovery
// (§4.10.1), the organizational domain (§4.10.2), alignment (§4.4), and the authorization
// of external report destinations (RFC 9990 §4). Names that start with Legacy implement
// RFC 7489 with the Public Suffix List.
//
// The package uses a dns.Resolver, which is responsible for deadlines, retries and
// caching. It evaluates no messages, and its problems are typed and have no user-facing
// text.
//
// Domain names are A-labels in any case, with or without a trailing dot; results are in
// the form of dns.Name.
package dmarc

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd/dns"
)

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

// Edit returns the text of the record with some tags changed, in a form that receivers of
// both RFC 7489 and RFC 9989 can parse: p follows the version. A tag with an empty value
// is removed; a new tag is appended. All others, including unknown ones, are unchanged; of
// a duplicate tag the first remains.
func (r Record) Edit(changes ...Tag) string {
	tags := make([]Tag, 0, len(r.Tags)+len(changes))
	set := func(tag Tag) {
		at := slices.IndexFunc(tags, func(t Tag) bool { return strings.EqualFold(t.Name, tag.Name) })
		switch {
		case at < 0:
			tags = append(tags, tag)
		default:
			tags[at].Value = tag.Value
		}
	}
	for _, tag := range r.Tags {
		tag.Name = strings.ToLower(tag.Name)
		if !slices.ContainsFunc(tags, func(t Tag) bool { return strings.EqualFold(t.Name, tag.Name) }) {
			tags = append(tags, tag)
		}
	}
	for _, tag := range changes {
		set(tag)
	}
	var b strings.Builder
	b.WriteString(tagV + "=" + version)
	write := func(tag Tag) {
		if tag.Value != "" {
			b.WriteString("; " + tag.Name + "=" + tag.Value)
		}
	}
	for _, tag := range tags {
		if strings.EqualFold(tag.Name, tagP) {
			write(tag)
		}
	}
	for _, tag := range tags {
		if !strings.EqualFold(tag.Name, tagP) {
			write(tag)
		}
	}
	return b.String()
}

// Locked returns the text of the record with the policy reject for all names and all
// messages.
func (r Record) Locked() string {
	return r.Edit(Tag{tagP, Reject.String()}, Tag{Name: tagSP}, Tag{Name: tagNP}, Tag{Name: tagT}, Tag{Name: "pct"})
}

// Tightened returns the text of the record with the next stricter policy for all names and all
// messages: the same policy if it applies to a part of the messages, else quarantine, or reject
// if that applies already. It removes t, pct and weaker policies for subdomains.
func (r Record) Tightened() string {
	policy := Quarantine
	switch {
	case r.Percent() < everything && r.P >= Quarantine:
		policy = r.P
	case r.Applied(r.P) >= Quarantine:
		policy = Reject
	}
	stricter := func(p Policy) string {
		if p > policy {
			return p.String()
		}
		return ""
	}
	return r.Edit(Tag{tagP, policy.String()}, Tag{tagSP, stricter(r.SP)}, Tag{tagNP, stricter(r.NP)}, Tag{tagT, ""}, Tag{"pct", ""})
}

// Policy is what a domain owner requests for mail that fails DMARC.
type Policy uint8

const (
	// Unstated means that no policy is given; it is the zero value.
	Unstated Policy = iota
	// None requests reports only.
	None
	// Quarantine requests to treat the mail as suspicious.
	Quarantine
	// Reject requests to reject the mail.
	Reject
)

var policyWords = [...]string{None: "none", Quarantine: "quarantine", Reject: "reject"}

// String returns the value in the record, "" for Unstated.
func (p Policy) String() string { return policyWords[p] }

// Weaker returns the policy one level down, as applied for t=y (RFC 9989 §4.7).
func (p Policy) Weaker() Policy {
	if p > None {
		return p - 1
	}
	return p
}

// parsePolicy parses a policy, ignoring case (RFC 9989 §4.8).
func parsePolicy(value string) (Policy, bool) {
	for p := None; p <= Reject; p++ {
		if strings.EqualFold(value, p.String()) {
			return p, true
		}
	}
	return Unstated, false
}

// Mode is the alignment mode.
type Mode uint8

const (
	// Relaxed requires the same organizational domain; it is the default.
	Relaxed Mode = iota
	// Strict requires the same name.
	Strict
)

// String returns the value of the adkim and aspf tags.
func (m Mode) String() string {
	if m == Strict {
		return "s"
	}
	return "r"
}

func parseMode(value string) (Mode, bool) {
	switch strings.ToLower(value) {
	case "r":
		return Relaxed, true
	case "s":
		return Strict, true
	default:
		return Relaxed, false
	}
}

// PSD is whether a domain declares itself a public suffix domain.
type PSD uint8

const (
	// PSDUnknown is psd=u, the default: the tree walk decides.
	PSDUnknown PSD = iota
	// PSDYes is psd=y: others register names below this domain.
	PSDYes
	// PSDNo is psd=n: this is an organizational domain.
	PSDNo
)

var psdWords = [...]string{PSDUnknown: "u", PSDYes: "y", PSDNo: "n"}

// String returns the value of the psd tag.
func (p PSD) String() string { return psdWords[p] }

func parsePSD(value string) (PSD, bool) {
	switch strings.ToLower(value) {
	case "y":
		return PSDYes, true
	case "n":
		return PSDNo, true
	case "u":
		return PSDUnknown, true
	default:
		return PSDUnknown, false
	}
}

// FailureOptions is the set of conditions for failure reports. The empty set means the
// default, FailureAll.
type FailureOptions uint8

const (
	// FailureAll (0) requests a report if no mechanism produced an aligned pass.
	FailureAll FailureOptions = 1 << iota
	// FailureAny (1) requests a report if any mechanism did not produce an aligned pass.
	FailureAny
	// FailureDKIM (d) requests a report if a signature failed to verify.
	FailureDKIM
	// FailureSPF (s) requests a report if SPF failed.
	FailureSPF
)

// failureLetters names the options in the order in which String writes them.
var failureLetters = []struct {
	letter string
	option FailureOptions
}{{"0", FailureAll}, {"1", FailureAny}, {"d", FailureDKIM}, {"s", FailureSPF}}

// String returns the value of the fo tag.
func (f FailureOptions) String() string {
	f = cmp.Or(f, FailureAll)
	var letters []string
	for _, l := range failureLetters {
		if f&l.option != 0 {
			letters = append(letters, l.letter)
		}
	}
	return strings.Join(letters, ":")
}

// parseFailureOptions parses a colon-separated list with at most one of 0 and 1 and no
// duplicates (RFC 9989 §4.8). RFC 7489 allowed any list.
func parseFailureOptions(value string) (FailureOptions, bool) {
	var set FailureOptions
	for item := range strings.SplitSeq(value, ":") {
		option := failureOption(strings.Trim(item, whitespace))
		if option == 0 || set&option != 0 {
			return FailureAll, false
		}
		set |= option
	}
	if set&FailureAll != 0 && set&FailureAny != 0 {
		return FailureAll, false
	}
	return set, true
}

func failureOption(letter string) FailureOptions {
	for _, l := range failureLetters {
		if strings.EqualFold(letter, l.letter) {
			return l.option
		}
	}
	return 0
}

// maxListed bounds the tags, problems and URIs per record, so that a hostile record stays
// cheap.
const maxListed = 100

// isAtOrBelow reports whether name is the domain itself or a subdomain of it.
func isAtOrBelow(name, domain string) bool {
	return name == domain || strings.HasSuffix(name, "."+domain)
}

// topLabel returns the right-most label of a name.
func topLabel(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// lastLabels returns the n right-most labels of a name.
func lastLabels(name string, n int) string {
	labels := dns.Labels(name)
	return strings.Join(labels[max(0, len(labels)-n):], ".")
}
