// Package resolver queries recursive DNS servers and returns the answers of package dns:
// over UDP with EDNS (RFC 6891), over TCP if a reply is truncated (RFC 7766), with retries
// on other servers, a cache (RFC 2308), and at most one exchange at a time for the same
// query of a client (see dns.ForClient).
//
// It does not validate DNSSEC: it requests the AD bit (RFC 6840 §5.7) and passes on what
// the server claims. It neither recurses nor interprets records.
package resolver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/fair"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

// The defaults of Config. The timeout lets a caller with a two-second deadline retry after
// a lost packet.
const (
	defaultTimeout              = 900 * time.Millisecond
	defaultAttempts             = 3
	defaultCacheEntries         = 1 << 16
	defaultMaxInflight          = 512
	defaultMaxInflightPerServer = 256
	defaultResolvConf           = "/etc/resolv.conf"
)

// maxDuration bounds the work on one query, whatever the deadlines of its callers.
const maxDuration = 10 * time.Second

// Config configures a Resolver. Zero fields mean the default, so Config{} uses the
// system's resolvers.
type Config struct {
	// Servers are the recursive servers, each as host:port. If empty, the servers of
	// ResolvConf are used.
	Servers []string
	// ResolvConf is the file with the system's resolvers; default /etc/resolv.conf. It is
	// read once, by New.
	ResolvConf string
	// Timeout is how long to wait for one server before the next attempt; default 900 ms.
	// It is shortened if a caller's deadline would not leave every server a chance.
	Timeout time.Duration
	// Attempts is the number of attempts per unresponsive server; default 3.
	Attempts int
	// CacheEntries is the number of cached answers, of at most 1 KiB each on average;
	// default 65,536.
	CacheEntries int
	// MaxInflight is the number of concurrent queries; default 512. Others wait. One
	// client (see dns.ForClient) can use at most a quarter.
	MaxInflight int
	// MaxInflightPerServer is the same for each server; default 256.
	MaxInflightPerServer int
	// Observe is called for every query sent to a server, with its outcome and duration;
	// cached answers and callers that joined a query in progress are not counted. It must
	// be safe for concurrent use. It may be nil.
	Observe func(outcome dns.Outcome, took time.Duration)
	// Recovered reports panics while a reply is parsed; the query is then inconclusive.
	Recovered recovered.Boundary
	// Dial connects to a server over the network udp or tcp; nil means sockets. Tests use
	// connections in memory.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Now is the clock of the cache and of resting servers; default time.Now.
	Now func() time.Time
}

// withDefaults returns the configuration with every field set.
func (c Config) withDefaults() Config {
	c.ResolvConf = cmp.Or(c.ResolvConf, defaultResolvConf)
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	c.Attempts = cmp.Or(c.Attempts, defaultAttempts)
	c.CacheEntries = cmp.Or(c.CacheEntries, defaultCacheEntries)
	c.MaxInflight = cmp.Or(c.MaxInflight, defaultMaxInflight)
	c.MaxInflightPerServer = cmp.Or(c.MaxInflightPerServer, defaultMaxInflightPerServer)
	if c.Observe == nil {
		c.Observe = func(dns.Outcome, time.Duration) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Resolver is a DNS client. It is safe for concurrent use.
type Resolver struct {
	config  Config
	servers []*server
	err     error                // why there is no server
	next    atomic.Int64         // counts queries
	inAll   *fair.Limiter[int64] // by client
	buffers sync.Pool            // of *[readBytes]byte
	cache   *answerCache

	inFlight sync.WaitGroup
	mu       sync.Mutex
	closed   bool
	flights  map[asked]*flight
}

// New returns a Resolver. It always succeeds: if there is no server, Err returns the
// reason, and every answer is inconclusive.
func New(config Config) *Resolver {
	config = config.withDefaults()
	r := &Resolver{
		config:  config,
		inAll:   newLimiter(config.MaxInflight),
		cache:   newAnswerCache(config.CacheEntries, config.Now),
		buffers: sync.Pool{New: func() any { return new([readBytes]byte) }},
		flights: map[asked]*flight{},
	}
	r.servers, r.err = findServers(config)
	return r
}

// Err returns an error with advice if the Resolver has no server, and nil otherwise.
func (r *Resolver) Err() error { return r.err }

// Servers returns the queried servers, each as host:port.
func (r *Resolver) Servers() []string {
	addresses := make([]string, len(r.servers))
	for i, s := range r.servers {
		addresses[i] = s.address
	}
	return addresses
}

// Resolve answers a question from the cache or with a query. It returns by the deadline of
// ctx, and after ten seconds at the latest. The answer may be shared: its records must not
// be modified.
//
// A name that is invalid in a DNS message (a label over 63 octets, more than 253 in total,
// an empty label) is NoSuchName without a query: no zone can contain it. An inconclusive
// answer would be wrong, and would be retried forever.
func (r *Resolver) Resolve(ctx context.Context, q dns.Question) dns.Answer {
	q.Name = dns.Name(q.Name)
	if answer, ok := r.cache.find(q); ok {
		return answer
	}
	return r.ask(ctx, q)
}

// Fresh returns a view of the Resolver that bypasses the cache, but stores its answers
// there.
func (r *Resolver) Fresh() dns.Resolver { return fresh{r} }

// fresh is the view that Fresh returns.
type fresh struct{ r *Resolver }

// Resolve answers a question with a query, as Resolver.Resolve does.
func (f fresh) Resolve(ctx context.Context, q dns.Question) dns.Answer {
	q.Name = dns.Name(q.Name)
	return f.r.ask(ctx, q)
}

// Close ends all queries as inconclusive and waits for them. Later queries are
// inconclusive unless cached.
func (r *Resolver) Close() {
	r.mu.Lock()
	r.closed = true
	for _, f := range r.flights {
		f.cancel()
	}
	r.mu.Unlock()
	r.inFlight.Wait()
}

// ask resolves a query without the cache: it joins the flight for the query, or starts
// one.
func (r *Resolver) ask(ctx context.Context, q dns.Question) dns.Answer {
	if !canExist(q.Name) {
		return dns.Answer{Question: q, Outcome: dns.NoSuchName}
	}
	if r.err != nil {
		return inconclusive(q, r.err.Error())
	}
	if ctx.Err() != nil {
		return inconclusive(q, r.whyEnded(ctx))
	}
	question := asked{q, dns.ClientOf(ctx), dns.IsForUser(ctx)}
	f, ok := r.join(ctx, question)
	if !ok {
		return inconclusive(q, reasonClosed)
	}
	select {
	case <-f.done:
		return f.answer
	case <-ctx.Done():
		r.leave(f, question)
		return inconclusive(q, r.whyEnded(ctx))
	}
}

const (
	reasonClosed  = "the resolver is closed"
	reasonGivenUp = "the question was given up before an answer came"
	reasonPanic   = "an internal error prevented the lookup"
)

// whyEnded returns why an ended context left a query without an answer.
func (r *Resolver) whyEnded(ctx context.Context) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return silence(strings.Join(r.Servers(), ", "))
	}
	return reasonGivenUp
}

func inconclusive(q dns.Question, reason string) dns.Answer {
	return dns.Answer{Question: q, Outcome: dns.Inconclusive, Reason: reason}
}

// newLimiter returns a limiter of concurrent queries. One client can use at most a quarter.
func newLimiter(questions int) *fair.Limiter[int64] {
	return fair.New[int64](fair.Options{Capacity: int64(questions), PerKey: int64(max(1, questions/4))})
}

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

// splitAddress splits a host:port.
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
