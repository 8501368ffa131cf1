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

// DefaultBudget is the number of DNS queries per examination. A typical domain needs about
// sixty; the limit stops hostile domains.
const DefaultBudget = 400

// budget is a dns.Resolver for one examination. It sends each query once, so that all
// parts see the same answer. When the budget is exhausted, further queries are
// inconclusive with a reason.
type budget struct {
	resolver dns.Resolver
	limit    int

	mu      sync.Mutex
	answers map[dns.Question]*pending
}

// pending is an answer that is ready once done is closed.
type pending struct {
	done   chan struct{}
	answer dns.Answer
}

func newBudget(r dns.Resolver, limit int) *budget {
	return &budget{resolver: r, limit: limit, answers: make(map[dns.Question]*pending)}
}

// Resolve returns the answer to q, sending at most one query for it.
func (b *budget) Resolve(ctx context.Context, q dns.Question) dns.Answer {
	q.Name = dns.Name(q.Name)
	b.mu.Lock()
	p, known := b.answers[q]
	if !known {
		if len(b.answers) >= b.limit {
			b.mu.Unlock()
			return dns.Answer{Question: q, Reason: fmt.Sprintf("the check reached its limit of %d DNS queries", b.limit)}
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

// inOrder returns an answer with sorted records. Recursive servers rotate
// records (their order has no meaning, RFC 1034 §3.6), and facts must not change because
// of it. It does not modify the shared answer.
func inOrder(a dns.Answer) dns.Answer {
	if len(a.Records) < 2 {
		return a
	}
	a.Records = slices.Clone(a.Records)
	slices.SortFunc(a.Records, func(x, y dns.Record) int {
		return cmp.Or(
			cmp.Compare(x.Preference, y.Preference), strings.Compare(x.Host, y.Host), x.Addr.Compare(y.Addr),
			slices.Compare(x.Text, y.Text), bytes.Compare(x.Raw, y.Raw),
		)
	})
	return a
}
