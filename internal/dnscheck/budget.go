package dnscheck

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dmarcd/dmarcd/dns"
)

// DefaultBudget is how many questions one examination may ask. A usual domain
// needs about sixty; a hostile one cannot make us ask for more.
const DefaultBudget = 400

// budget is a dns.Resolver for one examination. It asks each question once, so
// that all parts see the same answer, and stops asking when the budget is used
// up: what is asked after that is inconclusive and says so.
type budget struct {
	resolver dns.Resolver
	limit    int

	mu      sync.Mutex
	answers map[dns.Question]*pending
}

// pending is an answer that is there as soon as done is closed.
type pending struct {
	done   chan struct{}
	answer dns.Answer
}

func newBudget(r dns.Resolver, limit int) *budget {
	return &budget{resolver: r, limit: limit, answers: make(map[dns.Question]*pending)}
}

// Resolve answers a question, by asking at most once.
func (b *budget) Resolve(ctx context.Context, q dns.Question) dns.Answer {
	q.Name = dns.Name(q.Name)
	b.mu.Lock()
	p, known := b.answers[q]
	if !known {
		if len(b.answers) >= b.limit {
			b.mu.Unlock()
			return dns.Answer{Question: q, Reason: fmt.Sprintf("the check had used up its %d questions", b.limit)}
		}
		p = &pending{done: make(chan struct{})}
		b.answers[q] = p
	}
	b.mu.Unlock()
	if !known {
		p.answer = inOrder(b.resolver.Resolve(ctx, q))
		close(p.done)
		return p.answer
	}
	select {
	case <-p.done:
		return p.answer
	case <-ctx.Done():
		return dns.Answer{Question: q, Reason: ctx.Err().Error()}
	}
}

// inOrder returns an answer with its records in an order of their own. Recursive
// servers rotate them from answer to answer (their order means nothing, RFC 1034 §3.6), and
// facts must not change with that. The answer may be shared, so it is not touched.
func inOrder(a dns.Answer) dns.Answer {
	a.Records = slices.Clone(a.Records)
	slices.SortFunc(a.Records, func(x, y dns.Record) int {
		return cmp.Or(
			cmp.Compare(x.Preference, y.Preference), strings.Compare(x.Host, y.Host), x.Addr.Compare(y.Addr),
			slices.Compare(x.Text, y.Text), bytes.Compare(x.Raw, y.Raw),
		)
	})
	return a
}
