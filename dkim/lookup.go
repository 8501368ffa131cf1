package dkim

import (
	"context"
	"strings"

	"github.com/dmarcd/dmarcd/dns"
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
	l := Lookup{Selector: dns.Name(selector), Domain: dns.Name(domain)}
	name := QueryName(l.Selector, l.Domain)
	if !isDomainName(name) {
		l.Status = StatusNone
		return l
	}
	l.Answer = r.Resolve(ctx, dns.Question{Name: name, Type: dns.TXT})
	texts := l.Answer.Texts()
	for _, text := range texts[:min(len(texts), maxKept)] {
		if key, ok := ParseKey(text); ok {
			l.Keys = append(l.Keys, key)
			continue
		}
		l.Others = append(l.Others, text)
		if isNearMiss(text) {
			l.Problems = append(l.Problems, Problem{Kind: NearMiss, Text: text})
		}
	}
	l.judge(len(texts))
	return l
}

// judge sets the status and the problems of the lookup as a whole.
func (l *Lookup) judge(records int) {
	aliases := l.Answer.Aliases
	switch {
	case l.Answer.Outcome == dns.Inconclusive:
		l.Status = StatusInconclusive
	case len(l.Keys) == 0:
		l.Status = StatusNone
		if records == 0 && len(aliases) > 0 {
			l.Problems = append(l.Problems, Problem{Kind: DanglingAlias, Text: aliases[len(aliases)-1]})
		}
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
func isNearMiss(txt string) bool {
	if strings.Contains(strings.ToLower(txt), "dkim") {
		return true
	}
	key, _ := ParseKey(tagP + "=" + txt)
	return key.PublicKey != nil
}
