package resolver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd/dns"
)

const (
	// ednsBytes is the requested maximum UDP reply, which avoids fragmentation on usual
	// paths.
	ednsBytes = 1232
	// readBytes also accepts larger replies than requested.
	readBytes = 4096
)

var errBrokenReply = errors.New("its reply over TCP is malformed")

// newQuery returns a query for a recursive server. Its AD bit requests the AD bit in the
// reply without signatures (RFC 6840 §5.7).
func newQuery(q dns.Question) *mdns.Msg {
	query := new(mdns.Msg).SetQuestion(mdns.Fqdn(q.Name), uint16(q.Type))
	query.AuthenticatedData = true
	return query.SetEdns0(ednsBytes, false)
}

// overUDP sends the query from a new socket with a random port and waits for the reply. It
// ignores packets that are not a reply to this query: anyone can send them.
func (r *Resolver) overUDP(ctx context.Context, s *server, query *mdns.Msg, until time.Time) (*mdns.Msg, error) {
	conn, err := s.dial(ctx, r.config, "udp", until)
	if err != nil {
		return nil, err
	}
	defer bound(ctx, conn, until)()

	buffer := r.buffers.Get().(*[readBytes]byte)
	defer r.buffers.Put(buffer)
	packed, err := query.PackBuffer(buffer[:])
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(packed); err != nil {
		return nil, err
	}
	for {
		n, err := conn.Read(buffer[:])
		if err != nil {
			return nil, err
		}
		reply := new(mdns.Msg)
		// A truncated reply may end within a record; the header is enough.
		if err := reply.Unpack(buffer[:n]); err != nil && !reply.Truncated {
			continue
		}
		if answers(reply, query) {
			return reply, nil
		}
	}
}

// overTCP sends the query over a new connection.
func (r *Resolver) overTCP(ctx context.Context, s *server, query *mdns.Msg, until time.Time) (*mdns.Msg, error) {
	conn, err := s.dial(ctx, r.config, "tcp", until)
	if err != nil {
		return nil, err
	}
	defer bound(ctx, conn, until)()

	framed := mdns.Conn{Conn: conn}
	if err := framed.WriteMsg(query); err != nil {
		return nil, err
	}
	frame, err := framed.ReadMsgHeader(nil) // its length field allows 64 KiB
	if err != nil {
		return nil, err
	}
	reply := new(mdns.Msg)
	if err := reply.Unpack(frame); err != nil || !answers(reply, query) {
		return nil, errBrokenReply
	}
	return reply, nil
}

// dial connects to the server.
func (s *server) dial(ctx context.Context, c Config, network string, until time.Time) (net.Conn, error) {
	switch {
	case c.Dial != nil:
		return c.Dial(ctx, network, s.address)
	case network == "udp":
		return s.dialUDP(ctx, until)
	}
	dialer := net.Dialer{Deadline: until}
	return dialer.DialContext(ctx, network, s.address)
}

// dialUDP opens a socket that accepts packets from the server only.
func (s *server) dialUDP(ctx context.Context, until time.Time) (net.Conn, error) {
	addr := s.addr
	if !addr.IsValid() {
		var err error
		if addr, err = s.lookUpHost(ctx, until); err != nil {
			return nil, err
		}
	}
	return net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, s.port)))
}

// lookUpHost resolves a server that is configured by name, such as localhost or another
// container. It may have several addresses and listen on only one: after a timeout the
// next one is tried.
func (s *server) lookUpHost(ctx context.Context, until time.Time) (netip.Addr, error) {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", s.host)
	if err != nil {
		return netip.Addr{}, err
	}
	return addresses[s.silences.Load()%int64(len(addresses))].Unmap(), nil
}

// bound makes reads and writes fail at a deadline, or when ctx ends. The returned function
// closes the connection.
func bound(ctx context.Context, conn net.Conn, until time.Time) (release func()) {
	_ = conn.SetDeadline(until) // fails only on a closed connection
	stop := context.AfterFunc(ctx, func() {
		_ = conn.SetDeadline(time.Unix(1, 0)) // fails only on a closed connection, which may be by now
	})
	return func() {
		stop()
		_ = conn.Close() // nothing is buffered
	}
}

// answers reports whether a message is a reply to the query: same id and question (RFC
// 5452 §9.1). A server that could not parse the query may omit the question.
func answers(reply, query *mdns.Msg) bool {
	if reply.Id != query.Id || !reply.Response || reply.Opcode != mdns.OpcodeQuery {
		return false
	}
	if len(reply.Question) == 0 {
		return refusesEDNS(reply)
	}
	got, want := reply.Question[0], query.Question[0]
	return len(reply.Question) == 1 && got.Qtype == want.Qtype && got.Qclass == want.Qclass &&
		strings.EqualFold(got.Name, want.Name)
}

// explain describes a network error without the local port, which differs each time.
func explain(address string, err error) string {
	var timeout net.Error
	var errno syscall.Errno
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return silence(address)
	case errors.As(err, &errno):
		return fmt.Sprintf("%s cannot be asked: %v", address, errno)
	default:
		return fmt.Sprintf("%s cannot be asked: %v", address, err)
	}
}
