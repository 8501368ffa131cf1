package service

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
)

// topAdvice is the number of domains of TopAdvice.
const topAdvice = 10

// reuseFactor limits recomputation: a result that took t is reused for reuseFactor·t, so that
// repeated requests use at most 1 % of a processor.
const reuseFactor = 100

// TopAdvice is AllAdvice for the most urgent domains. It reads the mail of all domains, so a
// slow result is reused until the number of domains or a sender class changes, or for a
// hundred times as long as it took.
func (t *Team) TopAdvice(ctx context.Context) ([]dmarcd.Advice, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, err
	}
	size, err := t.team.DomainRows(ctx, DomainFilter{Limit: 1})
	if err != nil {
		return nil, err
	}
	cache, now := &t.service.topAdvice, time.Now()
	if advice, ok := cache.get(adviceKey{t.team.ID(), t.tag}, size.All, now); ok {
		return advice, nil
	}
	advice, _, err := t.AllAdvice(ctx, 0, topAdvice)
	if err == nil {
		cache.put(adviceKey{t.team.ID(), t.tag}, size.All, advice, now, time.Since(now))
	}
	return advice, err
}

// adviceCache caches TopAdvice. Its zero value is ready to use.
type adviceCache struct {
	mu    sync.Mutex
	known map[adviceKey]rememberedAdvice
}

// adviceKey is a team and the tag of the domains that the advice is for, "" for all.
type adviceKey struct {
	team dmarcd.TeamID
	tag  string
}

type rememberedAdvice struct {
	advice  []dmarcd.Advice
	domains int
	until   time.Time
}

func (c *adviceCache) get(key adviceKey, domains int, now time.Time) ([]dmarcd.Advice, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	remembered, ok := c.known[key]
	if !ok || remembered.domains != domains || !now.Before(remembered.until) {
		return nil, false
	}
	return remembered.advice, true
}

func (c *adviceCache) put(key adviceKey, domains int, advice []dmarcd.Advice, now time.Time, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.known, func(_ adviceKey, remembered rememberedAdvice) bool { return !now.Before(remembered.until) })
	if c.known == nil {
		c.known = map[adviceKey]rememberedAdvice{}
	}
	c.known[key] = rememberedAdvice{advice, domains, now.Add(reuseFactor * took)}
}

// forget drops the answers for a team.
func (c *adviceCache) forget(team dmarcd.TeamID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.known, func(key adviceKey, _ rememberedAdvice) bool { return key.team == team })
}
