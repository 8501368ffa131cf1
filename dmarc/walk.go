package dmarc

import (
	"context"
	"iter"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/txt"
)

// The tree walk asks at most eight questions: one for the name itself and, for
// names of eight and more labels, then only for the last seven (RFC 9989 §4.10
// step 4).
const maxWalked = 8

// Step is one question of a tree walk and what came back.
type Step struct {
	// Domain is the name looked at; the question is for QueryName(Domain).
	Domain string
	// Found is what was found. Two or more records are all discarded by receivers;
	// what the texts beside them are is told by ClassifyMiss.
	txt.Found[Record]
}

// QueryName returns the name at which the DMARC record of a domain is published.
func QueryName(domain string) string { return "_dmarc." + domain }

// Organization returns the organizational domain of a name, found by the tree
// walk (RFC 9989 §4.10.2). It reports false, with "", where a question of the walk
// was inconclusive. A name that DNS cannot carry stands for itself.
func Organization(ctx context.Context, r dns.Resolver, name string) (string, bool) {
	name = dns.Name(name)
	if !dns.ValidName(name) {
		return name, true
	}
	return organization(name, walk(ctx, r, name))
}

// walk looks for records at a name and towards the root. It ends after a record
// with psd=y or psd=n, at the top, or with the first inconclusive answer: what
// stands at that name could have ended the walk, so nothing above it would help.
//
// The questions are asked one after the other. Those near the top are in the
// cache of any resolver, so that asking all at once would save little time, and it
// would ask what the rules say not to ask.
func walk(ctx context.Context, r dns.Resolver, start string) []Step {
	var steps []Step
	for name := range walked(start) {
		s := look(ctx, r, name)
		steps = append(steps, s)
		if s.Answer.Outcome == dns.Inconclusive {
			break
		}
		if record, ok := s.Record(); ok && record.PSD != PSDUnknown {
			break
		}
	}
	return steps
}

// walked yields the names of a walk that nothing ends early.
func walked(start string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield(start) {
			return
		}
		// With fewer than eight labels this drops the left-most one alone.
		n := min(len(dns.Labels(start)), maxWalked) - 1
		for name := lastLabels(start, n); name != ""; name = dns.Parent(name) {
			if !yield(name) {
				return
			}
		}
	}
}

// look asks for the records of one name. A name too long to carry the _dmarc label
// cannot have one, and is not asked for.
func look(ctx context.Context, r dns.Resolver, domain string) Step {
	s := Step{Domain: domain}
	if name := QueryName(domain); dns.ValidName(name) {
		s.Found = txt.Find(ctx, r, name, Parse)
	} else {
		s.Answer = dns.Answer{Question: dns.Question{Name: name, Type: dns.TXT}, Outcome: dns.NoSuchName}
	}
	return s
}

// organization applies RFC 9989 §4.10.2 to a walk from start. It reports false
// where the walk was cut short.
func organization(start string, steps []Step) (string, bool) {
	shortest := start // where no record is found, the name stands for itself
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
			// One label more than the suffix, even where the walk skipped it.
			return lastLabels(start, len(dns.Labels(s.Domain))+1), true
		default:
			shortest = s.Domain
		}
	}
	return shortest, true
}
