package txt

import (
	"slices"
	"strings"
)

// Kind is the kind of a problem.
type Kind string

// The kinds of problems that all protocols have.
const (
	// MultipleRecords: there are Count records, but Limit are allowed.
	MultipleRecords Kind = "multiple-records"
	// NearMiss: Text was probably meant to be a record, but is not one.
	NearMiss Kind = "near-miss"
	// DanglingAlias: a CNAME record leads to Text, which has no TXT record.
	DanglingAlias Kind = "dangling-alias"

	emptyField    Kind = "empty-field"
	tooManyFields Kind = "too-many-fields"
	trailingSpace Kind = "trailing-space"
)

// Fatal reports whether a problem of this kind makes a record or a policy invalid.
func (k Kind) Fatal() bool {
	return slices.Contains([]Kind{
		"missing-field", "invalid-value", "malformed-field", emptyField, tooManyFields,
		"long-max-age", "too-large", "bad-uri", "no-destination",
	}, k)
}

// Problem is a problem of a lookup, a record or a policy. The kind determines which other
// fields are set.
type Problem struct {
	Kind Kind
	// Field is the name of the affected field, or "".
	Field string
	// Text is the affected part: the value, the element, the URI, the line, or the field name
	// as published.
	Text string
	// Line is the line number in a policy, from 1; 0 for a record or a whole policy.
	Line int
	// Count is the actual value and Limit what it is compared with.
	Count, Limit int
}

// Note adds a problem of a record if the condition holds, up to a limit. A fatal one makes the
// record invalid.
func Note(valid *bool, problems *[]Problem, condition bool, problem Problem) {
	if !condition {
		return
	}
	if problem.Kind.Fatal() {
		*valid = false
	}
	if len(*problems) < maxListed {
		*problems = append(*problems, problem)
	}
}

// ParseFields parses the fields of a record, which are separated by semicolons. It calls parse
// for each, which returns false for a malformed one, and note for each problem of the list.
func ParseFields(text string, note func(condition bool, problem Problem), parse func(field string) bool) {
	count := 0
	for more := true; more; {
		var field string
		field, text, more = strings.Cut(text, ";")
		trimmed := strings.Trim(field, whitespace)
		switch {
		case trimmed == "":
			note(more, Problem{Kind: emptyField})
		case count == maxListed:
			note(true, Problem{Kind: tooManyFields, Text: trimmed})
			return
		default:
			note(!more && strings.TrimRight(field, whitespace) != field, Problem{Kind: trailingSpace})
			if parse(trimmed) {
				count++
			}
		}
	}
}
