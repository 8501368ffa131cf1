package spool

import (
	"net/netip"
	"slices"

	"github.com/dmarcd/dmarcd"
)

// job is one message to handle for one team.
type job struct {
	entry    *Entry
	team     dmarcd.TeamID
	failures int // consecutive, in this process
}

func entriesOf(jobs []*job) []*Entry {
	entries := make([]*Entry, len(jobs))
	for i, j := range jobs {
		entries[i] = j.entry
	}
	return entries
}

// bounds are the limits of a queue.
type bounds struct {
	// The maximum number of running batches: in total, per team, per network, and per
	// team and network.
	running, perTeam, perNetwork, perLane int
	// The maximum number of messages in a batch, and of bytes. A single message may be
	// larger.
	entries int
	bytes   int64
}

// queue schedules jobs fairly. Among waiting teams, the one with the fewest running
// batches goes first; ties go round-robin. Within a team the same applies to client
// networks. It is not safe for concurrent use.
type queue struct {
	bounds  bounds
	running int // batches, here and below
	// tenants and their lanes are in round-robin order. Idle ones are removed.
	tenants    []*tenant
	perNetwork map[netip.Prefix]int // running batches
}

// tenant is a team with waiting or running jobs.
type tenant struct {
	team    dmarcd.TeamID
	running int
	lanes   []*lane
}

// lane contains the waiting jobs of one team from one network, oldest first.
type lane struct {
	network netip.Prefix
	running int
	jobs    []*job
}

func newQueue(b bounds) *queue {
	return &queue{bounds: b, perNetwork: make(map[netip.Prefix]int)}
}

// batch is a group of running jobs from one lane.
type batch struct {
	queue  *queue
	tenant *tenant
	lane   *lane
	jobs   []*job
}

// push appends a job to its lane.
func (q *queue) push(j *job) {
	at := slices.IndexFunc(q.tenants, func(t *tenant) bool { return t.team == j.team })
	if at < 0 {
		at = len(q.tenants)
		q.tenants = append(q.tenants, &tenant{team: j.team})
	}
	t, network := q.tenants[at], j.entry.network()
	at = slices.IndexFunc(t.lanes, func(l *lane) bool { return l.network == network })
	if at < 0 {
		at = len(t.lanes)
		t.lanes = append(t.lanes, &lane{network: network})
	}
	t.lanes[at].jobs = append(t.lanes[at].jobs, j)
}

// next starts the next batch. It returns nil if no job waits or the limits allow none.
func (q *queue) next() *batch {
	if q.running >= q.bounds.running {
		return nil
	}
	var b *batch
	for _, t := range q.tenants {
		if t.running >= q.bounds.perTeam || b != nil && t.running >= b.tenant.running {
			continue
		}
		if l := q.nextLane(t); l != nil {
			b = &batch{queue: q, tenant: t, lane: l}
		}
		if b != nil && b.tenant.running == 0 {
			break
		}
	}
	if b == nil {
		return nil
	}
	b.jobs = q.take(b.lane)
	q.count(b, 1)
	toEnd(q.tenants, b.tenant)
	toEnd(b.tenant.lanes, b.lane)
	return b
}

// nextLane returns the lane of a team that goes next, nil if none may run.
func (q *queue) nextLane(t *tenant) (next *lane) {
	for _, l := range t.lanes {
		if len(l.jobs) == 0 || l.running >= q.bounds.perLane || q.perNetwork[l.network] >= q.bounds.perNetwork {
			continue
		}
		if next == nil || l.running < next.running {
			next = l
		}
	}
	return next
}

// take removes the jobs of one batch from a lane.
func (q *queue) take(l *lane) []*job {
	var bytes int64
	n := 0
	for n < min(len(l.jobs), q.bounds.entries) {
		bytes += l.jobs[n].entry.Size
		if n > 0 && bytes > q.bounds.bytes {
			break
		}
		n++
	}
	taken := slices.Clone(l.jobs[:n])
	clear(l.jobs[:n]) // lets the entries be collected: l.jobs keeps the array
	l.jobs = l.jobs[n:]
	return taken
}

// giveBack returns jobs of a batch to the front of their lane.
func (b *batch) giveBack(jobs []*job) {
	b.lane.jobs = slices.Insert(b.lane.jobs, 0, jobs...)
}

// end marks a batch as finished and removes its lane and tenant if they are idle.
func (b *batch) end() {
	q := b.queue
	q.count(b, -1)
	if b.lane.running == 0 && len(b.lane.jobs) == 0 {
		b.tenant.lanes = slices.DeleteFunc(b.tenant.lanes, func(l *lane) bool { return l == b.lane })
	}
	if len(b.tenant.lanes) == 0 {
		q.tenants = slices.DeleteFunc(q.tenants, func(t *tenant) bool { return t == b.tenant })
	}
}

// count adds n to the counters of running batches.
func (q *queue) count(b *batch, n int) {
	q.running += n
	b.tenant.running += n
	b.lane.running += n
	if q.perNetwork[b.lane.network] += n; q.perNetwork[b.lane.network] == 0 {
		delete(q.perNetwork, b.lane.network)
	}
}

// toEnd moves e, which must be in s, to the end of s.
func toEnd[E comparable](s []E, e E) {
	at := slices.Index(s, e)
	copy(s[at:], s[at+1:])
	s[len(s)-1] = e
}
