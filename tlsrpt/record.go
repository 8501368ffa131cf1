package tlsrpt

import "strings"

// Field is a name and a value of a record as published.
type Field struct{ Name, Value string }

// Record is a TLSRPT record.
type Record struct {
	// Text is the published record.
	Text string
	// Valid is true if the record follows the grammar and contains a usable destination.
	Valid bool
	// RUA contains at most 100 usable destinations, also of an invalid record.
	RUA []URI
	// Fields are the first 100 fields after the version in order, known or not.
	Fields []Field
	// Problems contains at most 100 problems: first those of single fields in order, then
	// those of the whole record.
	Problems []Problem
}

// String returns a record with the destinations of r in canonical form.
func (r Record) String() string {
	entries := make([]string, len(r.RUA))
	for i, u := range r.RUA {
		entries[i] = u.Text
	}
	return version + "; " + fieldRUA + "=" + strings.Join(entries, ",")
}
