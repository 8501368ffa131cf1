package api

import (
	"math"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// listDaily lists what was counted by day: of one domain, of each domain, or of the
// team.
func (a *API) listDaily(c *call) error {
	limit, place, err := readPart(c)
	if err != nil {
		return err
	}
	var after *store.DailyCursor
	if place != "" {
		if after, err = parseDailyCursor(place); err != nil {
			return err
		}
	}
	days, err := readDays(c)
	if err != nil {
		return err
	}
	values, err := query(c)
	if err != nil {
		return err
	}
	by, err := readWord(values, "by", "domain")
	if err != nil {
		return err
	}
	var domain string
	if values.Has("domain") {
		if domain, err = dmarcd.ParseName(values.Get("domain")); err != nil {
			return err
		}
	}
	counts, err := readDaily(c, domain, by == "domain", days, after, limit+1)
	if err != nil {
		return err
	}
	page, err := wire.NewPage(counts, limit, formatDailyCursor, func(d store.DailyCounts) (wire.Daily, error) {
		return wire.NewDaily(d.Day, d.Domain, d.Counts), nil
	})
	if err != nil {
		return err
	}
	writeCacheable(c, page)
	return nil
}

func readDaily(c *call, domain string, each bool, days dmarcd.Days, after *store.DailyCursor, limit int) ([]store.DailyCounts, error) {
	ctx := c.r.Context()
	if domain == "" && each {
		var from store.DailyCursor
		if after != nil {
			from = *after
		}
		return c.team.DailyByDomain(ctx, days, from, limit)
	}
	// These lists are ordered by day alone: the rest of the range follows.
	if after != nil && (days.From == nil || *days.From <= after.Day) {
		next := after.Day + 1
		days.From = &next
	}
	if domain != "" {
		return c.team.DomainDaily(ctx, domain, days, limit)
	}
	return c.team.Daily(ctx, days, limit)
}

func formatDailyCursor(d store.DailyCounts) string { return wire.FormatPlace(int64(d.Day), d.Domain) }

func parseDailyCursor(text string) (*store.DailyCursor, error) {
	day, domain, err := wire.ParsePlace(text)
	if err != nil || day < math.MinInt32 || day >= math.MaxInt32 {
		return nil, wire.ErrAfter
	}
	if domain != "" {
		if domain, err = dmarcd.ParseName(domain); err != nil {
			return nil, wire.ErrAfter
		}
	}
	return &store.DailyCursor{Domain: domain, Day: dmarcd.Day(day)}, nil
}
