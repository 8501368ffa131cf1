package spf

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/dns"
)

// The limits of Flatten.
const (
	// maxFlatRecord is the length of the longest flat record (RFC 7208 §3.4).
	maxFlatRecord = crampedRecord
	// maxFlatQuestions is the number of queries for one record.
	maxFlatQuestions = 500
	// MinFlatTTL and MaxFlatTTL bound the time after which a flat record is made again.
	MinFlatTTL = 5 * time.Minute
	MaxFlatTTL = time.Hour
)

// Problems of records that cannot be flattened, in addition to those of Explain.
const (
	// NotPass: a term does not pass, in a record that is included: an include can only match or not.
	NotPass Kind = "not-pass"
	// NotMovable: the term means something else in the record of another name.
	NotMovable Kind = "not-movable"
	// LongTerm: the term is longer than a record may be.
	LongTerm Kind = "long-term"
)

// FlatOptions are the circumstances of a record that is flattened.
type FlatOptions struct {
	// Domain is the name that the record is written for.
	Domain string
	// Name is where the flat record is published. What does not fit is published below it.
	Name string
	// Before is what is published there now. A change uses other names below Name: receivers may have the
	// first record of before in their caches, and still need the others.
	Before Flat
	// Include is set if the record of Domain has include: of Name, and not redirect=. Lookups and Voids
	// are then those of its other terms.
	Include        bool
	Lookups, Voids int
}

// Flat is a record with addresses instead of names.
type Flat struct {
	// Records are the texts: the first is for Name, the others for the names below it. Each has at most
	// 450 bytes.
	Records []string
	// Names are the names of the Records.
	Names []string
	// Lookups counts the terms that cause queries, from the record of the domain on, and Voids those that
	// may find nothing.
	Lookups, Voids int
	// TTL is how long the answers hold, within MinFlatTTL and MaxFlatTTL.
	TTL time.Duration
}

// FlattenError is why a record cannot be flattened. If the problem is Inconclusive, it may be possible
// later.
type FlattenError struct{ Problem Problem }

// Error returns a sentence with the name or the term that is the reason.
func (e *FlattenError) Error() string {
	p, name := e.Problem, e.Problem.Name
	switch p.Kind {
	case Inconclusive:
		return fmt.Sprintf("the lookup of %s failed: %s", name, p.Reason)
	case NoSuchName:
		return name + " does not exist"
	case NoRecord:
		return name + " has no SPF record"
	case MultipleRecords:
		return name + " has several SPF records"
	case Loop:
		return fmt.Sprintf("%s leads back to %s", p.Term, name)
	case MalformedName:
		return p.Term + " does not name a domain"
	case MXLimit:
		return fmt.Sprintf("%s has %d mail exchangers, and receivers accept %d", name, p.Count, p.Limit)
	case Truncated:
		return "its records need too many lookups"
	case LookupLimit:
		return fmt.Sprintf("%d lookups are needed, and receivers stop after %d", p.Count, p.Limit)
	case VoidLimit:
		return fmt.Sprintf("%d lookups may find nothing, and receivers stop after %d", p.Count, p.Limit)
	case PassAll:
		return p.Term + " authorizes everyone"
	case NotPass:
		return fmt.Sprintf("%s does not pass, and an include can only match or not", p.Term)
	case NotMovable:
		return fmt.Sprintf("%s of %s would mean something else in the record of another name", p.Term, p.Domain)
	case LongTerm:
		return fmt.Sprintf("%.40s… is too long", p.Term)
	default:
		return (&SyntaxError{p}).Error() + " of " + p.Domain
	}
}

