package api

import (
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// The words of the filters of listPostures.
var (
	posturePolicies = []string{"none", "quarantine", "reject", "missing", "unknown"}
	postureGrades   = []string{"A+", "A", "B", "C", "D", "E", "F", "unknown"}
	postureStages   = []string{string(dmarcd.StageNone), string(dmarcd.StageMonitoring), string(dmarcd.StagePartial), string(dmarcd.StageEnforced), string(dmarcd.StageParked), "unknown"}
	postureSorts    = []string{"name", "-name", "grade", "-grade", "policy", "-policy", "stage", "-stage", "messages", "-messages", "passing", "-passing"}
)

// listPostures lists the domains with their stage, next action and counts. It reads stored postures,
// so that a page of 1,000 domains is cheap.
func (a *API) listPostures(c *call) error {
	limit, position := c.query.part()
	filter := service.PostureFilter{
		Search: c.query.text("q"), Policy: word(c.query, "policy", posturePolicies...), Grade: word(c.query, "grade", postureGrades...),
		Stage: word(c.query, "stage", postureStages...), Sort: word(c.query, "sort", postureSorts...), Limit: limit + 1,
	}
	if position != "" {
		key, text, err := wire.ParsePosition(position)
		name, sorted := strings.CutPrefix(text, filter.Sort+" ")
		if _, invalid := dmarcd.ParseName(name); err != nil || invalid != nil || !sorted {
			c.query.fail("after", wire.ErrAfter)
		}
		filter.After = &service.PosturePosition{Key: key, Name: name}
	}
	team := tagged(c)
	if err := c.reserveRows(limit); err != nil {
		return err
	}
	list, err := team.Postures(c.r.Context(), filter)
	if err != nil {
		return err
	}
	reportDomain := a.options.Service.ReportDomain()
	return writePage(c, wire.NewPage(list, limit, func(row service.PostureRow) string {
		return wire.FormatPosition(row.Position.Key, filter.Sort+" "+row.Name)
	}, func(row service.PostureRow) wire.DomainPosture {
		return wire.NewDomainPosture(row.Domain, row.Posture, row.Tags, reportDomain)
	}))
}
