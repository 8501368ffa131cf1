// Package resolvertest is a DNS server for tests and benchmarks. It answers over real UDP and
// TCP sockets from a zone text that can be replaced at any time, counts queries, and misbehaves
// for chosen names.
//
// Package zone computes the answers. Truncation at the client's EDNS size (RFC 6891) is as in a
// real server; DNSSEC records have no effect.
package resolvertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/resolver/zone"
)

const (
	// udpSize is the EDNS payload size that the server offers and reads.
	udpSize = 1232
	// oversize is the payload size that servers used before fragments fell out
	// of favour.
	oversize = 4096
)

// Server is a running DNS server. Its methods are safe for concurrent use.
type Server struct {
	addr    string
	servers []*mdns.Server
	serving sync.WaitGroup
	closing chan struct{}
	close   sync.Once

	mu           sync.Mutex
	zone         *zone.Zone
	faults       map[string]Fault
	holds        map[string]chan struct{}
	authentic    bool
	total        int
	counts       map[received]int
	expectations []expectation
}

// Start runs a server with the zone text on a free loopback port until the
// test ends. The text holds one record a line in master-file form; the TTL is
// 300 and the class IN where a line names none:
//
//	_dmarc.example.org. TXT "v=DMARC1; p=none"
func Start(t testing.TB, zoneText string) *Server {
	t.Helper()
	s, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatalf("start DNS server: %v", err)
	}
	t.Cleanup(s.Close)
	if err := s.Set(zoneText); err != nil {
		t.Fatalf("start DNS server: %v", err)
	}
	return s
}

// Listen runs a server with an empty zone on the UDP and the TCP port of addr,
// a host:port; port 0 picks a free one. The caller calls Close.
func Listen(addr string) (*Server, error) {
	listener, packets, err := listenBoth(addr)
	if err != nil {
		return nil, err
	}
	s := newServer(listener.Addr().String())
	if err := s.Set(""); err != nil {
		return nil, err
	}
	s.serve(&mdns.Server{PacketConn: packets, UDPSize: udpSize})
	s.serve(&mdns.Server{Listener: listener})
	return s, nil
}

func newServer(addr string) *Server {
	return &Server{addr: addr, closing: make(chan struct{}), faults: map[string]Fault{}, holds: map[string]chan struct{}{}, counts: map[received]int{}}
}

// listenBoth opens the same port for TCP and UDP. A free TCP port may be in use for UDP, so
// with port 0 it tries several.
func listenBoth(addr string) (net.Listener, net.PacketConn, error) {
	const tries = 10
	ctx := context.Background() // listening on an address of this machine does not block
	var config net.ListenConfig
	var failures []error
	for range tries {
		listener, err := config.Listen(ctx, "tcp", addr)
		if err != nil {
			return nil, nil, fmt.Errorf("listen on %s: %w", addr, err)
		}
		packets, err := config.ListenPacket(ctx, "udp", listener.Addr().String())
		if err == nil {
			return listener, packets, nil
		}
		_ = listener.Close() // nothing was accepted
		failures = append(failures, err)
	}
	return nil, nil, fmt.Errorf("listen on %s: %w", addr, errors.Join(failures...))
}

// serve runs one of the two listeners and returns when it is reading.
func (s *Server) serve(server *mdns.Server) {
	reading := make(chan struct{})
	server.NotifyStartedFunc = func() { close(reading) }
	over := TCP
	if server.PacketConn != nil {
		over = UDP
	}
	server.Handler = mdns.HandlerFunc(func(w mdns.ResponseWriter, request *mdns.Msg) { s.handle(w, request, over) })
	s.servers = append(s.servers, server)
	s.serving.Go(func() {
		_ = server.ActivateAndServe() // ends by Close; a dead socket shows as a client's timeout
	})
	<-reading
}

// Addr returns the host:port that the server listens on, for UDP and TCP.
func (s *Server) Addr() string { return s.addr }

// Set replaces the zone. Where the text is not valid, the old zone stays.
func (s *Server) Set(zoneText string) error {
	z, err := zone.Parse(zoneText)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zone = z
	return nil
}

