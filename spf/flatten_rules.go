package spf

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd/dns"
)

// flatError returns the first of the problems of syntax, or another one.
func flatError(p Problem, problems []Problem) error {
	if len(problems) > 0 {
		at := problems[0]
		at.Domain = p.Name
		return &FlattenError{at}
	}
	return &FlattenError{p}
}

// flatNode is a record: its rules, of which the first that matches decides, and the record that continues
// it, if it depends on the message. lookups and voids are those of the record as it stands.
type flatNode struct {
	rules          []rule
	tail           *flatTerm
	fixed          *Problem // the term that keeps the record from being another name's
	lookups, voids int
}

// rule matches clients with some addresses, and those that match one of the terms.
type rule struct {
	result Result
	ranges spans
	terms  []flatTerm
}

// flatTerm is a term that stays one, without its qualifier.
type flatTerm struct {
	text           string
	lookups, voids int
}

// flattener makes flat nodes of the nodes of a tree, each once.
type flattener struct {
	tree *explorer
	done map[*Node]flatNode
}

// node returns the rules of a record. p is the term that leads to it.
func (f *flattener) node(n *Node, p Problem) (flatNode, error) {
	if flat, ok := f.done[n]; ok {
		return flat, nil
	}
	switch {
	case n.Truncated != "":
		p.Kind = Truncated
	case n.Status == StatusInconclusive:
		p.Kind, p.Reason = Inconclusive, n.Reason
	case n.Status == StatusMultiple:
		p.Kind = MultipleRecords
	case n.Status == StatusNone && n.Outcome == dns.NoSuchName:
		p.Kind = NoSuchName
	case n.Status == StatusNone:
		p.Kind = NoRecord
	case n.Status == StatusPermError:
		return flatNode{}, flatError(p, n.Record.Problems)
	}
	if p.Kind != "" {
		return flatNode{}, &FlattenError{p}
	}
	flat := flatNode{lookups: n.Lookups}
	for _, s := range n.evaluated() {
		if s.Term.Kind.Modifier() && s.Term.Kind != Redirect {
			continue
		}
		if err := f.step(&flat, n.Domain, s); err != nil {
			return flatNode{}, err
		}
		flat.voids = min(flat.voids, manyLookups)
	}
	for i := range flat.rules {
		flat.rules[i].tidy()
	}
	f.done[n] = flat
	return flat, nil
}

// step adds a term of the record of domain.
func (f *flattener) step(flat *flatNode, domain string, s *Step) error {
	t := s.Term
	p := Problem{Position: t.position(domain), Name: s.Target}
	fail := func(kind Kind) error {
		p.Kind = kind
		return &FlattenError{p}
	}
	if t.Kind == PTR || t.Kind == Exists || strings.Trim(t.Domain.Macros(), "d") != "" {
		f.retain(flat, domain, s)
		return nil
	}
	switch {
	case t.Kind == All:
		flat.add(rule{result: t.Qualifier, ranges: everything()})
		return nil
	case t.Kind == IP4 || t.Kind == IP6:
		flat.add(rule{result: t.Qualifier, ranges: spanOf(t.Network)})
		return nil
	case s.Truncated != "":
		return fail(Truncated)
	case s.Loop:
		return fail(Loop)
	case t.Kind == A || t.Kind == MX:
		if p.unanswered(s) {
			return fail(Inconclusive)
		}
		if s.Exchangers > maxHosts {
			p.Count, p.Limit = s.Exchangers, maxHosts
			return fail(MXLimit)
		}
		r := rule{result: t.Qualifier}
		for _, network := range s.Ranges {
			r.ranges = append(r.ranges, spanOf(network)...)
		}
		flat.add(r)
		flat.voids += max(s.Void.IPv4, s.Void.IPv6)
		return nil
	case !checkable(s.Target):
		return fail(MalformedName)
	}
	child, err := f.node(f.tree.nodes[s.Target], p)
	if err != nil {
		return err
	}
	flat.voids += child.voids
	if t.Kind == Redirect {
		flat.add(child.rules...)
		flat.tail, flat.fixed = child.tail, cmp.Or(flat.fixed, child.fixed)
		return nil
	}
	if matched, ok := child.included(); ok {
		matched.result = t.Qualifier
		flat.add(matched)
		return nil
	}
	whole := flatTerm{"include:" + escapeMacros(s.Target), 1 + child.lookups, child.voids}
	if _, bad := parseTerm(whole.text, 0); bad != nil {
		return fail(NotMovable)
	}
	flat.add(rule{result: t.Qualifier, terms: []flatTerm{whole}})
	return nil
}

// unanswered sets the name and reason of a query of a term that failed.
func (p *Problem) unanswered(s *Step) bool {
	lookups := slices.Clone(s.Questions)
	for _, h := range s.Hosts {
		lookups = append(lookups, h.Questions...)
	}
	for _, q := range lookups {
		if q.Outcome == dns.Inconclusive {
			p.Name, p.Reason = q.Name, q.Reason
			return true
		}
	}
	return false
}

// retain adds a term that stays one.
func (f *flattener) retain(flat *flatNode, domain string, s *Step) {
	text, ok := s.Term.movedFrom(domain)
	if !ok && flat.fixed == nil {
		flat.fixed = &Problem{Kind: NotMovable, Position: s.Term.position(domain)}
	}
	remaining := flatTerm{text: text, lookups: max(s.Cost, 1)}
	switch s.Term.Kind {
	case Redirect:
		flat.tail = &remaining
		return
	case A, MX, Exists, PTR:
		remaining.voids = 1
		flat.voids++
	}
	flat.add(rule{result: s.Term.Qualifier, terms: []flatTerm{remaining}})
}

// add appends rules. Neighbours with the same result become one, because which of them matches first is
// irrelevant.
func (n *flatNode) add(rules ...rule) {
	for _, r := range rules {
		last := len(n.rules) - 1
		if last < 0 || n.rules[last].result != r.result {
			n.rules = append(n.rules, rule{result: r.result})
			last++
		}
		n.rules[last].ranges = append(n.rules[last].ranges, r.ranges...)
		n.rules[last].terms = append(n.rules[last].terms, r.terms...)
	}
}

// tidy sorts and merges the ranges, and removes repeated terms.
func (r *rule) tidy() {
	r.ranges = r.ranges.union(nil)
	known := make(map[string]bool)
	r.terms = slices.DeleteFunc(r.terms, func(t flatTerm) bool {
		repeated := known[t.text]
		known[t.text] = true
		return repeated
	})
}

// included returns when an include of the record matches: when the record passes. It returns false if no
// rule can say that.
func (n flatNode) included() (matched rule, ok bool) {
	rules := n.rules
	if n.tail != nil {
		next := *n.tail
		next.text = "include:" + strings.TrimPrefix(next.text, "redirect=")
		rules = append(slices.Clone(rules), rule{result: Pass, terms: []flatTerm{next}})
	}
	for len(rules) > 0 && rules[len(rules)-1].result != Pass {
		rules = rules[:len(rules)-1]
	}
	var others spans
	plain, passes := true, true
	for _, r := range rules {
		plain = plain && len(r.terms) == 0
		if r.result != Pass {
			passes = false
			others = others.union(r.ranges)
			continue
		}
		matched.ranges = matched.ranges.union(r.ranges.without(others))
		matched.terms = append(matched.terms, r.terms...)
	}
	return matched, n.fixed == nil && (plain || passes)
}
