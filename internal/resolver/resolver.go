// Package resolver asks recursive DNS servers and gives the answers of package
// dns: over UDP with EDNS (RFC 6891), over TCP where a reply is truncated
// (RFC 7766), with retries on other servers, a cache (RFC 2308), and at most
// one exchange at a time for the same question of a client (see dns.ForClient).
//
// It does not validate DNSSEC: it asks for the AD bit (RFC 6840 §5.7) and hands
// on what the server claims. It does not recurse, and it knows nothing of what
// the records mean.
package resolver

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/fair"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

// The defaults of Config. The timeout lets a caller with two seconds repeat a
// question whose first packet was lost.
const (
	defaultTimeout              = 900 * time.Millisecond
	defaultAttempts             = 3
	defaultCacheEntries         = 1 << 16
	defaultMaxInflight          = 512
	defaultMaxInflightPerServer = 256
	defaultResolvConf           = "/etc/resolv.conf"
)

// maxDuration bounds the work on one question, however long its callers would
// wait.
const maxDuration = 10 * time.Second

// Config is what a Resolver needs to know. The zero value of every field means
// a default, so Config{} uses the system's resolvers.
type Config struct {
	// Servers holds the recursive servers to ask, each as host:port. Where it
	// is empty, the servers of ResolvConf are used.
	Servers []string
	// ResolvConf is the file that names the system's resolvers; default
	// /etc/resolv.conf. It is read once, by New.
	ResolvConf string
	// Timeout is how long one server is waited for before the question is
	// repeated; default 900 ms. It is shortened where a caller's deadline
	// would otherwise not leave every server a chance.
	Timeout time.Duration
	// Attempts is how often a server that stays silent is asked; default 3.
	Attempts int
	// CacheEntries is how many answers are kept, of 1 KiB each on average at
	// most; default 65,536.
	CacheEntries int
	// MaxInflight is how many questions are under way at once in all; default
	// 512. Further ones wait for their turn. One client (see dns.ForClient) has at
	// most a quarter of them.
	MaxInflight int
	// MaxInflightPerServer is the same for each server; default 256.
	MaxInflightPerServer int
	// Observe is called for every question that was sent to a server, with how
	// it ended and how long that took; answers from the cache and callers that
	// joined a question under way are not counted. It must be safe for
	// concurrent use. It may be nil.
	Observe func(outcome dns.Outcome, took time.Duration)
	// Recovered reports panics while a reply is read; the question is inconclusive then.
	Recovered recovered.Boundary
	// Now is the clock of the cache, and of the rest that silent servers take;
	// default time.Now.
	Now func() time.Time
}

// withDefaults returns the configuration with every field set.
func (c Config) withDefaults() Config {
	if c.ResolvConf == "" {
		c.ResolvConf = defaultResolvConf
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.Attempts <= 0 {
		c.Attempts = defaultAttempts
	}
	if c.CacheEntries <= 0 {
		c.CacheEntries = defaultCacheEntries
	}
	if c.MaxInflight <= 0 {
		c.MaxInflight = defaultMaxInflight
	}
	if c.MaxInflightPerServer <= 0 {
		c.MaxInflightPerServer = defaultMaxInflightPerServer
	}
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
	err     error                // why there is no server to ask
	next    atomic.Int64         // counts the questions
	inAll   *fair.Limiter[int64] // by client
	buffers sync.Pool            // of *[readBytes]byte
	cache   *cache

	inFlight sync.WaitGroup
	mu       sync.Mutex
	closed   bool
	flights  map[asked]*flight
}

// New returns a Resolver. It always succeeds: where no server can be found, Err
// says why, and every answer is inconclusive with that reason.
func New(config Config) *Resolver {
	config = config.withDefaults()
	r := &Resolver{
		config:  config,
		inAll:   newLimiter(config.MaxInflight),
		cache:   newCache(config.CacheEntries, config.Now),
		buffers: sync.Pool{New: func() any { return new([readBytes]byte) }},
		flights: map[asked]*flight{},
	}
	r.servers, r.err = findServers(config)
	return r
}

// Err returns an error that says what to do if the Resolver has no server to
// ask, and nil otherwise.
func (r *Resolver) Err() error { return r.err }

// Servers returns the servers that are asked, each as host:port.
func (r *Resolver) Servers() []string {
	addresses := make([]string, len(r.servers))
	for i, s := range r.servers {
		addresses[i] = s.address
	}
	return addresses
}

// Resolve answers a question from the cache or by asking. It returns by the
// deadline of ctx, and after ten seconds at the latest. The answer may be
// shared: its records must not be changed.
//
// A name that cannot be written in a DNS message (a label over 63 octets, more
// than 253 in all, an empty label) gives NoSuchName without a question: no zone
// can hold it, and no later attempt can find it. An inconclusive answer would
// be false there, and would be tried again for ever.
func (r *Resolver) Resolve(ctx context.Context, q dns.Question) dns.Answer {
	q.Name = dns.Name(q.Name)
	if answer, ok := r.cache.find(q); ok {
		return answer
	}
	return r.ask(ctx, q)
}

// Fresh returns a view of the Resolver that asks anew, past the cache, and
// stores what it learns there.
func (r *Resolver) Fresh() dns.Resolver { return fresh{r} }

// fresh is the view that Fresh returns.
type fresh struct{ r *Resolver }

// Resolve answers a question by asking, as Resolver.Resolve does.
func (f fresh) Resolve(ctx context.Context, q dns.Question) dns.Answer {
	q.Name = dns.Name(q.Name)
	return f.r.ask(ctx, q)
}

// Close ends every question under way as inconclusive and returns when nothing
// of the Resolver runs any more. Later questions are inconclusive unless the
// cache holds their answer.
func (r *Resolver) Close() {
	r.mu.Lock()
	r.closed = true
	for _, f := range r.flights {
		f.cancel()
	}
	r.mu.Unlock()
	r.inFlight.Wait()
}

// ask answers a question without the cache: by joining the flight that has the
// question under way, or by starting one.
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
	question := asked{q, dns.ClientOf(ctx)}
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

// whyEnded says why a context that has ended left a question without an answer.
func (r *Resolver) whyEnded(ctx context.Context) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return silence(strings.Join(r.Servers(), ", "))
	}
	return reasonGivenUp
}

func inconclusive(q dns.Question, reason string) dns.Answer {
	return dns.Answer{Question: q, Outcome: dns.Inconclusive, Reason: reason}
}

// newLimiter returns a limiter of questions under way, of which one client has at most
// a quarter.
func newLimiter(questions int) *fair.Limiter[int64] {
	return fair.New[int64](fair.Options{Capacity: int64(questions), PerKey: int64(max(1, questions/4))})
}
