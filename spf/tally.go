package spf

// manyLookups is where counting stops: records that include one another repeatedly can
// reach any number.
const manyLookups = 1 << 30

// totals are running totals of one evaluation in which nothing matches.
type totals struct {
	lookups int
	voids   Voids
}

func (t totals) plus(u totals) totals {
	return totals{
		lookups: min(t.lookups+u.lookups, manyLookups),
		voids: Voids{
			IPv4: min(t.voids.IPv4+u.voids.IPv4, manyLookups),
			IPv6: min(t.voids.IPv6+u.voids.IPv6, manyLookups),
		},
	}
}

// tally is where the limits of receivers are passed, nil where they are not.
type tally struct {
	lookups   *Position
	voidsIPv4 *Position
	voidsIPv6 *Position
}

// tally counts the lookups of the tree: first per record, then the running totals.
func (e *explorer) tally() tally {
	c := counter{tree: e, open: make(map[*Node]bool), done: make(map[*Node]bool)}
	c.total(e.root)
	c.number(e.root, totals{})
	return c.tally
}

type counter struct {
	tree  *explorer
	open  map[*Node]bool // being counted
	done  map[*Node]bool
	tally tally
}

// total counts the lookups of a record and of nested ones. If the record is missing, the
// term that refers to it is void. A record shown elsewhere may lead back here, which is
// also a loop.
func (c *counter) total(n *Node) totals {
	if !c.done[n] {
		c.open[n] = true
		var sum totals
		if n != c.tree.root && isVoid(n.Outcome) {
			sum.voids = Voids{IPv4: 1, IPv6: 1}
		}
		for _, s := range n.evaluated() {
			cost := s.own().plus(c.below(s))
			s.Cost = cost.lookups
			sum = sum.plus(cost)
		}
		n.Lookups, n.Voids = sum.lookups, sum.voids
		c.open[n], c.done[n] = false, true
	}
	return totals{n.Lookups, n.Voids}
}

// below counts the lookups of the record that a term refers to.
func (c *counter) below(s *Step) totals {
	n := s.Child
	if s.Repeated {
		n = c.tree.nodes[s.Target]
		if c.open[n] {
			s.Loop, s.Repeated = true, false
			return totals{}
		}
	}
	if n == nil {
		return totals{}
	}
	return c.total(n)
}

// number sets the running totals, which have reached run before the record.
func (c *counter) number(n *Node, run totals) {
	for _, s := range n.evaluated() {
		own := run.plus(s.own())
		c.compare(own, s.Term.position(n.Domain))
		after := own
		if s.Child != nil {
			c.number(s.Child, own)
		}
		if s.Child != nil || s.Repeated {
			below := c.tree.nodes[s.Target]
			after = own.plus(totals{below.Lookups, below.Voids})
			c.compare(after, s.Term.position(n.Domain))
		}
		s.Lookups, s.Voids = after.lookups, after.voids
		run = after
	}
}

// compare records where a limit is first exceeded.
func (c *counter) compare(run totals, at Position) {
	note := func(first **Position, over bool) {
		if over && *first == nil {
			*first = &at
		}
	}
	note(&c.tally.lookups, run.lookups > MaxLookups)
	note(&c.tally.voidsIPv4, run.voids.IPv4 > MaxVoids)
	note(&c.tally.voidsIPv6, run.voids.IPv6 > MaxVoids)
}

// evaluated returns the steps in the order of evaluation: the redirect is last, and terms
// without effect are omitted.
func (n *Node) evaluated() []*Step {
	var steps []*Step
	var redirect *Step
	for i := range n.Terms {
		s := &n.Terms[i]
		switch {
		case s.Ignored:
		case s.Term.Kind == Redirect:
			redirect = s
		default:
			steps = append(steps, s)
		}
	}
	if redirect != nil {
		steps = append(steps, redirect)
	}
	return steps
}

// own counts the term itself, without nested records.
func (s *Step) own() totals {
	var t totals
	if s.Term.Kind.AsksDNS() {
		t.lookups = 1
		for _, letter := range s.Term.Domain.Macros() {
			if letter == 'p' {
				// The macro queries the client's names, which counts (§4.6.4).
				t.lookups = 2
			}
		}
	}
	t.voids = s.Void
	return t
}
