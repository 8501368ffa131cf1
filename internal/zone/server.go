package zone

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"time"

	mdns "github.com/miekg/dns"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"github.com/dmarcd/dmarcd/internal/clientaddr"
	"github.com/dmarcd/dmarcd/internal/fair"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

const (
	// maxQuery is the longest message that is read. A query has one name.
	maxQuery = 4096

	// The limits of connections: in total, and of a client network (IPv6: a /64).
	maxConnections = 512
	maxPerNetwork  = 32
	// The times of a connection: until a message is there, for the sending of one, and in total.
	idleTimeout    = 10 * time.Second
	writeTimeout   = 10 * time.Second
	sessionTimeout = 2 * time.Minute
)

// Options configure a server. Log must be set.
type Options struct {
	Zone        *Zone
	Listen      string // host:port, for UDP and TCP
	Secondaries []Secondary
	Log         *slog.Logger
	// Now is the time for limits and signatures; nil is time.Now.
	Now func() time.Time
	// Recovered reports panics; nil reports none.
	Recovered recovered.Boundary
}

// Server answers queries for a zone. It is safe for concurrent use.
type Server struct {
	zone        *Zone
	keys        keyring
	secondaries []Secondary
	changed     []chan struct{} // of each secondary
	limit       *limiter
	clients     *fair.Limiter[netip.Prefix]
	log         *slog.Logger
	recovered   recovered.Boundary
	stats       statistics

	packets *net.UDPConn
	streams net.Listener
}

// Listen returns a server that listens on UDP and TCP. The caller calls Run or Close.
func Listen(ctx context.Context, options Options) (*Server, error) {
	s := newServer(options)
	// With port 0, TCP gets the port that UDP got, unless another has it.
	for attempt := 0; ; attempt++ {
		packets, err := (&net.ListenConfig{}).ListenPacket(ctx, "udp", options.Listen)
		if err != nil {
			return nil, err
		}
		s.packets = packets.(*net.UDPConn) //nolint:forcetypeassert // it is one for the network udp
		if s.streams, err = (&net.ListenConfig{}).Listen(ctx, "tcp", s.Addr()); err == nil {
			break
		}
		_ = s.packets.Close() // nothing was read
		if _, port, _ := net.SplitHostPort(options.Listen); port != "0" || attempt == 10 {
			return nil, err
		}
	}
	// An answer leaves from the address that was queried, which is not the first of the machine.
	if ipv6.NewPacketConn(s.packets).SetControlMessage(ipv6.FlagDst|ipv6.FlagInterface, true) != nil {
		if err := ipv4.NewPacketConn(s.packets).SetControlMessage(ipv4.FlagDst|ipv4.FlagInterface, true); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// newServer returns a server that does not listen.
func newServer(options Options) *Server {
	s := &Server{
		zone: options.Zone, secondaries: options.Secondaries, keys: make(keyring),
		clients: fair.New[netip.Prefix](fair.Options{Capacity: maxConnections, PerKey: maxPerNetwork}),
		log:     options.Log, recovered: options.Recovered,
	}
	now := options.Now
	if now == nil {
		now = time.Now
	}
	s.limit = newLimiter(now)
	for _, secondary := range options.Secondaries {
		s.keys[secondary.Key.Name] = secondary.Key
		s.changed = append(s.changed, make(chan struct{}, 1))
	}
	return s
}

// Addr returns the host:port that the server listens on.
func (s *Server) Addr() string { return s.packets.LocalAddr().String() }

// Close stops listening. Run does so when it ends.
func (s *Server) Close() error {
	var errs []error
	for _, err := range []error{s.packets.Close(), s.streams.Close()} {
		if !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Changed sends NOTIFY to the secondaries. Run does so when it begins.
func (s *Server) Changed() {
	for _, changed := range s.changed {
		select {
		case changed <- struct{}{}:
		default: // it is due already
		}
	}
}

// Run answers until ctx ends, and waits for what runs.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	failed := make(chan error, runtime.GOMAXPROCS(0)+1)
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() { failed <- s.servePackets(ctx) })
	}
	all.Go(func() { failed <- s.serveStreams(ctx, &all) })
	for i, secondary := range s.secondaries {
		all.Go(func() { s.notify(ctx, secondary, s.changed[i]) })
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		if ctx.Err() == nil {
			err = fmt.Errorf("serve the zone %s: %w", s.zone.Apex(), err)
		}
	}
	if ctx.Err() != nil {
		err = nil // it was stopped
	}
	cancel()
	_ = s.Close() // ends the reading
	all.Wait()
	return err
}

// servePackets answers queries over UDP, one after the other.
func (s *Server) servePackets(ctx context.Context) error {
	buffer := make([]byte, maxQuery)
	for {
		n, session, err := mdns.ReadFromSessionUDP(s.packets, buffer)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			continue // of one packet, such as an ICMP message about an earlier answer
		}
		from := session.RemoteAddr().(*net.UDPAddr).AddrPort().Addr() //nolint:forcetypeassert // of a UDPConn
		_ = s.recovered.Call("zone", func() error {
			return s.respond(buffer[:n], from, false, func(reply []byte) error {
				_, err := mdns.WriteToSessionUDP(s.packets, reply, session)
				return err
			})
		}) // the client asks again
	}
}

// serveStreams accepts connections. The goroutines that answer them are part of all.
func (s *Server) serveStreams(ctx context.Context, all *sync.WaitGroup) error {
	for {
		conn, err := s.streams.Accept()
		if ctx.Err() != nil {
			if err == nil {
				_ = conn.Close() // the server stops
			}
			return ctx.Err()
		}
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			select { // out of file descriptors
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
			continue
		}
		remote, _ := netip.ParseAddrPort(conn.RemoteAddr().String())
		release, ok := s.clients.Try(clientaddr.NetworkOf(remote.Addr()))
		if !ok {
			s.stats.connections.Add(1)
			_ = conn.Close() // the network has too many
			continue
		}
		all.Go(func() {
			defer release()
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // ends the reading
			defer stop()
			defer conn.Close() //nolint:errcheck // the client may be gone
			_ = s.recovered.Call("zone", func() error { return s.serveStream(conn, remote.Addr()) })
		})
	}
}

// serveStream answers the queries of a connection. Every message has its length in front.
func (s *Server) serveStream(conn net.Conn, from netip.Addr) error {
	end := time.Now().Add(sessionTimeout)
	var prefix [2]byte
	for {
		deadline := time.Now().Add(idleTimeout)
		if deadline.After(end) {
			deadline = end
		}
		if err := conn.SetReadDeadline(deadline); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, prefix[:]); err != nil {
			return err
		}
		length := int(binary.BigEndian.Uint16(prefix[:]))
		if length < headerBytes || length > maxQuery {
			return errors.New("not a query")
		}
		message := make([]byte, length)
		if _, err := io.ReadFull(conn, message); err != nil {
			return err
		}
		if err := s.respond(message, from, true, func(reply []byte) error {
			if err := conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
				return err
			}
			_, err := conn.Write(append(binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(reply)), uint16(len(reply))), reply...)) //nolint:gosec // the library packs at most 65,535 bytes
			return err
		}); err != nil {
			return err
		}
	}
}

// withPort returns an address with the port of DNS if it has none.
func withPort(address string) (string, error) {
	if ip, err := netip.ParseAddr(strings.Trim(address, "[]")); err == nil {
		return net.JoinHostPort(ip.String(), "53"), nil
	}
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return "", fmt.Errorf("%q is not an address with or without a port", address)
	}
	return a.String(), nil
}
