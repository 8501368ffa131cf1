package spool

import (
	"container/heap"
	"time"

	"github.com/dmarcd/dmarcd"
)

// A mail passes through the queues in this order:
//
//	verification  one job, for the first of its teams
//	storing       one job for each of its teams
//	suspects      in place of both, after a crash
//
// and waits among the delayed before it is tried again.

// delayed are the jobs that wait for a time, the earliest first: a heap.
type delayed []delayedJob

type delayedJob struct {
	*job
	until time.Time
}

func (d delayed) Len() int           { return len(d) }
func (d delayed) Less(i, j int) bool { return d[i].until.Before(d[j].until) }
func (d delayed) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *delayed) Push(x any)        { *d = append(*d, x.(delayedJob)) } //nolint:forcetypeassert // pushed below alone

// Pop implements heap.Interface.
func (d *delayed) Pop() any {
	last := len(*d) - 1
	x := (*d)[last]
	(*d)[last] = delayedJob{}
	*d = (*d)[:last]
	return x
}

// add enters a mail and has it handled. The caller has counted its space.
func (s *Spool) add(e *Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries[e.Name] = e
	e.open = len(e.Envelope.Recipients)
	crashes := e.crashes.Load()
	if crashes == 0 {
		s.verification.push(&job{entry: e, team: e.Envelope.Recipients[0].Team})
		s.signal()
		return
	}
	for _, r := range e.Envelope.Recipients {
		s.delay(&job{entry: e, team: r.Team}, crashDelay*time.Duration(crashes))
	}
}

// verified sets the verdict on a mail and has it stored for each of its teams.
func (s *Spool) verified(e *Entry, v dmarcd.Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.Verdict, e.isVerified = v, true
	for _, r := range e.Envelope.Recipients {
		s.storing.push(&job{entry: e, team: r.Team})
	}
}

// later has a job done after a time.
func (s *Spool) later(j *job, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay(j, wait)
}

// delay is later for a caller that holds the mutex.
func (s *Spool) delay(j *job, wait time.Duration) {
	heap.Push(&s.delayed, delayedJob{j, s.config.Now().Add(wait)})
}

// next begins a batch. Where there is none it returns how long it is until there may be
// one, 0 if only a signal can bring one.
func (s *Spool) next() (*batch, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.Now()
	for len(s.delayed) > 0 && !s.delayed[0].until.After(now) {
		j := heap.Pop(&s.delayed).(delayedJob).job //nolint:forcetypeassert // pushed above alone
		if j.entry.crashes.Load() > 0 {
			s.suspects.push(j)
		} else {
			s.storing.push(j)
		}
	}
	for _, q := range []*queue{s.storing, s.suspects, s.verification} {
		if b := q.next(); b != nil {
			return b, 0
		}
	}
	if len(s.delayed) == 0 {
		return nil, 0
	}
	return nil, s.delayed[0].until.Sub(now)
}

// giveBack returns jobs of a batch to the queue.
func (s *Spool) giveBack(b *batch, jobs []*job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.giveBack(jobs)
}

// end ends a batch.
func (s *Spool) end(b *batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.end()
	s.signal()
}

// signal wakes the worker. The caller holds the mutex.
func (s *Spool) signal() {
	select {
	case s.changed <- struct{}{}:
	default: // it has not yet noticed the one before
	}
}

// finish ends the work on a mail for a team, and removes a mail that all teams have.
func (s *Spool) finish(j *job) error {
	s.mu.Lock()
	last := j.entry.open <= 1
	if !last {
		j.entry.open--
	}
	s.mu.Unlock()
	if !last {
		return nil
	}
	return s.Remove(j.entry)
}
