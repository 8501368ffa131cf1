package spf

import "strings"

const (
	// version begins every SPF record (RFC 7208 §4.5).
	version = "v=spf1"
	// maxProblems bounds the syntax errors, and the other problems, per record: a hostile
	// record could have one for every two bytes.
	maxProblems = 100
)

// Record is an SPF record.
type Record struct {
	// Text is the record byte for byte.
	Text string
	// Terms holds every term in the order of the record, those that are
	// Invalid too.
	Terms []Term
	// Problems holds what is wrong with the text: first the problems of syntax
	// in the order of the record, then the others. At most 100 of each are
	// kept.
	Problems []Problem
}

// IsRecord reports whether text, the joined strings of one TXT record, is an SPF
// record by its version: "v=spf1" in any case, and then a space or nothing
// (RFC 7208 §4.5). A blank before it makes it something else.
func IsRecord(text string) bool {
	if len(text) < len(version) || !strings.EqualFold(text[:len(version)], version) {
		return false
	}
	return len(text) == len(version) || text[len(version)] == ' '
}

// Parse parses a record. It returns ErrNotSPF for text that is not a record, and a
// *SyntaxError with the first error for a record whose evaluation is a permerror; the
// Record is then complete as far as it could be parsed. The work is linear in the length
// of the text.
func Parse(text string) (Record, error) {
	if !IsRecord(text) {
		return Record{Text: text}, ErrNotSPF
	}
	r := parse(text)
	if len(r.Problems) > 0 {
		err := &SyntaxError{Problem: r.Problems[0]}
		r.Problems = append(r.Problems, r.lint(false)...)
		return r, err
	}
	r.Problems = r.lint(true)
	return r, nil
}

// parse reads a record and looks for problems of syntax alone.
func parse(text string) Record {
	r := Record{Text: text}
	var first [Unknown]Position // of redirect and exp
	for offset := len(version); offset < len(text); {
		if text[offset] == ' ' {
			offset++
			continue
		}
		end := len(text)
		if space := strings.IndexByte(text[offset:], ' '); space >= 0 {
			end = offset + space
		}
		t, problem := parseTerm(text[offset:end], offset)
		if problem == nil && (t.Kind == Redirect || t.Kind == Exp) {
			if first[t.Kind].Term != "" {
				p := t.fault(RepeatedModifier, 0, t.Text)
				p.Other = first[t.Kind]
				problem = &p
			} else {
				first[t.Kind] = t.position("")
			}
		}
		if problem != nil && len(r.Problems) < maxProblems {
			r.Problems = append(r.Problems, *problem)
		}
		r.Terms = append(r.Terms, t)
		offset = end
	}
	return r
}

// String returns the record as it is written.
func (r Record) String() string { return r.Text }

// find returns the first term of the kind, nil if there is none.
func (r Record) find(kind TermKind) *Term {
	for i := range r.Terms {
		if r.Terms[i].Kind == kind {
			return &r.Terms[i]
		}
	}
	return nil
}
