package service

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/cache"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/memory"
)

const (
	// topAdvice is the number of domains of TopAdvice.
	topAdvice = 10
	// maxSingleReads is up to how many domains have their mail read one by one. For more,
	// the mail of all domains is read once, unless their checks have more than situationBytes.
	maxSingleReads = 40
	situationBytes = 16 << 20
	// adviceAge is how long advice is reused: names of senders and their catalogue change
	// without a change of the domain. Advice is refreshed in the background at half of it.
	adviceAge = 10 * time.Minute
	// askedFor is how long the advice of a team is refreshed after a request for it.
	askedFor = 24 * time.Hour
	// maxRefreshed is the number of domains of a team whose advice is refreshed, and
	// maxAdvice of all teams whose advice is cached.
	maxRefreshed = 1000
	maxAdvice    = 50_000
	// maxCached is the length of texts up to which advice is cached, in bytes.
	maxCached = 8 << 10
	// refreshFactor limits refreshing to 5 % of the time.
	refreshFactor = 20
)

// TopAdvice is AllAdvice for the most urgent domains.
func (t *Team) TopAdvice(ctx context.Context) ([]dmarcd.Advice, error) {
	advice, _, err := t.AllAdvice(ctx, 0, topAdvice)
	return advice, err
}

// advise returns the advice for domains, from the cache where nothing has changed and it is
// not older than age; 0 computes all of it. It may return memory.ErrBusy.
func (t *Team) advise(ctx context.Context, domains []dmarcd.Domain, age time.Duration) ([]dmarcd.Advice, error) {
	all := make([]dmarcd.Advice, len(domains))
	var open []int
	known, now := t.service.advice, t.service.options.Now()
	bases, err := t.adviceBases(ctx, domains)
	if err != nil {
		return nil, err
	}
	for i, domain := range domains {
		var ok bool
		if all[i], ok = known.get(adviceKey{t.team.ID(), domain.ID}, bases[i], now.Add(-age)); !ok || age == 0 {
			open = append(open, i)
		}
	}
	together := 1
	if len(open) > maxSingleReads {
		held, release, err := t.service.options.Memory.AcquireAll(ctx, t.team.ID())
		if err != nil {
			return nil, err
		}
		defer release()
		ctx, together = held, len(open)
	}
	for len(open) > 0 {
		some := make([]dmarcd.Domain, min(len(open), together))
		for n := range some {
			some[n] = domains[open[n]]
		}
		advice, err := t.computeAdvice(ctx, some)
		if err != nil {
			return nil, err
		}
		for n, i := range open[:len(advice)] {
			all[i] = advice[n]
			known.put(adviceKey{t.team.ID(), domains[i].ID}, rememberedAdvice{advice[n], bases[i], now})
		}
		open = open[len(advice):]
	}
	return all, nil
}

// adviceBasis identifies what advice follows from. It is a hash: the senders of a team may be
// megabytes, and the cache has one for each domain.
type adviceBasis [sha256.Size]byte

// basisOf returns the basis of values, in a format that differs where they do.
func basisOf(format string, values ...any) adviceBasis {
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, format, values...) // a hash has no errors
	return adviceBasis(sum.Sum(nil))
}

// adviceBases identifies what the advice for domains follows from: their states, the team's own
// senders, and whether it has a mailbox.
func (t *Team) adviceBases(ctx context.Context, domains []dmarcd.Domain) ([]adviceBasis, error) {
	own, err := t.team.TeamSenders(ctx)
	if err != nil {
		return nil, err
	}
	mailboxes, err := t.team.Mailboxes(ctx)
	if err != nil {
		return nil, err
	}
	senders := basisOf("%q %t", own, len(mailboxes) > 0)
	ids := make([]dmarcd.DomainID, len(domains))
	for i, domain := range domains {
		ids[i] = domain.ID
	}
	_, to := t.period(dmarcd.Days{})
	from := to - insight.LinkDays + 1
	states, err := t.team.AdviceStates(ctx, ids, dmarcd.Days{From: &from, To: &to})
	if err != nil {
		return nil, err
	}
	bases := make([]adviceBasis, len(domains))
	for i, domain := range domains {
		bases[i] = basisOf("%q %q %t %t %d %v %x", domain.Record, domain.RecordDomain, domain.KnownAt.IsZero(), domain.Parked, domain.ForwardingAccepted, states[domain.ID], senders)
	}
	return bases, nil
}

// RefreshAdvice computes the advice of a team that was asked for lately, where something has
// changed since. more means that other teams are left.
func (s *Service) RefreshAdvice(ctx context.Context) (more bool, err error) {
	begin := s.options.Now()
	id, ok, more := s.advice.due(begin)
	if !ok {
		return false, nil
	}
	t := s.Team(id, CommandLine())
	defer func() { s.advice.refreshed(id, begin, s.options.Now()) }()
	from, to := t.period(dmarcd.Days{})
	domains, err := t.team.UrgentDomains(ctx, dmarcd.Days{From: &from, To: &to}, 0, maxRefreshed)
	if err != nil {
		return more, err
	}
	if _, err = t.advise(ctx, domains, adviceAge/2); errors.Is(err, memory.ErrBusy) {
		err = nil // next time
	}
	return more, err
}

// adviceCache caches the advice of domains.
type adviceCache struct {
	known *cache.Cache[adviceKey, rememberedAdvice]

	mu    sync.Mutex
	teams map[dmarcd.TeamID]*askedTeam
}

type adviceKey struct {
	team   dmarcd.TeamID
	domain dmarcd.DomainID
}

type rememberedAdvice struct {
	advice dmarcd.Advice
	basis  adviceBasis
	at     time.Time
}

// askedTeam is a team whose advice was asked for at a time, and is refreshed from another on.
type askedTeam struct{ asked, next time.Time }

// get returns advice with that basis that was not computed before oldest.
func (c *adviceCache) get(key adviceKey, basis adviceBasis, oldest time.Time) (dmarcd.Advice, bool) {
	remembered, ok := c.known.Get(key)
	return remembered.advice, ok && remembered.basis == basis && !remembered.at.Before(oldest)
}

func (c *adviceCache) put(key adviceKey, remembered rememberedAdvice) {
	size := len(remembered.advice.Conclusion)
	for _, step := range remembered.advice.Steps {
		if size += len(step.Title) + len(step.Reason); step.Record != nil {
			size += len(step.Record.Value)
		}
	}
	if size <= maxCached {
		c.known.Put(key, remembered, 1)
	}
}

// ask notes that the advice of a team was asked for.
func (c *adviceCache) ask(team dmarcd.TeamID, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.teams == nil {
		c.teams = map[dmarcd.TeamID]*askedTeam{}
	}
	if c.teams[team] == nil {
		c.teams[team] = &askedTeam{}
	}
	c.teams[team].asked = now
}

// due returns a team whose advice is to be refreshed, and whether there are others.
func (c *adviceCache) due(now time.Time) (due dmarcd.TeamID, ok, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.teams, func(_ dmarcd.TeamID, team *askedTeam) bool { return now.Sub(team.asked) > askedFor })
	for id, team := range c.teams {
		if now.Before(team.next) {
			continue
		}
		if ok {
			return due, true, true
		}
		due, ok = id, true
	}
	return due, ok, false
}

// refreshed notes how long it took to refresh the advice of a team.
func (c *adviceCache) refreshed(team dmarcd.TeamID, begin, end time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.teams[team] != nil {
		c.teams[team].next = end.Add(max(time.Minute/2, refreshFactor*end.Sub(begin)))
	}
}
