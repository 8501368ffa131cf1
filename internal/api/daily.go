package api

import (
	"math"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// listDaily lists the counts by day, of one domain, each domain or the team.
func (a *API) listDaily(c *call) error {
	limit, place, err := readRows(c)
	if err != nil {
		return err
	}
	var after *service.DailyCursor
	if place != "" {
		if after, err = parseDailyCursor(place); err != nil {
			return err
		}
	}
	asked, err := readCounts(c, "domain")
	if err != nil {
		return err
	}
	found, err := readDaily(c, asked, after, limit+1)
	if err != nil {
		return err
	}
	return c.writeCacheable(wire.NewPage(found, limit, formatDailyCursor, func(d service.DailyCounts) wire.Daily {
		return wire.NewDaily(d.Day, d.Domain, d.Counts)
	}))
}

func readDaily(c *call, asked counts[string], after *service.DailyCursor, limit int) ([]service.DailyCounts, error) {
	ctx, days := c.r.Context(), asked.days
	team, err := tagged(c)
	if err != nil {
		return nil, err
	}
	if asked.domain == "" && asked.by == "domain" {
		var from service.DailyCursor
		if after != nil {
			from = *after
		}
		return team.DailyByDomain(ctx, days, from, limit)
	}
	// These lists are ordered by day alone: continue with the rest of the range.
	if after != nil && (days.From == nil || *days.From <= after.Day) {
		days.From = new(after.Day + 1)
	}
	if asked.domain != "" {
		return team.DomainDaily(ctx, asked.domain, days, limit)
	}
	return team.Daily(ctx, days, limit)
}

func formatDailyCursor(d service.DailyCounts) string { return wire.FormatPlace(int64(d.Day), d.Domain) }

func parseDailyCursor(text string) (*service.DailyCursor, error) {
	day, domain, err := wire.ParsePlace(text)
	if err != nil || day < math.MinInt32 || day >= math.MaxInt32 {
		return nil, wire.ErrAfter
	}
	if domain != "" {
		if domain, err = dmarcd.ParseName(domain); err != nil {
			return nil, wire.ErrAfter
		}
	}
	return &service.DailyCursor{Domain: domain, Day: dmarcd.Day(day)}, nil
}
