package spf

import (
	"net/netip"
	"slices"
)

// Growth is how a flat record differs from the one before it.
type Growth struct {
	Before, After Sizes
	// Wide are networks that the one before did not pass and that are wider than /16, or /32 in IPv6.
	Wide []netip.Prefix
	// Terms are those that the one before does not have.
	Terms []string
}

// GrowthOf compares the texts of two flat records.
func GrowthOf(before, after []string) Growth {
	passedBefore, termsBefore := passing(before)
	passed, terms := passing(after)
	g := Growth{Before: passedBefore.sizes(), After: passed.sizes()}
	for _, p := range passed.prefixes() {
		broad := broadIPv6
		if p.Addr().Is4() {
			broad = broadIPv4
		}
		if p.Bits() < broad && len(spanOf(p).without(passedBefore)) > 0 {
			g.Wide = append(g.Wide, p)
		}
	}
	for _, term := range terms {
		if !slices.Contains(termsBefore, term) {
			g.Terms = append(g.Terms, term)
		}
	}
	return g
}

// Large reports whether a person should decide about the difference: the addresses of a family grow by more than a
// fifth, or there are wide networks or terms that were not there.
func (g Growth) Large() bool {
	const most = 1.2
	return g.After.IPv4 > most*g.Before.IPv4 || g.After.IPv6 > most*g.Before.IPv6 || len(g.Wide) > 0 || len(g.Terms) > 0
}

// passing returns the addresses that a flat record passes, and its terms that may pass others.
func passing(texts []string) (passed spans, terms []string) {
	var seen spans
	for i, text := range texts {
		for _, t := range parse(text).Terms {
			var matched spans
			switch {
			case t.Kind == All:
				matched = everything()
			case t.Kind == IP4 || t.Kind == IP6:
				matched = spanOf(t.Network)
			case t.Qualifier == Pass || t.Kind == Redirect && i == len(texts)-1:
				terms = append(terms, t.String())
			}
			if t.Qualifier == Pass {
				passed = append(passed, matched.without(seen)...)
			}
			seen = seen.union(matched)
		}
	}
	return passed.union(nil), terms
}
