// Package txt looks up protocol records that are published as TXT records at a special
// name, such as _dmarc.example.com. Such a name may have other TXT records, several
// records, or an alias without a target.
//
// It also contains the grammar rules that RFC 8461 §3.1 and RFC 8460 §3 share. The
// protocol packages interpret the records and validate names.
package txt

import (
	"context"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd/dns"
)

// Protocol is a protocol with one record per domain. R is its record type.
type Protocol[R any] struct {
	// QueryName returns the name at which the record of a domain is published.
	QueryName func(domain string) string
	// Parse returns false for a text that is not a record of the protocol.
	Parse func(text string) (R, bool)
	// Valid reports whether a record is valid.
	Valid func(R) bool
	// Word occurs, in any case, in texts that were probably meant to be a record. It is
	// in lower case.
	Word string
}

// Lookup is the result of looking up the record of a domain.
type Lookup[R any] struct {
	Domain string
	Status Status
	// Found is the result of the query, zero if the name could not be queried.
	Found[R]
	// Problems lists problems other than those of the records themselves.
	Problems []Problem
}

// LookUp looks up the record of a domain with one query. A name that is invalid in DNS
// has no record and is not queried.
func LookUp[R any](ctx context.Context, r dns.Resolver, domain string, p Protocol[R]) Lookup[R] {
	l := Lookup[R]{Domain: dns.Name(domain), Status: None}
	name := p.QueryName(l.Domain)
	if !dns.ValidName(name) {
		return l
	}
	l.Found = Find(ctx, r, name, p.Parse)
	l.Status = StatusOf(l.Found, p.Valid)
	note := func(problem Problem) { l.Problems = append(l.Problems, problem) }
	for _, text := range l.Others {
		if strings.Contains(strings.ToLower(text), p.Word) {
			note(Problem{Kind: NearMiss, Text: text})
		}
	}
	if target, ok := l.DanglingAlias(); ok {
		note(Problem{Kind: DanglingAlias, Text: target})
	}
	if l.Status == Multiple {
		note(Problem{Kind: MultipleRecords, Count: len(l.Records), Limit: 1})
	}
	return l
}

// Status is the state of a name that should have one record.
type Status uint8

const (
	// Inconclusive means that the query failed. Nothing is known about the record.
	Inconclusive Status = iota
	// OK means that there is one valid record.
	OK
	// None means that there is no record.
	None
	// Multiple means that there are several records.
	Multiple
	// Invalid means that there is one invalid record.
	Invalid
)

var statusWords = [...]string{Inconclusive: "inconclusive", OK: "ok", None: "none", Multiple: "multiple", Invalid: "invalid"}

// String returns the status in one word.
func (s Status) String() string { return statusWords[s] }

// StatusOf returns the status of a name; valid reports whether a single record is valid.
func StatusOf[R any](f Found[R], valid func(R) bool) Status {
	switch {
	case f.Answer.Outcome == dns.Inconclusive:
		return Inconclusive
	case len(f.Records) == 0:
		return None
	case len(f.Records) > 1:
		return Multiple
	case valid(f.Records[0]):
		return OK
	default:
		return Invalid
	}
}

// maxListed bounds the records and other texts per name, so that a hostile answer stays
// cheap.
const maxListed = 100

// Found is the result for a name. R is the record type of a protocol.
type Found[R any] struct {
	// Answer is the answer of the resolver.
	Answer dns.Answer
	// Records are the records found, at most 100.
	Records []R
	// Others are the other texts found, at most 100.
	Others []string
}

// Find looks up the TXT records of a name with one query and classifies them: parse
// returns false for a text that is not a record of the protocol.
func Find[R any](ctx context.Context, r dns.Resolver, name string, parse func(text string) (R, bool)) Found[R] {
	f := Found[R]{Answer: r.Resolve(ctx, dns.Question{Name: name, Type: dns.TXT})}
	for _, text := range f.Answer.Texts() {
		record, ok := parse(text)
		switch {
		case ok && len(f.Records) < maxListed:
			f.Records = append(f.Records, record)
		case !ok && len(f.Others) < maxListed:
			f.Others = append(f.Others, text)
		}
	}
	return f
}

// Record returns the record of the name, if there is exactly one. Other texts are ignored.
func (f Found[R]) Record() (R, bool) {
	if len(f.Records) != 1 {
		var none R
		return none, false
	}
	return f.Records[0], true
}

// DanglingAlias returns the target of the aliases of the name, if there are any and the
// target has no TXT record.
func (f Found[R]) DanglingAlias() (target string, ok bool) {
	aliases := f.Answer.Aliases
	if len(aliases) == 0 || f.Answer.Outcome == dns.Inconclusive || len(f.Records)+len(f.Others) > 0 {
		return "", false
	}
	return aliases[len(aliases)-1], true
}

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

const (
	whitespace = " \t" // WSP of the grammars
	// maxExtensionName is the maximum length of the name of an extension.
	maxExtensionName = 32
)

// CutVersion returns the text after the version and its semicolon, and whether there is
// white space between these. It returns false for a text that does not start with both,
// which is not a record (RFC 8461 §3.1, RFC 8460 §3).
func CutVersion(text, version string) (rest string, spaced, ok bool) {
	rest, ok = strings.CutPrefix(text, version)
	if !ok {
		return "", false, false
	}
	trimmed := strings.TrimLeft(rest, whitespace)
	spaced = trimmed != rest
	rest, ok = strings.CutPrefix(trimmed, ";")
	return rest, spaced, ok
}

// CutVersionTag returns the text after the tag v of a tag list (RFC 6376 §3.2), without its name,
// and after its semicolon, and whether there is one. It returns false for a text that does not
// start with an equals sign and the version, or goes on without a semicolon.
func CutVersionTag(text, version string) (rest string, separated, ok bool) {
	rest, ok = strings.CutPrefix(strings.TrimLeft(text, whitespace), "=")
	if !ok {
		return "", false, false
	}
	rest, ok = strings.CutPrefix(strings.TrimLeft(rest, whitespace), version)
	if !ok {
		return "", false, false
	}
	rest = strings.TrimLeft(rest, whitespace)
	if rest == "" {
		return "", false, true
	}
	rest, separated = strings.CutPrefix(rest, ";")
	return rest, separated, separated
}

// IsExtensionName follows sts-ext-name of RFC 8461 §3.1, which is also
// tlsrpt-ext-name of RFC 8460 §3: a letter or digit, then at most 31 of these,
// underscores, hyphens and dots.
func IsExtensionName(name string) bool {
	if name == "" || len(name) > maxExtensionName {
		return false
	}
	for i := range len(name) {
		c := name[i]
		letter, digit := 'a' <= c|0x20 && c|0x20 <= 'z', '0' <= c && c <= '9'
		if !letter && !digit && (i == 0 || c != '_' && c != '-' && c != '.') {
			return false
		}
	}
	return true
}

// IsExtensionValue follows sts-ext-value of RFC 8461 §3.1, which is also
// tlsrpt-ext-value of RFC 8460 §3: printable ASCII without the equals sign. The
// semicolon, which is not allowed either, ends a value before it gets here.
func IsExtensionValue(value string) bool {
	for i := range len(value) {
		if c := value[i]; c <= ' ' || c > '~' || c == '=' {
			return false
		}
	}
	return value != ""
}
