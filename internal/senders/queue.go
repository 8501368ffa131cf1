package senders

import (
	"net/netip"
	"slices"

	"github.com/dmarcd/dmarcd"
)

const (
	// maxWaiting limits the queued lookups of a team to those of one page, and
	// maxWaitingAll those of all teams. The next page view queues the rest again.
	maxWaiting    = 2_000
	maxWaitingAll = 100_000
)

// lookup is an address to look up, and the team that asked first.
type lookup struct {
	team dmarcd.TeamID
	addr netip.Addr
}

// queue holds queued lookups by team. Teams take turns, so that one whose addresses have slow
// DNS does not delay the others. It is not safe for concurrent use.
type queue struct {
	teams map[dmarcd.TeamID]*turn
	order []*turn // teams with queued lookups; the one whose turn it is comes first
	size  int
}

// turn is the part of one team.
type turn struct {
	team    dmarcd.TeamID
	waiting []netip.Addr
	known   map[netip.Addr]struct{} // the same addresses
	running int
}

// add queues a lookup, unless it is queued or the queue is full.
func (q *queue) add(l lookup) {
	t := q.teams[l.team]
	if t == nil {
		t = &turn{team: l.team, known: map[netip.Addr]struct{}{}}
	}
	if _, known := t.known[l.addr]; known || len(t.waiting) >= maxWaiting || q.size >= maxWaitingAll {
		return
	}
	if len(t.waiting) == 0 {
		q.order = append(q.order, t)
	}
	q.teams[l.team] = t
	t.waiting = append(t.waiting, l.addr)
	t.known[l.addr] = struct{}{}
	q.size++
}

// take removes the next lookup, which runs until done is called. While several teams wait, each
// runs at most half of the lookups.
func (q *queue) take() (lookup, bool) {
	if len(q.order) == 0 {
		return lookup{}, false
	}
	next := max(0, slices.IndexFunc(q.order, func(t *turn) bool { return t.running < atOnce/2 }))
	t := q.order[next]
	q.order = slices.Delete(q.order, next, next+1)
	addr := t.waiting[0]
	t.waiting = t.waiting[1:]
	delete(t.known, addr)
	q.size--
	t.running++
	if len(t.waiting) > 0 {
		q.order = append(q.order, t)
	}
	return lookup{t.team, addr}, true
}

// done ends a lookup that take returned.
func (q *queue) done(l lookup) {
	t := q.teams[l.team]
	t.running--
	if t.running == 0 && len(t.waiting) == 0 {
		delete(q.teams, l.team)
	}
}

// idle reports whether no lookup is queued or running.
func (q *queue) idle() bool { return len(q.teams) == 0 }
