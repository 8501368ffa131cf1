// Package spf parses, evaluates and explains SPF records (RFC 7208).
//
// Parse parses one record and lists all its problems. Check implements check_host(): it
// decides whether a client may use an identity, and returns the term that decided. Explain
// needs no client: it walks the tree of records of a domain and returns the cost and
// meaning of every term, and where the tree breaks. Flatten replaces the names of a record by
// their addresses.
//
// The package uses a dns.Resolver and no other network access. It returns typed problems;
// callers decide how severe they are and how to phrase them. It does not convert Unicode
// names to A-labels; callers do (RFC 7208 §4.3).
package spf

import (
	"slices"
	"strings"
)

// Result is the outcome of an evaluation (RFC 7208 §2.6). As a qualifier it is
// what a mechanism leads to when it matches; there only Pass, Fail, SoftFail and
// Neutral occur.
type Result uint8

const (
	// None means that there is no usable domain name, or that it has no record.
	None Result = iota
	// Neutral means that the domain explicitly makes no statement.
	Neutral
	// Pass means that the client is authorized.
	Pass
	// Fail means that the client is not authorized.
	Fail
	// SoftFail means that the client is probably not authorized.
	SoftFail
	// TempError means that a lookup failed; a retry may succeed.
	TempError
	// PermError means that the published records cannot be interpreted.
	PermError
)

var resultWords = [...]string{
	None: "none", Neutral: "neutral", Pass: "pass", Fail: "fail",
	SoftFail: "softfail", TempError: "temperror", PermError: "permerror",
}

// String returns the word of RFC 8601 §2.7.2.
func (r Result) String() string { return resultWords[r] }

// qualifierOf returns the result of a qualifier character, None if c is not one (RFC 7208
// §4.6.2).
func qualifierOf(c byte) Result {
	switch c {
	case '+':
		return Pass
	case '-':
		return Fail
	case '~':
		return SoftFail
	case '?':
		return Neutral
	default:
		return None
	}
}

// qualifier returns the shortest way to write r before a mechanism.
func (r Result) qualifier() string {
	switch r {
	case Fail:
		return "-"
	case SoftFail:
		return "~"
	case Neutral:
		return "?"
	default:
		return ""
	}
}

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
	// Terms has all terms in the order of the record, including Invalid ones.
	Terms []Term
	// Problems are the problems of the text: syntax problems in the order of the record, then
	// the others. There are at most 100 of each.
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

// parse parses a record, and reports syntax problems only.
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

// String returns the record as published.
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

// Merge combines several records of a domain, which are an error, into one: all terms once, and the
// strictest all, but never one that passes. Redirects become includes, because all disables
// redirect (RFC 7208 §6.1), and only the first exp is used.
func Merge(records []string) string {
	const redirect, exp = "redirect=", "exp="
	terms, all := []string{version}, "~all"
	add := func(term string, same func(string) bool) {
		if !slices.ContainsFunc(terms, same) {
			terms = append(terms, term)
		}
	}
	for _, record := range records {
		for _, term := range strings.Fields(record)[1:] {
			lower := strings.ToLower(term)
			if strings.HasPrefix(lower, redirect) {
				term = "include:" + term[len(redirect):]
			}
			switch {
			case lower == "-all":
				all = lower
			case strings.TrimLeft(lower, "+~?") == "all":
			case strings.HasPrefix(lower, exp):
				add(term, func(t string) bool { return strings.HasPrefix(strings.ToLower(t), exp) })
			default:
				add(term, func(t string) bool { return strings.EqualFold(t, term) })
			}
		}
	}
	return strings.Join(append(terms, all), " ")
}