// SetAuthentic sets whether the server claims that it validated its answers, with the AD bit
// for clients that request it (RFC 6840 §5.8).
func (s *Server) SetAuthentic(authentic bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.authentic = authentic
}

// Hold makes the server wait with its replies about a name until release is
// called or the server is closed. The zone is read after the wait.
func (s *Server) Hold(name string) (release func()) {
	name = mdns.CanonicalName(name)
	held := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds[name] = held
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.holds[name] == held {
			delete(s.holds, name)
		}
		close(held)
	})
}

// Close stops the server and waits until nothing of it runs any more. Closing
// it again does nothing.
func (s *Server) Close() {
	s.close.Do(func() {
		close(s.closing)
		for _, server := range s.servers {
			_ = server.ShutdownContext(context.Background()) // fails only if it never ran
		}
	})
	s.serving.Wait()
}

func (s *Server) handle(w mdns.ResponseWriter, request *mdns.Msg, over Transport) {
	question := request.Question[0]     // the server library refuses messages without exactly one
	fault := s.takeFault(question.Name) // before Await tells that the question is here
	counted := dns.Question{Name: dns.Name(question.Name), Type: dns.Type(question.Qtype)}
	times := s.count(counted, over)
	if !s.waitForRelease(question.Name) {
		return
	}
	if fault == Late && !s.waitForCount(counted, times+1) {
		return
	}
	reply := s.reply(request, question, fault.maxBytes(request, over))
	if fault.misbehave(w, request, reply, over == UDP) {
		return
	}
	send(w, reply)
}

// waitForCount waits until a question has been received count times. It returns false if the
// server is closed first.
func (s *Server) waitForCount(question dns.Question, count int) bool {
	select {
	case <-s.expect(question, count):
		return true
	case <-s.closing:
		return false
	}
}

// waitForRelease reports false when the server is closed instead.
func (s *Server) waitForRelease(name string) bool {
	s.mu.Lock()
	held := s.holds[mdns.CanonicalName(name)]
	s.mu.Unlock()
	if held == nil {
		return true
	}
	select {
	case <-held:
		return true
	case <-s.closing:
		return false
	}
}

// reply returns the right reply, from the zone, truncated at maxBytes.
func (s *Server) reply(request *mdns.Msg, question mdns.Question, maxBytes int) *mdns.Msg {
	s.mu.Lock()
	current, authentic := s.zone, s.authentic
	s.mu.Unlock()

	reply := newReply(request)
	current.Answer(reply, question.Name, question.Qtype)
	edns := request.IsEdns0()
	if edns != nil {
		reply.SetEdns0(udpSize, false)
	}
	reply.AuthenticatedData = authentic && (request.AuthenticatedData || edns != nil && edns.Do())
	reply.Truncate(maxBytes)
	return reply
}

// Transport is the way by which a question reached the server.
type Transport string

// The transports.
const (
	UDP Transport = "udp"
	TCP Transport = "tcp"
)

// received is the key of the counters.
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

// Asked returns how often a question was received, over UDP and TCP together, including those
// that a fault spoiled.
func (s *Server) Asked(name string, t dns.Type) int {
	return s.AskedOver(UDP, name, t) + s.AskedOver(TCP, name, t)
}

// AskedOver returns how often a question was received over one transport.
func (s *Server) AskedOver(over Transport, name string, t dns.Type) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[received{dns.Question{Name: dns.Name(name), Type: t}, over}]
}

// Total returns the number of questions received.
func (s *Server) Total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Await returns nil once a question has been received count times, or the error of ctx.
func (s *Server) Await(ctx context.Context, name string, t dns.Type, count int) error {
	question := dns.Question{Name: dns.Name(name), Type: t}
	select {
	case <-s.expect(question, count):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("await question %d for %s: %w", count, question.Name, context.Cause(ctx))
	}
}

// expect returns a channel that is closed once a question has been received count times.
func (s *Server) expect(question dns.Question, count int) <-chan struct{} {
	e := expectation{question: question, count: count, met: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expectations = append(s.expectations, e)
	s.meetExpectations()
	return e.met
}

// count counts a question and returns its number so far.
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

// meetExpectations wakes the callers whose count is reached. The caller holds s.mu.
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
