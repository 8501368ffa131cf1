package dnscheck

import (
	"context"
	"strings"

	"github.com/dmarcd/dmarcd/dkim"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/facts"
)

// dkimBudget is the number of queries for selectors. It is enough for all known selectors
// and the guesses.
const dkimBudget = 120

// checkDKIM looks up keys for reported selectors, then for those declared by the owner,
// then for common ones.
func (e *examination) checkDKIM(ctx context.Context) {
	names, origins := e.selectors()
	found := dkim.Probe(ctx, e.dns, e.Domain, names, dkimBudget)
	f := &e.facts.DKIM
	f.Namespace = found.Namespace.String()
	// A wildcard that revokes all other keys declares that there are none, so it is not a
	// problem.
	revokes := found.Wildcard.Status == dkim.StatusRevoked
	f.Wildcard = !revokes && (len(found.Wildcard.Keys) > 0 || len(found.Wildcard.Others) > 0)
	f.Probed = len(found.Selectors)
	for _, l := range found.Selectors {
		guessed := origins[l.Selector] == FromGuessing
		switch {
		case guessed && found.Synthesized(l):
		case guessed && l.Status == dkim.StatusNone && len(l.Problems) == 0:
		case guessed && l.Status == dkim.StatusInconclusive:
			f.Unanswered++
			f.Reason = l.Answer.Reason
		default:
			f.Keys = append(f.Keys, keyFacts(l, origins[l.Selector]))
		}
	}
	if found.Namespace == dkim.NamespaceMissing {
		// Nothing was queried, because _domainkey does not exist.
		for _, name := range names {
			if origins[name] != FromGuessing {
				f.Keys = append(f.Keys, facts.DKIMKey{Selector: name, From: string(origins[name]), Status: dkim.StatusNone.String()})
			}
		}
	}
}

// selectors returns the selectors to look up, the most reliable first, and the origin of
// each.
func (e *examination) selectors() ([]string, map[string]Origin) {
	var names []string
	origins := map[string]Origin{}
	add := func(name string, from Origin) {
		name = dns.Name(strings.TrimSpace(name))
		if _, known := origins[name]; !known && name != "" {
			origins[name] = from
			names = append(names, name)
		}
	}
	for _, from := range []Origin{FromReport, FromOwner, FromGuessing} {
		for _, s := range e.Selectors {
			if s.From == from {
				add(s.Name, from)
			}
		}
	}
	for _, known := range dkim.KnownSelectors() {
		add(known.Name, FromGuessing)
	}
	return names, origins
}

func keyFacts(l dkim.Lookup, from Origin) facts.DKIMKey {
	fact := facts.DKIMKey{
		Selector: l.Selector, From: string(from), Status: l.Status.String(),
		Reason: l.Answer.Reason, Aliases: l.Answer.Aliases,
	}
	problems := l.Problems
	if key, ok := l.Key(); ok {
		fact.Record, fact.Algorithm, fact.Bits, fact.Testing = storable(key.Text), storable(key.Algorithm), key.Bits, key.Testing
		problems = append(problems[:len(problems):len(problems)], key.Problems...)
	}
	for _, p := range problems {
		fact.Problems = append(fact.Problems, facts.Problem{
			Kind: string(p.Kind), At: l.Selector, Part: storable(p.Tag), Text: storable(p.Text), Count: p.Count, Limit: p.Limit,
		})
	}
	return fact
}
