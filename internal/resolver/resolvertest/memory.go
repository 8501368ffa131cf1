package resolvertest

import (
	"context"
	"fmt"
	"net"
	"testing"

	mdns "github.com/miekg/dns"
)

// Memory returns a server without sockets, for tests in a bubble of testing/synctest: time
// does not pass there while a goroutine reads from a socket. The host:port is only its name;
// Dial connects to it.
func Memory(t testing.TB, addr, zoneText string) *Server {
	t.Helper()
	s := newServer(addr)
	t.Cleanup(s.Close)
	if err := s.Set(zoneText); err != nil {
		t.Fatalf("start DNS server: %v", err)
	}
	return s
}

// Dial returns a function that connects to servers in memory.
func Dial(servers ...*Server) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(_ context.Context, network, address string) (net.Conn, error) {
		for _, s := range servers {
			if s.addr == address {
				client, server := net.Pipe()
				s.serving.Go(func() { s.serveConn(server, Transport(network)) })
				return client, nil
			}
		}
		return nil, fmt.Errorf("no server %s in memory", address)
	}
}

// serveConn handles the queries of a connection until the client closes it.
func (s *Server) serveConn(conn net.Conn, over Transport) {
	w := &memoryWriter{framed: mdns.Conn{Conn: conn}, over: over}
	defer func() { _ = conn.Close() }() // nothing is buffered
	buffer := make([]byte, mdns.MaxMsgSize)
	for {
		var n int
		var err error
		if over == TCP {
			n, err = w.framed.Read(buffer)
		} else {
			n, err = conn.Read(buffer)
		}
		request := new(mdns.Msg)
		if err != nil || request.Unpack(buffer[:n]) != nil || len(request.Question) != 1 {
			return
		}
		s.handle(w, request, over)
	}
}

// memoryWriter writes replies to a connection in memory. What else a ResponseWriter can do is
// not used.
type memoryWriter struct {
	mdns.ResponseWriter
	framed mdns.Conn
	over   Transport
}

// WriteMsg sends a reply.
func (w *memoryWriter) WriteMsg(reply *mdns.Msg) error {
	packed, err := reply.Pack()
	if err == nil {
		_, err = w.Write(packed)
	}
	return err
}

// Write sends octets, as a packet or a frame.
func (w *memoryWriter) Write(octets []byte) (int, error) {
	if w.over == TCP {
		return w.framed.Write(octets)
	}
	return w.framed.Conn.Write(octets)
}

// Close closes the connection. It does nothing over UDP.
func (w *memoryWriter) Close() error {
	if w.over == TCP {
		return w.framed.Close()
	}
	return nil
}
