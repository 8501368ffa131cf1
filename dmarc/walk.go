package dmarc

import (
	"context"
	"iter"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/txt"
)

// The tree walk makes at most eight queries: one for the name itself and, for names with
// eight or more labels, then only for the last seven (RFC 9989 §4.10 step 4).
const maxWalked = 8

// Step is one query of a tree walk and its result.
type Step struct {
	// Domain is the name; the query is for QueryName(Domain).
	Domain string
	// Found is the result. Receivers discard two or more records; ClassifyMiss classifies
	// the other texts.
	txt.Found[Record]
}

// QueryName returns the name at which the DMARC record of a domain is published.
func QueryName(domain string) string { return "_dmarc." + domain }

// Organization returns the organizational domain of a name, found by the tree walk (RFC
// 9989 §4.10.2). It returns "" and false if a query of the walk was inconclusive. A name
// that is invalid in DNS is its own organizational domain.
func Organization(ctx context.Context, r dns.Resolver, name string) (string, bool) {
	name = dns.Name(name)
	if !dns.ValidName(name) {
		return name, true
	}
	return organization(name, walk(ctx, r, look(ctx, r, name)))
}

// Alignment is whether an authenticated identifier is aligned with the author domain.
type Alignment uint8

const (
	// AlignmentUnknown means that a necessary query was inconclusive.
	AlignmentUnknown Alignment = iota
	// Aligned means that it is aligned.
	Aligned
	// NotAligned means that it is not aligned.
	NotAligned
)

var alignmentWords = [...]string{AlignmentUnknown: "unknown", Aligned: "aligned", NotAligned: "not aligned"}

// String returns the alignment in words.
func (a Alignment) String() string { return alignmentWords[a] }

// Align checks whether an authenticated identifier, the d= of a signature or the domain
// that SPF passed for, is aligned with the author domain (RFC 9989 §4.4). Strict mode and
// equal names need no query; relaxed mode walks the tree from each name as far as needed.
func Align(ctx context.Context, r dns.Resolver, author, identifier string, mode Mode) Alignment {
	author, identifier = dns.Name(author), dns.Name(identifier)
	switch {
	case !dns.ValidName(author) || !dns.ValidName(identifier):
		return NotAligned
	case author == identifier:
		return Aligned
	case mode == Strict:
		return NotAligned
	case topLabel(author) != topLabel(identifier):
		// An organizational domain is its name or an ancestor of it, and these two have no
		// common ancestor.
		return NotAligned
	}
	organization, known := Organization(ctx, r, author)
	if !known {
		return AlignmentUnknown
	}
	if !isAtOrBelow(identifier, organization) {
		return NotAligned
	}
	other, known := Organization(ctx, r, identifier)
	switch {
	case !known:
		return AlignmentUnknown
	case other == organization:
		return Aligned
	default:
		return NotAligned
	}
}

// walk queries the ancestors of a name; own is the first step. It ends after a record with
// psd=y or psd=n, at the top, or at the first inconclusive answer, because the record at that
// name could have ended the walk.
//
// Queries are sequential. Those near the top are usually cached by the resolver, so
// concurrency would save little time and send queries that the RFC does not need.
func walk(ctx context.Context, r dns.Resolver, own Step) []Step {
	steps := []Step{own}
	for name := range above(own.Domain) {
		if steps[len(steps)-1].endsWalk() {
			break
		}
		steps = append(steps, look(ctx, r, name))
	}
	return steps
}

func (s Step) endsWalk() bool {
	record, ok := s.Record()
	return s.Answer.Outcome == dns.Inconclusive || ok && record.PSD != PSDUnknown
}

// above yields the names of a complete walk after the first one.
func above(start string) iter.Seq[string] {
	return func(yield func(string) bool) {
		// With fewer than eight labels this removes only the left-most one.
		n := min(len(dns.Labels(start)), maxWalked) - 1
		for name := lastLabels(start, n); name != "" && yield(name); {
			name = dns.Parent(name)
		}
	}
}

// look queries the records of one name. A name that is too long for the _dmarc label has
// no record and is not queried.
func look(ctx context.Context, r dns.Resolver, domain string) Step {
	s := Step{Domain: domain}
	if name := QueryName(domain); dns.ValidName(name) {
		s.Found = txt.Find(ctx, r, name, Parse)
	} else {
		s.Answer = dns.Answer{Question: dns.Question{Name: name, Type: dns.TXT}, Outcome: dns.NoSuchName}
	}
	return s
}

// organization applies RFC 9989 §4.10.2 to a walk from start. It returns false if the walk
// was incomplete.
func organization(start string, steps []Step) (string, bool) {
	shortest := start // without any record, the name is its own organizational domain
	for _, s := range steps {
		if s.Answer.Outcome == dns.Inconclusive {
			return "", false
		}
		record, ok := s.Record()
		switch {
		case !ok:
		case record.PSD == PSDNo:
			return s.Domain, true
		case record.PSD == PSDYes && s.Domain != start:
			// One label more than the suffix, even if the walk skipped it.
			return lastLabels(start, len(dns.Labels(s.Domain))+1), true
		default:
			shortest = s.Domain
		}
	}
	return shortest, true
}
