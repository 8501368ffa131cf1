package insight

import (
	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// sum adds up records.
type sum struct {
	messages    [dmarcd.Outcomes]int64
	unverified  int64
	first, last dmarcd.Day
	seen        bool
}

func (s *sum) add(share *rollup.Share, r *rollup.Record) {
	addMessages(&s.messages[r.Outcome], r.Count)
	if share.Unverified {
		addMessages(&s.unverified, r.Count)
	}
	s.see(share.Day, share.Day)
}

// see notes days with records.
func (s *sum) see(first, last dmarcd.Day) {
	if !s.seen {
		s.seen, s.first, s.last = true, first, last
		return
	}
	s.first, s.last = min(s.first, first), max(s.last, last)
}

// merge adds what another sum has.
func (s *sum) merge(other *sum) {
	if !other.seen {
		return
	}
	for outcome, messages := range other.messages {
		addMessages(&s.messages[outcome], messages)
	}
	addMessages(&s.unverified, other.unverified)
	s.see(other.first, other.last)
}

// addMessages adds messages to a sum. As Counts are, none is past where JSON numbers
// are exact.
func addMessages(sum *int64, messages int64) { *sum = min(*sum+messages, dmarcd.MaxCount) }

// total returns all messages.
func (s *sum) total() int64 {
	var total int64
	for _, messages := range s.messages {
		addMessages(&total, messages)
	}
	return total
}

func (s *sum) counts() dmarcd.Counts {
	c := dmarcd.Counts{Unverified: s.unverified}
	for outcome, messages := range s.messages {
		if messages > 0 {
			c.Add(dmarcd.Outcome(outcome).Counts(messages))
		}
	}
	return c
}
