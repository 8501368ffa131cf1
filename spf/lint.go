package spf

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
