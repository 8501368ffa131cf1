package spf

// What a record is warned about.
const (
	// broadIPv4 and broadIPv6 are the shortest prefix lengths that pass without
	// a remark: a /16 and a /32 are what one organization may plausibly own.
	broadIPv4 = 16
	broadIPv6 = 32
	// crampedRecord and longRecord are the sizes of RFC 7208 §3.4.
	crampedRecord = 450
	longRecord    = 512
)

// linter collects the problems of a record that can be evaluated.
type linter struct {
	problems []Problem
}

// add keeps a problem and returns it to be completed; the pointer is good until
// the next call. Once there are maxProblems, what is returned goes nowhere.
func (l *linter) add(kind Kind, t Term) *Problem {
	if len(l.problems) == maxProblems {
		return &Problem{}
	}
	l.problems = append(l.problems, Problem{Kind: kind, Place: t.place("")})
	return &l.problems[len(l.problems)-1]
}

// lint returns the problems that can be seen in the text: those of single terms
// in the order of the record, then those of the record as a whole. Whether all is
// missing can only be told of a record whose terms could all be read.
func (r Record) lint(readable bool) []Problem {
	var l linter
	all := r.find(All)
	seen := make(map[string]Place)
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
		// Of two equal mechanisms the second is never the one that matches,
		// whatever the qualifiers are.
		key := t.unqualified()
		if first, found := seen[key]; found {
			l.add(DuplicateTerm, t).Other = first
		} else {
			seen[key] = t.place("")
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

// term adds what one term alone gives rise to.
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
