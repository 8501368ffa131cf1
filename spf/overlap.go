package spf

import (
	"cmp"
	"net/netip"
	"slices"
)

// maxOverlaps bounds the reported overlaps.
const maxOverlaps = 100

// claim is a range that a term covers.
type claim struct {
	prefix netip.Prefix
	order  int // position of the term in the evaluation
	run    int // consecutive terms with the same result
	domain string
	step   *Step
}

// overlaps returns the ranges without effect, because another term covers them: an earlier
// one, which matches first, or a later one, if all terms up to it have the same result.
func overlaps(root *Node) []Problem {
	var g gatherer
	g.node(root, None)
	claims := g.claims
	slices.SortFunc(claims, func(a, b claim) int {
		return cmp.Or(
			a.prefix.Addr().Compare(b.prefix.Addr()),
			cmp.Compare(a.prefix.Bits(), b.prefix.Bits()),
			cmp.Compare(a.order, b.order),
		)
	})
	var problems []claimedTwice
	var open []claim // the ranges around the current one, each nested in the previous
	for _, c := range claims {
		for len(open) > 0 && !covers(open[len(open)-1].prefix, c.prefix) {
			open = open[:len(open)-1]
		}
		for _, around := range slices.Backward(open) {
			if c.redundantBeside(around) {
				problems = append(problems, claimedTwice{c, around})
				break
			}
		}
		// The first of equal ranges represents all.
		if len(open) == 0 || open[len(open)-1].prefix != c.prefix {
			open = append(open, c)
		}
	}
	slices.SortStableFunc(problems, func(a, b claimedTwice) int { return cmp.Compare(a.covered.order, b.covered.order) })
	listed := make([]Problem, 0, min(len(problems), maxOverlaps))
	for _, t := range problems[:cap(listed)] {
		listed = append(listed, Problem{
			Kind: Overlap, Position: t.covered.step.Term.position(t.covered.domain), Name: t.covered.step.Target,
			Range: t.covered.prefix, Covering: t.covering.prefix,
			Other: t.covering.step.Term.position(t.covering.domain),
		})
	}
	return listed
}

type claimedTwice struct {
	covered, covering claim
}

// redundantBeside reports whether the range has no effect because of the one around it.
// Equal terms of one record are already reported as duplicates.
func (c claim) redundantBeside(around claim) bool {
	if c.step == around.step {
		return false
	}
	if c.domain == around.domain && c.step.Term.unqualified() == around.step.Term.unqualified() {
		return false
	}
	return around.order < c.order || around.run == c.run
}

// gatherer walks the tree in the order of evaluation.
type gatherer struct {
	claims []claim
	order  int
	run    int
	last   Result
}

// node collects the ranges of a record and of nested ones. In an included record only
// terms that pass can match, with the qualifier of the outermost include, which is result.
// Terms after another qualifier are not certain to match and are skipped.
func (g *gatherer) node(n *Node, result Result) {
	for _, s := range n.evaluated() {
		outcome := result
		switch {
		case s.Term.Kind == Redirect:
		case s.Term.Kind.Modifier():
			continue
		case result == None:
			outcome = s.Term.Qualifier
		case s.Term.Qualifier != Pass:
			g.last = None
			return
		}
		g.order++
		if outcome != g.last {
			g.run++
			g.last = outcome
		}
		for _, p := range s.Ranges {
			g.claims = append(g.claims, claim{p, g.order, g.run, n.Domain, s})
		}
		if s.Child != nil {
			g.node(s.Child, outcome)
		}
	}
}

// covers reports whether every address of inner is in outer.
func covers(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}
