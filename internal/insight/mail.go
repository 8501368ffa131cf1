package insight

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// Mail is the mail of one domain, or of all domains of a team, in some days, as reported. Its methods
// read the records and return memory.ErrBusy if that takes too long. It caches intermediate results
// and is not safe for concurrent use.
type Mail struct {
	service *Service
	team    Records
	domain  string
	about   []Domain
	days    dmarcd.Days
	// window is the period with the days over which links are found.
	window  dmarcd.Days
	records int64 // of the window; there are not more
	// basis is what answers and parts are cached by, nil if they are not.
	basis *basis
	// until is the deadline for all reading.
	until   time.Time
	release func()
	// turn waits for a slot of the team at a processor, until ctx ends. A scan notices the deadline
	// by itself.
	turn func(ctx context.Context) (end func())
	// whole is who sent the mail, and tally the mail by sender, nil before they are asked for;
	// chosen is the mail of the row that was asked for last.
	whole  *recognition
	tally  *tally
	chosen *selection
	// parts are the parts of partDays, nil if none were read or they are too large.
	parts    []rollup.Part
	partDays dmarcd.Days
}

// maxCachedParts limits the bytes of the parts that are cached for the next scan.
const maxCachedParts = 1 << 20

// Close releases the memory that Read reserved. The Mail must not be used afterwards. A second
// Close has no effect.
func (m *Mail) Close() { m.release() }

// scan passes records of some days to the gatherers: those that match, or all if match is nil.
func (m *Mail) scan(ctx context.Context, days dmarcd.Days, match *grouping, gatherers ...gatherer) error {
	limited, cancel := context.WithDeadline(ctx, m.until)
	defer cancel()
	turn := func() (end func()) { return m.turn(limited) }
	err := gatherParts(days, match, gatherers, turn, func(visit func(rollup.Part) error) error {
		return m.visitParts(limited, days, turn, visit)
	})
	switch {
	case err != nil && limited.Err() != nil && ctx.Err() == nil:
		return fmt.Errorf("%w: read records: no more than %v", memory.ErrBusy, maxTime)
	case err != nil:
		return fmt.Errorf("read records: %w", err)
	}
	return nil
}

// inTurn calls f in a slot of the team. f may wait for the database only.
func (m *Mail) inTurn(ctx context.Context, f func()) {
	ctx, cancel := context.WithDeadline(ctx, m.until)
	defer cancel()
	defer m.turn(ctx)()
	f()
}

// visitParts calls visit with the parts of some days, and perhaps of others. It caches small ones.
func (m *Mail) visitParts(ctx context.Context, days dmarcd.Days, turn func() (end func()), visit func(rollup.Part) error) error {
	if cached := m.cachedParts(days); cached != nil {
		for _, part := range cached {
			if err := visit(part); err != nil {
				return err
			}
		}
		return ctx.Err()
	}
	cached, size := []rollup.Part{}, 0
	err := m.team.Scan(ctx, m.domain, days, turn, func(part rollup.Part) error {
		if size += len(part.Block); size <= maxCachedParts {
			cached = append(cached, rollup.Part{Block: bytes.Clone(part.Block), Domains: part.Domains})
		}
		return visit(part)
	})
	if err == nil && size <= maxCachedParts && (days == m.days || days == m.window) {
		m.cacheParts(days, cached, size)
	}
	return err
}

// scanTables scans all days of the mail, and a second time for tables that dropped keys.
func (m *Mail) scanTables(ctx context.Context, match *grouping, gatherers ...gatherer) error {
	if err := m.scan(ctx, m.days, match, gatherers...); err != nil {
		return err
	}
	var again []gatherer
	m.inTurn(ctx, func() {
		for _, g := range gatherers {
			if of, ok := g.(interface{ again() bool }); ok && of.again() {
				again = append(again, g)
			}
		}
	})
	if len(again) == 0 {
		return nil
	}
	return m.scan(ctx, m.days, match, again...)
}

// period is the days of a series. An open end of the requested days is replaced by the first or the
// last day with records.
type period struct{ first, last dmarcd.Day }

// period returns the period of the mail. of is the sum of its records.
func (m *Mail) period(of sum) period {
	p := period{of.first, of.last}
	if m.days.From != nil {
		p.first = *m.days.From
	}
	if m.days.To != nil {
		p.last = *m.days.To
	}
	if !of.seen && (m.days.From == nil || m.days.To == nil) {
		p.last = p.first - 1 // no day
	}
	return p
}

// maxDays limits a series with a value for each day to three years. A report may claim any date.
const maxDays = 3 * 366

// span returns the number of days of a series, 0 if there are more than maxDays.
func (p period) span() int {
	n := int(p.last) - int(p.first) + 1
	if n > maxDays {
		return 0
	}
	return max(n, 0)
}

// gatherer sums records in a scan. It is used by one goroutine at a time.
type gatherer interface {
	// begin is called with each block, add with records of each of its shares.
	begin(*rollup.Block)
	add(share *rollup.Share, records []rollup.Record)
}

// gathering passes blocks to gatherers, one at a time.
type gathering struct {
	days      dmarcd.Days // of the shares that are passed on
	match     *grouping   // nil for all records
	gatherers []gatherer
	matching  []rollup.Record
}

func (g *gathering) gather(block *rollup.Block) {
	if g.match != nil {
		g.match.begin(block)
	}
	for _, to := range g.gatherers {
		to.begin(block)
	}
	for i := range block.Shares {
		share := &block.Shares[i]
		if !g.days.Has(share.Day) {
			continue
		}
		records := g.filter(share)
		if len(records) == 0 {
			continue
		}
		for _, to := range g.gatherers {
			to.add(share, records)
		}
	}
}

// filter returns the records of a share that match, which are valid until the next call.
func (g *gathering) filter(share *rollup.Share) []rollup.Record {
	if g.match == nil {
		return share.Records
	}
	g.matching = g.matching[:0]
	for i := range share.Records {
		if r := &share.Records[i]; g.match.matches(share, r) {
			g.matching = append(g.matching, *r)
		}
	}
	return g.matching
}

// errStopped ends a scan after the goroutine that gathers has stopped.
var errStopped = errors.New("the gathering of records stopped")

// gatherParts passes the records of some days to the gatherers. It decodes the parts that scan visits
// in the goroutine of the caller and gathers them, in order, in another one: an answer uses two
// processors and the memory of two blocks. A panic of a gatherer is raised again here.
//
// Each block waits for a slot of its own (turn), so that long reads leave processors to short requests.
func gatherParts(days dmarcd.Days, match *grouping, gatherers []gatherer, turn func() (end func()), scan func(visit func(rollup.Part) error) error) error {
	var group recovered.Group
	filled, emptied, stopped := make(chan *rollup.Block), make(chan *rollup.Block, 2), make(chan struct{})
	emptied <- new(rollup.Block)
	emptied <- new(rollup.Block)
	group.Go(func() {
		defer close(stopped)
		g := gathering{days: days, match: match, gatherers: gatherers}
		for block := range filled {
			end := turn()
			g.gather(block)
			end()
			emptied <- block // there is room for both
		}
	})
	defer group.Wait()
	defer close(filled)
	return scan(func(part rollup.Part) error {
		select {
		case block := <-emptied:
			end := turn()
			err := block.Read(part)
			end()
			if err != nil {
				return err
			}
			select {
			case filled <- block:
				return nil
			case <-stopped:
			}
		case <-stopped:
		}
		return errStopped
	})
}
