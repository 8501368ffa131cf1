package spf

import (
	"context"
	"net/netip"
	"strings"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

// The limits, as values of the Truncated fields.
const (
	outOfQuestions = "questions"
	outOfDepth     = "depth"
	outOfTerms     = "terms"
)

// maxString is the length of the longest character-string (RFC 1035 §3.3).
const maxString = 255

// explorer builds the tree in rounds: it sends all queries that are possible so far
// together, then processes their answers in the order of the tree. The tree therefore does
// not depend on the order of answers and needs no lock.
type explorer struct {
	resolver dns.Resolver
	limits   Limits
	root     *Node
	nodes    map[string]*Node // by domain; each is shown once
	answers  map[dns.Question]dns.Answer
	queue    []request
	terms    int
	ranges   int
}

// request is a query and the handler of its answer. asked is false once the query budget
// is exhausted.
type request struct {
	question dns.Question
	then     func(answer dns.Answer, asked bool)
}

// run processes the queue in rounds until no answer causes another query.
func (e *explorer) run(ctx context.Context) {
	for len(e.queue) > 0 {
		round := e.queue
		e.queue = nil
		e.ask(ctx, round)
		for _, r := range round {
			answer, asked := e.answers[r.question]
			r.then(answer, asked)
		}
	}
}

// ask sends the queries of a round that were not sent before. If the budget is too small
// for all, queries for records come first, because they determine the number of lookups.
func (e *explorer) ask(ctx context.Context, round []request) {
	var questions []dns.Question
	for _, records := range []bool{true, false} {
		for _, r := range round {
			_, known := e.answers[r.question]
			if known || (r.question.Type == dns.TXT) != records || len(e.answers) == e.limits.Questions {
				continue
			}
			e.answers[r.question] = dns.Answer{}
			questions = append(questions, r.question)
		}
	}
	answers := make([]dns.Answer, len(questions))
	slots := make(chan struct{}, e.limits.Concurrency)
	var group recovered.Group
	for i, q := range questions {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			answers[i] = e.resolver.Resolve(ctx, q)
		})
	}
	group.Wait()
	for i, q := range questions {
		e.answers[q] = answers[i]
	}
}

// enter queries the record of a node at a depth below the root.
func (e *explorer) enter(n *Node, depth int) {
	q := dns.Question{Name: n.Domain, Type: dns.TXT}
	e.queue = append(e.queue, request{q, func(answer dns.Answer, asked bool) {
		if !asked {
			n.Status, n.Truncated = StatusInconclusive, outOfQuestions
			return
		}
		n.read(answer)
		e.fill(n, depth)
	}})
}

// read processes the answer to the query for the record.
func (n *Node) read(answer dns.Answer) {
	n.Outcome, n.Reason, n.Aliases, n.TTL = answer.Outcome, answer.Reason, answer.Aliases, answer.TTL
	for _, r := range answer.Records {
		text := r.Joined()
		if !IsRecord(text) {
			n.others = append(n.others, text)
			continue
		}
		n.Texts = append(n.Texts, text)
		for _, s := range r.Text {
			if len(s) > maxString {
				n.longString = max(n.longString, len(s))
			}
		}
	}
	switch {
	case answer.Outcome == dns.Inconclusive:
		n.Status = StatusInconclusive
	case len(n.Texts) == 0:
		n.Status = StatusNone
	case len(n.Texts) > 1:
		n.Status = StatusMultiple
	default:
		n.Status = StatusOK
		var err error
		if n.Record, err = Parse(n.Texts[0]); err != nil {
			n.Status = StatusPermError
		}
	}
}

// fill creates the steps of a node's terms. Terms of a record with syntax errors are
// followed too, to show the cost once it is fixed.
func (e *explorer) fill(n *Node, depth int) {
	terms := n.Record.Terms
	if left := maxTerms - e.terms; len(terms) > left {
		terms, n.Truncated = terms[:left], outOfTerms
	}
	e.terms += len(terms)
	n.Terms = make([]Step, len(terms))
	all := n.Record.find(All)
	for i, t := range terms {
		s := &n.Terms[i]
		s.Term = t
		switch {
		case all != nil && (t.Kind == Redirect || (!t.Kind.Modifier() && t.Offset > all.Offset)):
			s.Ignored = true
		case t.Kind == IP4 || t.Kind == IP6:
			s.Ranges = []netip.Prefix{t.Network.Masked()}
		case t.Kind.AsksDNS():
			e.follow(s, n.Domain, depth)
		}
	}
}

