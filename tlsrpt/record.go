package tlsrpt

import "strings"

// Field is a name and a value of a record as they were written.
type Field struct{ Name, Value string }

// Record is a TLSRPT record.
type Record struct {
	// Text is the record as it was published.
	Text string
	// Valid tells whether the record keeps the grammar and names a destination
	// that reporters can serve.
	Valid bool
	// RUA holds the destinations of reports, at most 100. They are those that
	// reporters can serve, of an invalid record too.
	RUA []URI
	// Fields holds the first 100 fields after the version in their order, known or
	// not.
	Fields []Field
	// Problems holds what is wrong, at most 100: first what concerns single fields
	// in their order, then what concerns the whole.
	Problems []Problem
}

// String returns a record that names the destinations of r and nothing else, in
// one canonical form.
func (r Record) String() string {
	entries := make([]string, len(r.RUA))
	for i, u := range r.RUA {
		entries[i] = u.Text
	}
	return version + "; " + fieldRUA + "=" + strings.Join(entries, ",")
}
