package insight

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// Mail is what the reports of some days say about the mail of one domain or of all
// domains of a team. Its methods read the records, and return memory.ErrBusy where that
// takes too long. It remembers what it added up, and is not safe for concurrent use.
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
	// until is when all reading ends.
	until   time.Time
	release func()
	// turn waits for the team's turn at a processor. Without one, time is up, which the next scan
	// notices.
	turn func(ctx context.Context) (end func())
	// whole is who sent the mail, and tally the mail by sender, nil before they are asked for;
	// chosen is the mail of the source that was asked for last.
	whole  *recognition
	tally  *tally
	chosen *selection
	// parts are the parts of partDays, nil if none were read yet or they are too large.
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

// inTurn calls f, which waits for nothing but the database, when it is the team's turn.
func (m *Mail) inTurn(ctx context.Context, f func()) {
	ctx, cancel := context.WithDeadline(ctx, m.until)
	defer cancel()
	defer m.turn(ctx)()
	f()
}

// visitParts calls visit with the parts of some days, and perhaps of others. Small ones are read
// once.
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

// scanTables scans all days of the mail, and again for the tables that are too small.
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

// period is the days of a series: those asked for or, where an end is open, those with
// records.
type period struct{ first, last dmarcd.Day }

// period returns that of records with a sum.
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

// maxDays bounds a series with a value for each day: three years. A report may say
// that it is from any year.
const maxDays = 3 * 366

// span returns the number of days of a series, 0 where there would be too many.
func (p period) span() int {
	n := int(p.last) - int(p.first) + 1
	if n > maxDays {
		return 0
	}
	return max(n, 0)
}
