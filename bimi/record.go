package bimi

import "strings"

// State tells what receivers make of a record.
type State uint8

const (
	// OK means that the record names an image.
	OK State = iota
	// Declined means that the owner does not want to take part: l and a are both
	// empty (§4.3.1).
	Declined
	// Invalid means that receivers cannot use the record.
	Invalid
)

// String returns the state in one word.
func (s State) String() string {
	switch s {
	case OK:
		return "ok"
	case Declined:
		return "declined"
	default:
		return "invalid"
	}
}

// Avatar tells which of two images the owner would rather see.
type Avatar uint8

const (
	// Brand is the image of the record.
	Brand Avatar = iota
	// Personal is the picture that the sender has set at the mailbox provider.
	Personal
)

// String returns the value of the avp tag.
func (a Avatar) String() string {
	if a == Personal {
		return "personal"
	}
	return "brand"
}

// Tag is a name and a value of a record as they were written, without the white
// space around them.
type Tag struct{ Name, Value string }

// Record is a BIMI assertion record. The fields of the tags hold what was stated,
// or the default where a tag is absent or invalid.
type Record struct {
	// Text is the record as it was published.
	Text string
	// State tells what receivers make of the record.
	State State
	// Location is the URI of the image (l).
	Location string
	// Evidence is the URI of the evidence document (a).
	Evidence string
	// LocalParts holds the prefixes of local parts that have records of their own
	// (lps), at most 100.
	LocalParts []string
	// Avatar is the preference of the owner (avp).
	Avatar Avatar
	// Tags holds the first 100 tags after the version in their order, known or
	// not, valid or not.
	Tags []Tag
	// Problems holds what is wrong, at most 100: first what concerns single tags
	// in their order, then what concerns the whole.
	Problems []Problem
}

// String returns a record that states the fields of r and nothing else, in one
// canonical form. For a record with problems the result is a repaired record, or a
// declining one, and not an equal one.
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
