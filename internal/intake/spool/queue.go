package spool

import (
	"net/netip"
	"slices"

	"github.com/dmarcd/dmarcd"
)

// job is a mail that is to be handled for one of its teams.
type job struct {
	entry    *Entry
	team     dmarcd.TeamID
	failures int // in a row, since the start of the process
}

// bounds are the limits of a queue. They count batches.
type bounds struct {
	// running is how many may be under way in all, perTeam for one team, perNetwork
	// from one network, perLane for one team from one network.
	running, perTeam, perNetwork, perLane int
	// entries and bytes bound a batch. The first job of a batch may have more bytes.
	entries int
	bytes   int64
}

// queue hands out jobs fairly: of the teams that wait the one with the fewest batches
// under way goes first, and among equals they take turns; within a team the same holds
// for the networks of the clients. It is not safe for concurrent use.
type queue struct {
	bounds  bounds
	running int
	// tenants are in the order of their turns. Those that neither wait nor run are
	// dropped, and so are lanes.
	tenants    []*tenant
	perNetwork map[netip.Prefix]int
}

// tenant is a team in a queue.
type tenant struct {
	team    dmarcd.TeamID
	running int
	lanes   []*lane // in the order of their turns
}

// lane is the jobs of one team that came from one network, oldest first.
type lane struct {
	network netip.Prefix
	running int
	jobs    []*job
}

func newQueue(b bounds) *queue {
	return &queue{bounds: b, perNetwork: make(map[netip.Prefix]int)}
}

// batch is jobs of one lane that are under way.
type batch struct {
	queue  *queue
	tenant *tenant
	lane   *lane
	jobs   []*job
}

// push adds a job behind the others of its lane.
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

// next begins the batch whose turn it is. It returns nil if nothing may begin now.
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
	// Both go to the end of their line.
	toEnd(q.tenants, b.tenant)
	toEnd(b.tenant.lanes, b.lane)
	return b
}

// nextLane returns the lane of a team whose turn it is, nil if none may run.
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

// take takes the jobs of one batch off a lane.
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
	clear(l.jobs[:n]) // the rest shares their memory
	l.jobs = l.jobs[n:]
	return taken
}

// giveBack returns jobs of a batch to the front of their lane.
func (b *batch) giveBack(jobs []*job) {
	b.lane.jobs = slices.Insert(b.lane.jobs, 0, jobs...)
}

// end ends a batch.
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

func (q *queue) count(b *batch, n int) {
	q.running += n
	b.tenant.running += n
	b.lane.running += n
	if q.perNetwork[b.lane.network] += n; q.perNetwork[b.lane.network] == 0 {
		delete(q.perNetwork, b.lane.network)
	}
}

// toEnd moves an element to the end of a slice.
func toEnd[E comparable](s []E, e E) {
	at := slices.Index(s, e)
	copy(s[at:], s[at+1:])
	s[len(s)-1] = e
}