// follow queues the queries of a term in the record of a domain.
func (e *explorer) follow(s *Step, domain string, depth int) {
	s.Dynamic = s.Term.Domain.Dynamic() || s.Term.Kind == PTR
	if s.Term.Domain.Dynamic() {
		s.Provider = Provider(fixedSuffix(s.Term.Domain))
		return
	}
	s.Target = domain
	if !s.Term.Domain.IsZero() {
		name, _ := expand(s.Term.Domain.parts, func(letter byte) string {
			if letter == 'o' {
				return e.root.Domain
			}
			return domain // d: every other letter makes the name dynamic
		})
		s.Target = fitName(name)
		s.Provider = Provider(s.Target)
	}
	switch {
	case s.Term.Kind == Include || s.Term.Kind == Redirect:
		e.descend(s, depth)
	case !askable(s.Target):
	case s.Term.Kind == A:
		e.addresses(s, s.Target, &s.Questions)
	case s.Term.Kind == MX:
		e.exchangers(s)
	case s.Term.Kind == Exists:
		s.Questions = make([]Lookup, 1)
		e.lookup(s, dns.Question{Name: s.Target, Type: dns.A}, &s.Questions[0], func(answer dns.Answer) {
			s.setVoid(answer.Outcome, true, true)
		})
	}
}

// fixedSuffix returns the constant end of a name that depends on the client: the text
// after the last macro, without the label that contains the macro.
func fixedSuffix(d DomainSpec) string {
	last := d.parts[len(d.parts)-1]
	_, suffix, _ := strings.Cut(last.literal, ".")
	return suffix
}

// descend queues the record that an include or redirect refers to. Which of the repeated ones
// are loops is determined when the tree is complete (see counter).
func (e *explorer) descend(s *Step, depth int) {
	switch {
	case !checkable(s.Target):
	case e.nodes[s.Target] != nil:
		s.Repeated = true
	case depth == e.limits.Depth:
		s.Truncated = outOfDepth
	default:
		s.Child = &Node{Domain: s.Target}
		e.nodes[s.Target] = s.Child
		e.enter(s.Child, depth+1)
	}
}

// exchangers queues the MX records of an mx term, and then their addresses.
func (e *explorer) exchangers(s *Step) {
	s.Questions = make([]Lookup, 1)
	e.lookup(s, dns.Question{Name: s.Target, Type: dns.MX}, &s.Questions[0], func(answer dns.Answer) {
		s.setVoid(answer.Outcome, true, true)
		names := exchangers(answer)
		s.Exchangers = len(names)
		s.Hosts = make([]Host, min(len(names), maxHosts))
		for i := range s.Hosts {
			s.Hosts[i].Name = names[i]
			if askable(names[i]) {
				e.addresses(s, names[i], &s.Hosts[i].Questions)
			}
		}
	})
}

// addresses queues the A and AAAA records of a name.
func (e *explorer) addresses(s *Step, name string, into *[]Lookup) {
	*into = make([]Lookup, 2)
	for i, typ := range []dns.Type{dns.A, dns.AAAA} {
		bits := s.Term.Bits4
		if typ == dns.AAAA {
			bits = s.Term.Bits6
		}
		e.lookup(s, dns.Question{Name: name, Type: typ}, &(*into)[i], func(answer dns.Answer) {
			records := answer.Records[:min(len(answer.Records), maxRanges-e.ranges)]
			e.ranges += len(records)
			for _, r := range records {
				if p, err := r.Addr.Prefix(bits); err == nil {
					s.Ranges = append(s.Ranges, p)
				}
			}
			if s.Term.Kind == A {
				s.setVoid(answer.Outcome, typ == dns.A, typ == dns.AAAA)
			}
		})
	}
}

// lookup queues a query of a step, records the result, and passes on the answer.
func (e *explorer) lookup(s *Step, q dns.Question, into *Lookup, then func(dns.Answer)) {
	into.Question = q
	e.queue = append(e.queue, request{q, func(answer dns.Answer, asked bool) {
		if !asked {
			s.Truncated = outOfQuestions
			return
		}
		into.Outcome, into.Reason, into.Aliases = answer.Outcome, answer.Reason, answer.Aliases
		into.Records = len(answer.Records)
		then(answer)
	}})
}

// setVoid marks the term's lookup as void for the families.
func (s *Step) setVoid(o dns.Outcome, ipv4, ipv6 bool) {
	if !isVoid(o) {
		return
	}
	if ipv4 {
		s.Void.IPv4 = 1
	}
	if ipv6 {
		s.Void.IPv6 = 1
	}
}
