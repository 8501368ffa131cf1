package bimi

import "strings"

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
