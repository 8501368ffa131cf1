package resolvertest

import (
	"context"
	"fmt"

	"github.com/dmarcd/dmarcd/dns"
)

// Transport is the way by which a question reached the server.
type Transport string

// The transports.
const (
	UDP Transport = "udp"
	TCP Transport = "tcp"
)

// received is what the counters tell apart.
type received struct {
	dns.Question
	over Transport
}

// expectation is someone who waits for a number of questions.
type expectation struct {
	question dns.Question
	count    int
	met      chan struct{}
}

// Asked returns how often a question has been received, over UDP and TCP
// together. Questions that a fault then ruined are counted.
func (s *Server) Asked(name string, t dns.Type) int {
	return s.AskedOver(UDP, name, t) + s.AskedOver(TCP, name, t)
}

// AskedOver returns how often a question has been received over one transport.
func (s *Server) AskedOver(over Transport, name string, t dns.Type) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[received{dns.Question{Name: dns.Name(name), Type: t}, over}]
}

// Total returns how many questions have been received in all.
func (s *Server) Total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Await returns nil as soon as a question has been received count times in
// all, and an error if ctx ends before that.
func (s *Server) Await(ctx context.Context, name string, t dns.Type, count int) error {
	question := dns.Question{Name: dns.Name(name), Type: t}
	select {
	case <-s.expect(question, count):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("await question %d for %s: %w", count, question.Name, context.Cause(ctx))
	}
}

// expect returns a channel that is closed as soon as a question has been
// received count times in all.
func (s *Server) expect(question dns.Question, count int) <-chan struct{} {
	e := expectation{question: question, count: count, met: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expectations = append(s.expectations, e)
	s.meetExpectations()
	return e.met
}

// count notes that a question was received and returns how often it was by now.
func (s *Server) count(question dns.Question, over Transport) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total++
	s.counts[received{question, over}]++
	s.meetExpectations()
	return s.times(question)
}

// times returns how often a question was received. The caller holds s.mu.
func (s *Server) times(question dns.Question) int {
	return s.counts[received{question, UDP}] + s.counts[received{question, TCP}]
}

// meetExpectations wakes those whose number is reached. The caller holds s.mu.
func (s *Server) meetExpectations() {
	open := s.expectations[:0]
	for _, e := range s.expectations {
		if s.times(e.question) < e.count {
			open = append(open, e)
			continue
		}
		close(e.met)
	}
	s.expectations = open
}
