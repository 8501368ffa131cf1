package backend

import (
	"context"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// checks implements web.Checks.
type checks struct{ desk }

const (
	// checksPerPage is how many entries of a history a page shows.
	checksPerPage = 20
	// verifyTime bounds a look at everything that somebody waits for.
	verifyTime = 8 * time.Second
	// watchEvery is how often the DNS is looked at while somebody watches.
	watchEvery = 10 * time.Second
)

func (c checks) LatestCheck(ctx context.Context, name string) (wire.KeptCheck, error) {
	domain, err := c.named(ctx, name)
	if err != nil {
		return wire.KeptCheck{}, err
	}
	kept, err := c.team.LatestCheck(ctx, domain)
	if err != nil {
		return wire.KeptCheck{}, err
	}
	return wire.NewKeptCheck(kept), nil
}

func (c checks) Checks(ctx context.Context, name, after string) (wire.Page[wire.KeptCheck], error) {
	var page wire.Page[wire.KeptCheck]
	domain, err := c.named(ctx, name)
	if err != nil {
		return page, err
	}
	before, err := parseCursor(after)
	if err != nil {
		return page, err
	}
	kept, err := c.team.Checks(ctx, domain, before, checksPerPage+1)
	if err != nil {
		return page, err
	}
	return wire.NewPage(kept, checksPerPage, func(k dmarcd.KeptCheck) string {
		return wire.FormatCursor(k.FirstAt, int64(k.ID))
	}, func(k dmarcd.KeptCheck) (wire.KeptCheck, error) { return wire.NewKeptCheck(k), nil })
}

func (c checks) Setup(ctx context.Context, name string) (wire.Setup, error) {
	setup, err := c.team.Setup(ctx, name)
	return wire.NewSetup(setup), err
}

// Verify goes on when the browser leaves: cut short it would be kept as
// inconclusive.
func (c checks) Verify(ctx context.Context, name string) error {
	domain, err := c.named(ctx, name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), verifyTime)
	defer cancel()
	return c.team.Examine(ctx, domain.Name)
}

// watched is a domain that somebody watches.
type watched struct {
	team dmarcd.TeamID
	name string
}

// Watch looks once for all who watch the same domain.
func (c checks) Watch(ctx context.Context, name string) error {
	domain, err := c.named(ctx, name)
	if err != nil || c.options.Now().Sub(domain.CheckedAt) < watchEvery {
		return err
	}
	key := watched{c.id, domain.Name}
	c.mu.Lock()
	_, busy := c.looking[key]
	c.looking[key] = struct{}{}
	c.mu.Unlock()
	if busy {
		return nil
	}
	defer func() {
		c.mu.Lock()
		delete(c.looking, key)
		c.mu.Unlock()
	}()
	return c.Verify(ctx, domain.Name)
}
