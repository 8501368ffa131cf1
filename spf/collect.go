package spf

import (
	"strings"

	"github.com/dmarcd/dmarcd/dns"
)

// collector collects the problems of a tree.
type collector struct {
	tree      *explorer
	tally     tally
	problems  []Problem
	broken    bool // the tree contains a permerror
	uncertain bool // a lookup failed
	truncated bool
}

func (c *collector) add(p Problem) {
	c.problems = append(c.problems, p)
	c.broken = c.broken || p.Kind.Permanent()
	c.uncertain = c.uncertain || p.Kind == Inconclusive || p.Kind == Truncated
	c.truncated = c.truncated || p.Kind == Truncated
}

func (c *collector) collect() {
	root := c.tree.root
	c.others(root)
	switch root.Status {
	case StatusInconclusive:
		c.add(Problem{Kind: Inconclusive, Position: Position{Domain: root.Domain}, Name: root.Domain, Reason: root.Reason})
	case StatusMultiple:
		c.add(Problem{Kind: MultipleRecords, Position: Position{Domain: root.Domain}, Name: root.Domain, Count: len(root.Texts)})
	}
	c.node(root, true)
	if at := c.tally.lookups; at != nil {
		c.add(Problem{Kind: LookupLimit, Position: *at, Count: root.Lookups, Limit: MaxLookups})
	}
	c.voids()
	for _, p := range overlaps(root) {
		c.add(p)
	}
}

// status summarizes the tree. Only a permerror for IPv4 clients makes the whole a
// permerror: missing AAAA records are worth a problem, but do not affect most mail.
func (c *collector) status() Status {
	switch {
	case c.tree.root.Status != StatusOK:
		return c.tree.root.Status
	case c.broken || c.tally.voidsIPv4 != nil:
		return StatusPermError
	case c.uncertain:
		return StatusInconclusive
	default:
		return StatusOK
	}
}

// others checks the other TXT records for malformed SPF records.
func (c *collector) others(n *Node) {
	for _, text := range n.others {
		meant := strings.ToLower(strings.Trim(text, " \t\r\n\"'"))
		p := Problem{Position: Position{Domain: n.Domain}, Name: n.Domain, Text: text}
		switch {
		case strings.HasPrefix(strings.TrimPrefix(meant, "v="), "spf2.0/"):
			p.Kind = SenderID
		case strings.HasPrefix(meant, "v=spf"), strings.HasPrefix(meant, "v =spf"),
			strings.HasPrefix(meant, "v= spf"), strings.HasPrefix(meant, "v = spf"),
			strings.HasPrefix(meant, "spf1 "), strings.HasPrefix(meant, "v:spf1"):
			p.Kind = NearMiss
		default:
			continue
		}
		c.add(p)
	}
}

// node adds the problems of a record and of nested ones. For an included record, its final
// terms are irrelevant, and its style is up to its owner.
func (c *collector) node(n *Node, own bool) {
	for _, p := range n.Record.Problems {
		if own || p.Kind.Permanent() || p.Kind == PassAll || p.Kind == PTRUsed || p.Kind == BroadRange {
			p.Domain = n.Domain
			if p.Other != (Position{}) {
				p.Other.Domain = n.Domain
			}
			c.add(p)
		}
	}
	if own && n.longString > 0 {
		c.add(Problem{Kind: LongString, Position: Position{Domain: n.Domain}, Count: n.longString, Limit: maxString})
	}
	if n.Truncated == outOfTerms {
		c.add(Problem{Kind: Truncated, Position: Position{Domain: n.Domain}, Reason: outOfTerms, Limit: maxTerms})
	}
	for _, s := range n.evaluated() {
		c.step(n, s)
		if s.Child != nil {
			c.node(s.Child, own && s.Term.Kind == Redirect)
		}
	}
}

// step adds the problems found by the lookups of one term.
func (c *collector) step(n *Node, s *Step) {
	p := Problem{Position: s.Term.position(n.Domain), Name: s.Target}
	of := func(kind Kind) Problem {
		p.Kind = kind
		return p
	}
	follows := s.Term.Kind == Include || s.Term.Kind == Redirect
	switch {
	case !s.Term.Kind.AsksDNS():
		return
	case s.Truncated != "":
		c.truncate(p, s.Truncated)
		return
	case s.Dynamic:
		return
	case s.Loop:
		c.add(of(Loop))
	case follows && !checkable(s.Target):
		c.add(of(MalformedName))
		c.broken = true
	case !follows && !askable(s.Target):
		c.add(of(MalformedName))
	}
	if s.Child != nil {
		c.child(p, s.Child)
	}
	if s.Exchangers > maxHosts {
		p.Count, p.Limit = s.Exchangers, maxHosts
		c.add(of(MXLimit))
		p.Count, p.Limit = 0, 0
	}
	c.unanswered(p, s.Questions)
	for _, h := range s.Hosts {
		c.unanswered(p, h.Questions)
	}
	switch {
	case s.Void.IPv4 > 0 && s.Void.IPv6 > 0:
		c.add(of(VoidLookup))
	case s.Void.IPv4 > 0:
		p.Family = IPv4
		c.add(of(VoidLookup))
	case s.Void.IPv6 > 0:
		p.Family = IPv6
		c.add(of(VoidLookup))
	}
}

// child adds the problems of the record that a term refers to, at the position of the
// term.
func (c *collector) child(p Problem, n *Node) {
	switch n.Status {
	case StatusInconclusive:
		if n.Truncated != "" {
			c.truncate(p, n.Truncated)
			return
		}
		p.Kind, p.Reason = Inconclusive, n.Reason
	case StatusMultiple:
		p.Kind, p.Count = MultipleRecords, len(n.Texts)
	case StatusNone:
		p.Kind = NoRecord
		if n.Outcome == dns.NoSuchName {
			p.Kind = NoSuchName
		}
	default:
		return
	}
	c.add(p)
}

// unanswered adds the failed queries.
func (c *collector) unanswered(p Problem, questions []Lookup) {
	for _, q := range questions {
		if q.Outcome == dns.Inconclusive {
			p.Kind, p.Name, p.Reason = Inconclusive, q.Name, q.Reason
			c.add(p)
			return
		}
	}
}

func (c *collector) truncate(p Problem, reason string) {
	p.Kind, p.Reason, p.Limit = Truncated, reason, c.tree.limits.Questions
	if reason == outOfDepth {
		p.Limit = c.tree.limits.Depth
	}
	c.add(p)
}

// voids adds the void lookup limit, once if it affects clients of both families.
func (c *collector) voids() {
	ipv4, ipv6 := c.tally.voidsIPv4, c.tally.voidsIPv6
	count := c.tree.root.Voids
	p := Problem{Kind: VoidLimit, Limit: MaxVoids}
	switch {
	case ipv4 != nil && ipv6 != nil:
		p.Position, p.Count = *ipv4, max(count.IPv4, count.IPv6)
	case ipv4 != nil:
		p.Position, p.Count, p.Family = *ipv4, count.IPv4, IPv4
	case ipv6 != nil:
		p.Position, p.Count, p.Family = *ipv6, count.IPv6, IPv6
	default:
		return
	}
	c.add(p)
}

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
