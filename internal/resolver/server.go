package resolver

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd/internal/fair"
)

// A server that left maxSilences consecutive queries unanswered is used last for
// restDuration; then a single query probes it.
const (
	maxSilences  = 3
	restDuration = 5 * time.Second
)

// server is a recursive server and its state.
type server struct {
	address   string // host:port
	host      string
	addr      netip.Addr // of host, if that is an address
	port      uint16
	inflight  *fair.Limiter[int64] // by client
	silences  atomic.Int64         // consecutive
	restUntil atomic.Int64         // Unix nanoseconds
}

// findServers returns the configured servers, or else those of the system.
func findServers(c Config) ([]*server, error) {
	addresses := c.Servers
	if len(addresses) == 0 {
		var err error
		if addresses, err = systemServers(c.ResolvConf); err != nil {
			return nil, err
		}
	}
	servers := make([]*server, len(addresses))
	for i, address := range addresses {
		host, port, err := splitAddress(address)
		if err != nil {
			return nil, fmt.Errorf("DNS server %q is not a host:port, such as 192.0.2.53:53: %w", address, err)
		}
		addr, _ := netip.ParseAddr(host) // or a name
		servers[i] = &server{
			address:  address,
			host:     host,
			addr:     addr,
			port:     port,
			inflight: newLimiter(c.MaxInflightPerServer),
		}
	}
	return servers, nil
}

// systemServers reads a resolv.conf file.
func systemServers(path string) ([]string, error) {
	const advice = "name a server there, or set DMARCD_DNS to one as host:port"
	conf, err := mdns.ClientConfigFromFile(path)
	if err != nil {
		return nil, fmt.Errorf("no DNS server is configured: %w; %s", err, advice)
	}
	if len(conf.Servers) == 0 {
		return nil, fmt.Errorf("no DNS server is configured: %s names none; %s", path, advice)
	}
	addresses := make([]string, len(conf.Servers))
	for i, host := range conf.Servers {
		addresses[i] = net.JoinHostPort(host, conf.Port)
	}
	return addresses, nil
}

// splitAddress takes a host:port apart.
func splitAddress(address string) (host string, port uint16, err error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	number, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return "", 0, err
	}
	if host == "" || number == 0 {
		return "", 0, errors.New("the host is empty or the port is 0")
	}
	return host, uint16(number), nil
}

// plan returns the servers in the order to query them: each query starts at another one,
// and resting servers come last. After a rest, a single query probes the server first.
func (r *Resolver) plan() []*server {
	now := r.config.Now()
	count := len(r.servers)
	if count == 1 {
		return r.servers
	}
	start := int(r.next.Add(1) % int64(count))
	var rested, awake, resting []*server
	for i := range count {
		s := r.servers[(start+i)%count]
		switch {
		case s.silences.Load() < maxSilences:
			awake = append(awake, s)
		case s.endsRest(now):
			rested = append(rested, s)
		default:
			resting = append(resting, s)
		}
	}
	return slices.Concat(rested, awake, resting)
}

// endsRest returns true to one caller when the rest is over. For the others the server
// rests until it has replied.
func (s *server) endsRest(now time.Time) bool {
	until := s.restUntil.Load()
	return now.UnixNano() >= until && s.restUntil.CompareAndSwap(until, now.Add(restDuration).UnixNano())
}

// noteSilence counts an unanswered query.
func (s *server) noteSilence(now time.Time) {
	if s.silences.Add(1) == maxSilences {
		s.restUntil.Store(now.Add(restDuration).UnixNano())
	}
}

// noteReply ends the rest of a server.
func (s *server) noteReply() { s.silences.Store(0) }
