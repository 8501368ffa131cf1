package dkim

import (
	"context"
	"strings"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/txt"
)

// Status tells how things stand at the name of a selector.
type Status uint8

const (
	// StatusInconclusive means that the question had no usable answer. Nothing is
	// stated about the key.
	StatusInconclusive Status = iota
	// StatusFound means that there is one key, and that it is usable.
	StatusFound
	// StatusRevoked means that there is one key, and that it is revoked.
	StatusRevoked
	// StatusNone means that this selector has no key. It says nothing of other
	// selectors.
	StatusNone
	// StatusMultiple means that there is a key and at least one more TXT record.
	// What verifiers do then is undefined (RFC 6376 §3.6.2.2).
	StatusMultiple
	// StatusInvalid means that there is one key, and that it is invalid.
	StatusInvalid
)

// String returns the status in one word.
func (s Status) String() string {
	switch s {
	case StatusFound:
		return "found"
	case StatusRevoked:
		return "revoked"
	case StatusNone:
		return "none"
	case StatusMultiple:
		return "multiple"
	case StatusInvalid:
		return "invalid"
	default:
		return "inconclusive"
	}
}

// Lookup is what was found at the name of a selector.
type Lookup struct {
	// Selector and Domain are what was asked for.
	Selector, Domain string
	// Status tells how things stand.
	Status Status
	// Keys holds the keys found, at most 100.
	Keys []Key
	// Others holds the texts found that are no keys, at most 100.
	Others []string
	// Answer is the answer as the resolver gave it. Its Aliases are the chain of
	// CNAME records that leads to whoever keeps the key. It is the zero value
	// where the name could not be asked for.
	Answer dns.Answer
	// Problems holds what is wrong beside the problems of the keys themselves.
	Problems []Problem
}

// Key returns the key of the selector, if there is exactly one.
func (l Lookup) Key() (Key, bool) {
	if len(l.Keys) != 1 || len(l.Others) > 0 {
		return Key{}, false
	}
	return l.Keys[0], true
}

// QueryName returns the name at which the key of a selector is published.
func QueryName(selector, domain string) string { return selector + "." + namespaceName(domain) }

// namespaceName returns the name below which all keys of a domain are.
func namespaceName(domain string) string { return "_domainkey." + domain }

// LookupKey finds the key of a selector (RFC 6376 §3.6.2). It asks one question. A
// name that DNS cannot carry has no key and is not asked for.
func LookupKey(ctx context.Context, r dns.Resolver, selector, domain string) Lookup {
	l := Lookup{Selector: dns.Name(selector), Domain: dns.Name(domain), Status: StatusNone}
	name := QueryName(l.Selector, l.Domain)
	if !dns.ValidName(name) {
		return l
	}
	found := txt.Find(ctx, r, name, ParseKey)
	l.Answer, l.Keys, l.Others = found.Answer, found.Records, found.Others
	for _, text := range l.Others {
		if isNearMiss(text) {
			l.Problems = append(l.Problems, Problem{Kind: NearMiss, Text: text})
		}
	}
	if target, ok := found.DanglingAlias(); ok {
		l.Problems = append(l.Problems, Problem{Kind: DanglingAlias, Text: target})
	}
	l.judge()
	return l
}

// judge sets the status, and tells of several records. Texts beside a key are among
// them: which one a verifier takes is undefined (RFC 6376 §3.6.2.2).
func (l *Lookup) judge() {
	records := len(l.Answer.Texts())
	switch {
	case l.Answer.Outcome == dns.Inconclusive:
		l.Status = StatusInconclusive
	case len(l.Keys) == 0:
		l.Status = StatusNone
	case records > 1:
		l.Status = StatusMultiple
		l.Problems = append(l.Problems, Problem{Kind: MultipleRecords, Count: records, Limit: 1})
	default:
		l.Status = statusOf(l.Keys[0].State)
	}
}

// statusOf returns the status of a selector whose only record is in the state.
func statusOf(s State) Status {
	switch s {
	case Usable:
		return StatusFound
	case Revoked:
		return StatusRevoked
	default:
		return StatusInvalid
	}
}

// isNearMiss reports whether a text that is no key names DKIM, or is an RSA key
// without the tags around it.
func isNearMiss(text string) bool {
	if strings.Contains(strings.ToLower(text), "dkim") {
		return true
	}
	key, _ := ParseKey(tagP + "=" + text)
	return key.PublicKey != nil
}
