package service

import (
	"context"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
)

// topAdvice is how many domains TopAdvice is about.
const topAdvice = 10

// reuseFactor is for how many times the time that it took an answer is reused, so that
// repeated requests for it keep at most one part in so many of a processor busy.
const reuseFactor = 100

// TopAdvice is AllAdvice for the most urgent domains. The mail of all domains is read for
// it, so an answer that took long is reused for a while: until the number of domains or a
// class of a sender changes, or for a hundred times as long as it took.
func (t *Team) TopAdvice(ctx context.Context) ([]dmarcd.Advice, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, err
	}
	size, err := t.team.DomainRows(ctx, DomainFilter{Limit: 1})
	if err != nil {
		return nil, err
	}
	cache, now := &t.service.topAdvice, time.Now()
	if advice, ok := cache.get(t.team.ID(), size.All, now); ok {
		return advice, nil
	}
	advice, _, err := t.AllAdvice(ctx, 0, topAdvice)
	if err == nil {
		cache.put(t.team.ID(), size.All, advice, now, time.Since(now))
	}
	return advice, err
}

// adviceCache remembers answers of TopAdvice. Its zero value is ready to use.
type adviceCache struct {
	mu    sync.Mutex
	teams map[dmarcd.TeamID]rememberedAdvice
}

type rememberedAdvice struct {
	advice  []dmarcd.Advice
	domains int
	until   time.Time
}

func (c *adviceCache) get(team dmarcd.TeamID, domains int, now time.Time) ([]dmarcd.Advice, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	remembered, ok := c.teams[team]
	if !ok || remembered.domains != domains || !now.Before(remembered.until) {
		return nil, false
	}
	return remembered.advice, true
}

func (c *adviceCache) put(team dmarcd.TeamID, domains int, advice []dmarcd.Advice, now time.Time, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other, remembered := range c.teams {
		if !now.Before(remembered.until) {
			delete(c.teams, other)
		}
	}
	if c.teams == nil {
		c.teams = map[dmarcd.TeamID]rememberedAdvice{}
	}
	c.teams[team] = rememberedAdvice{advice, domains, now.Add(reuseFactor * took)}
}

// forget drops the answer for a team.
func (c *adviceCache) forget(team dmarcd.TeamID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.teams, team)
}
