package spf

import (
	"cmp"
	"net/netip"
	"slices"
)

// Thresholds for warnings.
const (
	// broadIPv4 and broadIPv6 are the shortest prefix lengths without a warning: one
	// organization may plausibly own a /16 or a /32.
	broadIPv4 = 16
	broadIPv6 = 32
	// crampedRecord and longRecord are the sizes of RFC 7208 §3.4.
	crampedRecord = 450
	longRecord    = 512
)

// linter collects the problems of a valid record.
type linter struct {
	problems []Problem
}

// add appends a problem and returns it for completion; the pointer is valid until the next
// call. After maxProblems the returned problem is discarded.
func (l *linter) add(kind Kind, t Term) *Problem {
	if len(l.problems) == maxProblems {
		return &Problem{}
	}
	l.problems = append(l.problems, Problem{Kind: kind, Position: t.position("")})
	return &l.problems[len(l.problems)-1]
}

// lint returns the problems that are visible in the text: those of single terms in order,
// then those of the whole record. A missing all is reported only if all terms could be
// parsed.
func (r Record) lint(readable bool) []Problem {
	var l linter
	all := r.find(All)
	seen := make(map[string]Position)
	var afterAll []Term
	for _, t := range r.Terms {
		l.term(t)
		if t.Kind == Redirect && all != nil {
			l.add(RedirectIgnored, t)
		}
		if t.Kind == Invalid || t.Kind.Modifier() {
			continue
		}
		if all != nil && t.Offset > all.Offset {
			afterAll = append(afterAll, t)
			continue
		}
		// The second of two equal mechanisms never matches, whatever the qualifiers.
		key := t.unqualified()
		if first, found := seen[key]; found {
			l.add(DuplicateTerm, t).Other = first
		} else {
			seen[key] = t.position("")
		}
	}
	if len(afterAll) > 0 {
		l.add(TermsAfterAll, afterAll[0]).Count = len(afterAll)
	}
	if readable && all == nil && r.find(Redirect) == nil {
		l.add(NoAll, Term{})
	}
	for _, limit := range []int{longRecord, crampedRecord} {
		if len(r.Text) > limit {
			p := l.add(LongRecord, Term{})
			p.Count, p.Limit = len(r.Text), limit
			break
		}
	}
	return l.problems
}

// term adds the problems of one term.
func (l *linter) term(t Term) {
	switch t.Kind {
	case All:
		if t.Qualifier == Pass {
			l.add(PassAll, t)
		}
		if t.Qualifier == Neutral {
			l.add(NeutralAll, t)
		}
	case PTR:
		l.add(PTRUsed, t)
	case Unknown:
		l.add(UnknownModifier, t).Name = t.Name
	case IP4, IP6:
		if t.Network != t.Network.Masked() {
			l.add(HostBits, t).Range = t.Network
		}
		if t.Kind == IP4 {
			l.breadth(t, IPv4, t.Network.Bits())
		} else {
			l.breadth(t, IPv6, t.Network.Bits())
		}
	case A, MX:
		l.breadth(t, IPv4, t.Bits4)
		l.breadth(t, IPv6, t.Bits6)
	}
}

func (l *linter) breadth(t Term, family Family, bits int) {
	limit := broadIPv4
	if family == IPv6 {
		limit = broadIPv6
	}
	if bits < limit {
		p := l.add(BroadRange, t)
		p.Family, p.Count, p.Limit, p.Range = family, bits, limit, t.Network
	}
}

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
