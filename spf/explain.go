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
	// maxRanges bounds the ranges from DNS of a tree: thousands of terms can share one
	// answer with thousands of addresses. They are only used to find overlaps.
	maxRanges = 10_000
)

// Explain walks the tree of records of domain, without a client, and returns it with the
// cost and meaning of every term. It continues past the limits of receivers, up to its
// own, and records where it stopped.
//
// Queries of the same depth run concurrently, each once. The result does not depend on the
// order of the answers. The deadline of ctx bounds the time; lookups that miss it are
// inconclusive.
func Explain(ctx context.Context, r dns.Resolver, domain string, limits Limits) Explanation {
	domain = dns.Name(domain)
	x := Explanation{Domain: domain, Root: &Node{Domain: domain, Status: StatusNone}}
	if !isDomain(domain) {
		x.Status = StatusNone
		x.Problems = []Problem{{Kind: MalformedName, Position: Position{Domain: domain}, Name: domain}}
		return x
	}
	e := &explorer{
		resolver: r,
		limits:   limits.orDefaults(),
		root:     x.Root,
		nodes:    map[string]*Node{domain: x.Root},
		answers:  make(map[dns.Question]dns.Answer),
	}
	e.enter(x.Root, 0)
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
