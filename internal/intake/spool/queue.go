package spool

import (
	"container/heap"
	"time"

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

// A message passes through these queues:
//
//	verification  one job, charged to its first team
//	storing       one job per team
//	suspects      instead of both, after a crash
//
// Retries wait in delayed first.

// delayed is a heap of jobs, the earliest first.
type delayed []delayedJob

type delayedJob struct {
	*job
	until time.Time
}

func (d delayed) Len() int           { return len(d) }
func (d delayed) Less(i, j int) bool { return d[i].until.Before(d[j].until) }
func (d delayed) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *delayed) Push(x any)        { *d = append(*d, x.(delayedJob)) } //nolint:forcetypeassert // only delay pushes

// Pop implements heap.Interface.
func (d *delayed) Pop() any {
	last := len(*d) - 1
	x := (*d)[last]
	(*d)[last] = delayedJob{}
	*d = (*d)[:last]
	return x
}

// add adds an entry and schedules it. Its space must be reserved already.
func (s *Spool) add(e *Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries[e.Name] = e
	e.remaining = len(e.Envelope.Recipients)
	s.signal()
	crashes := e.crashes.Load()
	if crashes == 0 {
		s.verification.push(&job{entry: e, team: e.Envelope.Recipients[0].Team})
		return
	}
	for _, r := range e.Envelope.Recipients {
		s.delay(&job{entry: e, team: r.Team}, crashDelay*time.Duration(crashes))
	}
}

// verified sets the authentication result and schedules the message to be stored for each team.
func (s *Spool) verified(e *Entry, v dmarcd.Authentication) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.Authentication, e.isVerified = v, true
	for _, r := range e.Envelope.Recipients {
		s.storing.push(&job{entry: e, team: r.Team})
	}
}

// later schedules a job after a delay.
func (s *Spool) later(j *job, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay(j, wait)
}

// delay is later for callers that hold s.mu.
func (s *Spool) delay(j *job, wait time.Duration) {
	heap.Push(&s.delayed, delayedJob{j, s.config.Now().Add(wait)})
}

// next starts the next batch. If there is none, it returns nil and the time until the next
// delayed job, 0 if there is no delayed job either.
func (s *Spool) next() (*batch, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.Now()
	for len(s.delayed) > 0 && !s.delayed[0].until.After(now) {
		j := heap.Pop(&s.delayed).(delayedJob).job //nolint:forcetypeassert // only delay pushes
		switch {
		case j.entry.crashes.Load() > 0:
			s.afterCrash.push(j)
		case !j.entry.isVerified:
			s.verification.push(j)
		default:
			s.storing.push(j)
		}
	}
	for _, q := range []*queue{s.storing, s.afterCrash, s.verification} {
		if b := q.next(); b != nil {
			return b, 0
		}
	}
	if len(s.delayed) == 0 {
		return nil, 0
	}
	return nil, s.delayed[0].until.Sub(now)
}

// end ends a batch, queues those of its jobs that were left out, and wakes the worker.
func (s *Spool) end(b *batch, rest []*job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.queue.GiveBack(b.lane, rest...)
	b.queue.End(b.lane)
	s.signal()
}

// signal wakes the worker.
func (s *Spool) signal() {
	select {
	case s.changed <- struct{}{}:
	default: // a signal is already pending
	}
}

// finish marks a message as stored for one team, and removes it after the last one. It
// may be called again after an error.
func (s *Spool) finish(j *job) error {
	s.mu.Lock()
	last := j.entry.remaining <= 1
	if !last {
		j.entry.remaining--
	}
	s.mu.Unlock()
	if !last {
		return nil
	}
	return s.Remove(j.entry)
}