// Flatten looks up the names of a record, and returns records that give every client the same result
// without most of these lookups. Terms that depend on the message, exists and ptr stay terms, which name the
// domain where they stood; an include that mixes them with terms that do not pass stays as it is.
//
// Errors are a *FlattenError: of names that could not be looked up, and of records that receivers do not
// evaluate or that would need more lookups than they make. A result is never wider than the record.
func Flatten(ctx context.Context, r dns.Resolver, text string, o FlatOptions) (Flat, error) {
	record, err := Parse(text)
	if err != nil {
		return Flat{}, flatError(Problem{Kind: NoRecord, Name: o.Domain}, record.Problems)
	}
	for _, t := range record.Terms {
		switch {
		case t.Kind == All && t.Qualifier == Pass:
			return Flat{}, &FlattenError{Problem{Kind: PassAll, Position: t.position(o.Domain)}}
		case o.Include && !t.Kind.Modifier() && t.Qualifier != Pass:
			return Flat{}, &FlattenError{Problem{Kind: NotPass, Position: t.position(o.Domain)}}
		}
	}
	root := &Node{Domain: dns.Name(o.Domain), Status: StatusNone}
	q := dns.Question{Name: root.Domain, Type: dns.TXT}
	e := &explorer{
		resolver: r, root: root, nodes: map[string]*Node{root.Domain: root},
		limits:  Limits{Questions: maxFlatQuestions}.orDefaults(),
		answers: map[dns.Question]dns.Answer{q: {Outcome: dns.Data, TTL: MaxFlatTTL, Records: []dns.Record{{Type: dns.TXT, Text: []string{text}}}}},
	}
	e.enter(root, 0)
	e.run(ctx)
	e.tally()
	f := flattener{done: make(map[*Node]flatNode), tree: e}
	n, err := f.node(root, Problem{Name: root.Domain})
	switch {
	case err != nil:
		return Flat{}, err
	case n.fixed != nil:
		return Flat{}, &FlattenError{*n.fixed}
	case e.ranges >= maxRanges:
		return Flat{}, &FlattenError{Problem{Kind: Truncated}}
	case o.Include:
		matched, ok := n.included()
		if !ok {
			// Every term passes, so that only a redirect= can be the reason, which takes the whole record.
			return Flat{}, &FlattenError{Problem{Kind: NotPass, Position: Position{Domain: o.Domain, Term: record.find(Redirect).Text}}}
		}
		matched.result = Pass
		matched.tidy()
		n = flatNode{rules: []rule{matched}}
	case n.tail == nil:
		n.add(rule{result: Neutral, ranges: everything()})
		n.rules[len(n.rules)-1].tidy()
	}
	flat, err := o.pack(n, o.Before.names())
	if err == nil && !slices.Equal(flat.Records, o.Before.Records) {
		flat, err = o.pack(n, o.Before.names()%mostNames+nextNames)
	}
	flat.TTL = MaxFlatTTL
	for _, a := range e.answers {
		if a.Outcome != dns.Inconclusive {
			flat.TTL = max(min(flat.TTL, a.TTL), MinFlatTTL)
		}
	}
	return flat, err
}

// The names below that of a record have the numbers from 11, 21 or 31 on in turn. There are at most nine.
const (
	nextNames = 10
	mostNames = 30
)

// names returns the number of the first name below that of a record, less one.
func (f Flat) names() int {
	if len(f.Names) < 2 {
		return 0
	}
	number, _, _ := strings.Cut(f.Names[1], ".")
	first, _ := strconv.Atoi(number)
	return max(first-1, 0)
}

// pack divides the rules into records, each of which continues with the next. They
// have the numbers after last.
func (o FlatOptions) pack(n flatNode, last int) (Flat, error) {
	flat := Flat{Lookups: 1 + o.Lookups, Voids: o.Voids}
	var terms []string
	var seen spans
	known := make(map[string]bool)
	for _, r := range n.rules {
		if len(everything().without(r.ranges)) == 0 {
			terms, n.tail = append(terms, r.result.qualifier()+All.String()), nil
			break
		}
		for _, p := range r.ranges.prefixes() {
			if len(spanOf(p).without(seen)) > 0 {
				terms = append(terms, r.result.qualifier()+networkTerm(p))
			}
		}
		seen = seen.union(r.ranges)
		for _, t := range r.terms {
			if !known[t.text] {
				known[t.text] = true
				terms = append(terms, r.result.qualifier()+t.text)
				flat.Lookups, flat.Voids = flat.Lookups+t.lookups, flat.Voids+t.voids
			}
		}
	}
	if n.tail != nil {
		terms = append(terms, n.tail.text)
		flat.Lookups += n.tail.lookups
	}
	left := 0
	for _, term := range terms {
		left += len(" ") + len(term)
	}
	name, text := o.Name, version
	finish := func(next string) {
		flat.Records, flat.Names = append(flat.Records, text), append(flat.Names, name)
		name, text = next, version
	}
	for _, term := range terms {
		next := strconv.Itoa(last+1+len(flat.Records)) + "." + o.Name
		more := " redirect=" + next
		if len(text)+left > maxFlatRecord && len(text)+len(" ")+len(term)+len(more) > maxFlatRecord {
			if text == version {
				return Flat{}, &FlattenError{Problem{Kind: LongTerm, Position: Position{Domain: o.Domain, Term: term}}}
			}
			text += more
			finish(next)
		}
		text += " " + term
		left -= len(" ") + len(term)
	}
	finish("")
	flat.Lookups += len(flat.Records) - 1
	switch {
	case flat.Lookups > MaxLookups:
		return Flat{}, &FlattenError{Problem{Kind: LookupLimit, Position: Position{Domain: o.Domain}, Count: flat.Lookups, Limit: MaxLookups}}
	case flat.Voids > MaxVoids:
		return Flat{}, &FlattenError{Problem{Kind: VoidLimit, Position: Position{Domain: o.Domain}, Count: flat.Voids, Limit: MaxVoids}}
	}
	return flat, nil
}

// networkTerm returns the ip4 or ip6 term of a network.
func networkTerm(p netip.Prefix) string {
	t := Term{Kind: IP6, Network: p}
	if p.Addr().Is4() {
		t.Kind = IP4
	}
	return t.unqualified()
}
