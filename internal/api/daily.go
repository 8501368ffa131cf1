package api

import (
	"math"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// listDaily lists the counts by day, of one domain, each domain or the team.
func (a *API) listDaily(c *call) error {
	limit, position := c.query.part()
	var after service.DailyCursor
	if position != "" {
		var err error
		after, err = parseDailyCursor(position)
		c.query.fail(err)
	}
	days, by, domain, team := c.query.days(), word(c.query, "by", "domain"), c.query.domain(), tagged(c)
	if err := c.reserveRows(limit); err != nil {
		return err
	}
	byDomain := by == "domain" && domain == ""
	if !byDomain && position != "" && (days.From == nil || *days.From <= after.Day) {
		// These lists are ordered by day alone: continue with the rest of the range.
		days.From = new(after.Day + 1)
	}
	var found []service.DailyCounts
	var err error
	switch {
	case byDomain:
		found, err = team.DailyByDomain(c.r.Context(), days, after, limit+1)
	case domain != "":
		found, err = team.DomainDaily(c.r.Context(), domain, days, limit+1)
	default:
		found, err = team.Daily(c.r.Context(), days, limit+1)
	}
	if err != nil {
		return err
	}
	return c.writeCacheable(wire.NewPage(found, limit, formatDailyCursor, func(d service.DailyCounts) wire.Daily {
		return wire.NewDaily(d.Day, d.Domain, d.Counts)
	}))
}

func formatDailyCursor(d service.DailyCounts) string {
	return wire.FormatPosition(int64(d.Day), d.Domain)
}

func parseDailyCursor(text string) (service.DailyCursor, error) {
	day, domain, err := wire.ParsePosition(text)
	if err != nil || day < math.MinInt32 || day >= math.MaxInt32 {
		return service.DailyCursor{}, wire.ErrAfter
	}
	if domain != "" {
		if domain, err = dmarcd.ParseName(domain); err != nil {
			return service.DailyCursor{}, wire.ErrAfter
		}
	}
	return service.DailyCursor{Domain: domain, Day: dmarcd.Day(day)}, nil
}
