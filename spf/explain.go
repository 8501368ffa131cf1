package spf

import (
	"context"

	"github.com/dmarcd/dmarcd/dns"
)

// The defaults of Limits.
const (
	defaultQuestions   = 100
	defaultDepth       = 20
	defaultConcurrency = 8
	// maxTerms bounds the size of a tree: a hundred hostile records could hold
	// millions of terms.
	maxTerms = 10_000
)

// Explain walks the tree of records below domain, without a client in mind, and
// returns it with what every term costs and stands for. It goes on past the
// limits that receivers keep to, up to its own, and says where these stopped it.
//
// Questions of the same depth are asked concurrently, each question once. The
// explanation does not depend on the order of the answers. How long it may take
// is for the deadline of ctx to say; what is not known by then is inconclusive.
func Explain(ctx context.Context, r dns.Resolver, domain string, limits Limits) Explanation {
	domain = dns.Name(domain)
	x := Explanation{Domain: domain, Root: &Node{Domain: domain, Status: StatusNone}}
	if !isDomain(domain) {
		x.Status = StatusNone
		x.Problems = []Problem{{Kind: MalformedName, Place: Place{Domain: domain}, Name: domain}}
		return x
	}
	e := &explorer{
		resolver: r,
		limits:   limits.orDefaults(),
		root:     x.Root,
		nodes:    map[string]*Node{domain: x.Root},
		answers:  make(map[dns.Question]dns.Answer),
	}
	e.enter(x.Root, nil)
	e.run(ctx)
	x.Questions = len(e.answers)
	t := e.tally()
	x.Lookups, x.Voids = x.Root.Lookups, x.Root.Voids
	c := collector{tree: e, tally: t}
	c.collect()
	x.Problems, x.Truncated = c.problems, c.truncated
	x.Status = c.status()
	return x
}

func (l Limits) orDefaults() Limits {
	if l.Questions <= 0 {
		l.Questions = defaultQuestions
	}
	if l.Depth <= 0 {
		l.Depth = defaultDepth
	}
	if l.Concurrency <= 0 {
		l.Concurrency = defaultConcurrency
	}
	return l
}
