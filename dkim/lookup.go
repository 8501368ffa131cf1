package dkim

import (
	"context"
	"strings"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/txt"
)

// Status is the result of looking up a selector.
type Status uint8

const (
	// StatusInconclusive means that the query failed. Nothing is known about the key.
	StatusInconclusive Status = iota
	// StatusFound means that there is one key, and that it is usable.
	StatusFound
	// StatusRevoked means that there is one key, and that it is revoked.
	StatusRevoked
	// StatusNone means that this selector has no key. Other selectors may have one.
	StatusNone
	// StatusMultiple means that there is a key and at least one more TXT record, for which
	// the behaviour of verifiers is undefined (RFC 6376 §3.6.2.2).
	StatusMultiple
	// StatusInvalid means that there is one key, and that it is invalid.
	StatusInvalid
)

var statusWords = [...]string{
	StatusInconclusive: "inconclusive", StatusFound: "found", StatusRevoked: "revoked",
	StatusNone: "none", StatusMultiple: "multiple", StatusInvalid: "invalid",
}

// String returns the status in one word.
func (s Status) String() string { return statusWords[s] }

// Lookup is the result of looking up a selector.
type Lookup struct {
	// Selector and Domain are the queried names.
	Selector, Domain string
	Status           Status
	// Keys are the keys found, at most 100.
	Keys []Key
	// Others are the texts found that are not keys, at most 100.
	Others []string
	// Answer is the answer of the resolver. Its Aliases are the CNAME chain to the
	// operator of the key. It is zero if the name could not be queried.
	Answer dns.Answer
	// Problems lists problems other than those of the keys themselves.
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

// LookupKey looks up the key of a selector with one query (RFC 6376 §3.6.2). A name that
// is invalid in DNS has no key and is not queried.
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
	l.evaluate()
	return l
}

// evaluate sets the status and reports multiple records. Texts next to a key count too,
// because it is undefined which record a verifier uses (RFC 6376 §3.6.2.2).
func (l *Lookup) evaluate() {
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

// isNearMiss reports whether a text that is not a key mentions DKIM, or is an RSA key
// without tags.
func isNearMiss(text string) bool {
	if strings.Contains(strings.ToLower(text), "dkim") {
		return true
	}
	key, _ := ParseKey(tagP + "=" + text)
	return key.PublicKey != nil
}
