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

// failure is why one server gave no usable answer.
type failure struct {
	reason string
	// final means that the server replied: retrying immediately would give the same reply.
	final bool
}

func silence(servers string) string {
	return fmt.Sprintf("no answer from %s in time", servers)
}

// askServers queries one server after the other until one gives a usable reply, and
// retries silent ones. If none does, the failure lists the reason of each server.
func (r *Resolver) askServers(ctx context.Context, q dns.Question, deadline func() time.Time) (part, *failure) {
	var reasons map[*server]string
	plan := r.plan()
	for round := range r.config.Attempts {
		var silent []*server
		for i, s := range plan {
			// In the first round the remaining time is shared with the servers still to
			// come, and with one retry.
			shares := 1
			if round == 0 {
				shares = len(plan) - i + 1
			}
			found, failed := r.askServer(ctx, s, q, deadline, shares)
			if failed == nil {
				return found, nil
			}
			if ctx.Err() != nil {
				return part{}, &failure{reason: r.whyEnded(ctx)}
			}
			if reasons == nil {
				reasons = make(map[*server]string)
			}
			reasons[s] = failed.reason
			if !failed.final {
				silent = append(silent, s)
			}
		}
		plan = silent
	}
	return part{}, &failure{reason: r.joinReasons(reasons)}
}

// joinReasons lists the reasons in the order of the configuration.
func (r *Resolver) joinReasons(reasons map[*server]string) string {
	var list []string
	for _, s := range r.servers {
		if reason, ok := reasons[s]; ok {
			list = append(list, reason)
		}
	}
	return strings.Join(list, "; ")
}

// askServer queries one server once, when a slot is free. It waits at most for the
// configured timeout and one share of the remaining time.
func (r *Resolver) askServer(ctx context.Context, s *server, q dns.Question, deadline func() time.Time, shares int) (part, *failure) {
	leave, ok := r.enter(ctx, s)
	if !ok {
		return part{}, &failure{reason: r.whyEnded(ctx)}
	}
	defer leave()
	left := time.Until(deadline())
	if left <= 0 {
		return part{}, &failure{reason: silence(s.address)}
	}
	until := time.Now().Add(min(r.config.Timeout, left/time.Duration(shares)))

	reply, err := r.exchange(ctx, s, newQuery(q), until)
	if err != nil {
		if ctx.Err() == nil {
			s.noteSilence(r.config.Now())
		}
		return part{}, &failure{reason: explain(s.address, err)}
	}
	s.noteReply()
	found, err := read(reply, q)
	if err != nil {
		return part{}, &failure{reason: fmt.Sprintf("%s %v", s.address, err), final: true}
	}
	return found, nil
}

// enter waits for a slot of the server and a global slot. The global slot is taken last,
// so that a queue at one server does not block queries to the others. It returns false if
// ctx ends first.
func (r *Resolver) enter(ctx context.Context, s *server) (leave func(), ok bool) {
	client := dns.ClientOf(ctx)
	leaveServer, err := s.inflight.Acquire(ctx, client, 1)
	if err != nil {
		return nil, false
	}
	leaveAll, err := r.inAll.Acquire(ctx, client, 1)
	if err != nil {
		leaveServer()
		return nil, false
	}
	return func() {
		leaveAll()
		leaveServer()
	}, true
}

// exchange gets a complete reply: over TCP if the UDP reply is truncated, and without EDNS
// if the server does not support it (RFC 6891 §6.2.2).
func (r *Resolver) exchange(ctx context.Context, s *server, query *mdns.Msg, until time.Time) (*mdns.Msg, error) {
	reply, err := r.overUDP(ctx, s, query, until)
	if err == nil && rejectsEDNS(reply) {
		query = query.Copy()
		query.Id = mdns.Id()
		query.Extra = nil
		reply, err = r.overUDP(ctx, s, query, until)
	}
	if err == nil && reply.Truncated {
		reply, err = r.overTCP(ctx, s, query, until)
	}
	return reply, err
}

// rejectsEDNS reports whether a reply rejects EDNS.
func rejectsEDNS(reply *mdns.Msg) bool {
	switch reply.Rcode {
	case mdns.RcodeFormatError, mdns.RcodeNotImplemented, mdns.RcodeBadVers:
		return true
	default:
		return false
	}
}

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
		return rejectsEDNS(reply)
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
