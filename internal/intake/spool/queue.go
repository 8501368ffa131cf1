package spool

import (
	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/fair"
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
	running, perTeam, perNetwork, perLane int64
	// The maximum number of messages in a batch, and of bytes. A single message may be
	// larger.
	entries int
	bytes   int64
}

// queue schedules jobs in batches, fairly by team, and within a team by client network. It is not
// safe for concurrent use.
type queue struct {
	*fair.Queue[holder, *job]

	bounds bounds
}

func newQueue(b bounds) *queue {
	return &queue{fair.NewQueue[holder, *job](fair.Options{Capacity: b.running, PerKey: b.perLane},
		fair.Group[holder]{Of: func(h holder) holder { return holder{team: h.team} }, Max: b.perTeam},
		fair.Group[holder]{Of: func(h holder) holder { return holder{network: h.network} }, Max: b.perNetwork}), b}
}

// batch is a group of running jobs of one team from one network.
type batch struct {
	queue *queue
	lane  holder
	jobs  []*job
}

func (q *queue) push(j *job) { q.Push(holder{j.team, j.entry.network()}, j) }

// next starts the next batch. It returns nil if no job waits or the limits allow none.
func (q *queue) next() *batch {
	lane, first, ok := q.Next()
	if !ok {
		return nil
	}
	b := &batch{q, lane, []*job{first}}
	bytes := first.entry.Size
	for len(b.jobs) < q.bounds.entries && q.More(lane, func(j *job) bool {
		bytes += j.entry.Size
		if bytes > q.bounds.bytes {
			return false
		}
		b.jobs = append(b.jobs, j)
		return true
	}) {
	}
	return b
}
