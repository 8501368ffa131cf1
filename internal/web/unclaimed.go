package web

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// stateUnclaimed is in the filter beside the states of reports.
const stateUnclaimed = string(dmarcd.Unclaimed)

// maxClaims limits the domains of the team that are compared with those of reports, and the
// lookups of single ones: a report may name any domain.
const maxClaims = 2000

// unclaimed returns the domains of reports of which nothing is counted, because the team has
// neither the domain nor a parent of it. One with a subdomain that the team has is left out: some
// records of its reports may be counted.
func (c *call) unclaimed(reports ...dmarcd.Report) (map[string]bool, error) {
	team := c.account.InTeam() // a tag would hide domains
	owned, found := map[string]bool{}, map[string]bool{}
	for _, r := range reports {
		name := r.Domain
		for ; name != "" && !owned[name]; _, name, _ = strings.Cut(name, ".") {
			if _, known := owned[name]; known {
				continue
			}
			if len(owned) == maxClaims {
				break
			}
			_, err := team.Domain(c.r.Context(), name)
			if err != nil && !errors.Is(err, dmarcd.ErrNotFound) {
				return nil, err
			}
			if owned[name] = err == nil; owned[name] {
				break
			}
		}
		if name == "" && r.Domain != "" {
			found[r.Domain] = true
		}
	}
	if len(found) == 0 {
		return found, nil
	}
	domains, err := team.Domains(c.r.Context(), "", maxClaims)
	maps.DeleteFunc(found, func(name string, _ bool) bool {
		return slices.ContainsFunc(domains, func(d dmarcd.Domain) bool { return strings.HasSuffix(d.Name, "."+name) })
	})
	return found, err
}

// isUnclaimed reports whether nothing of a report is counted for that reason alone. A TLS report
// may be about several domains.
func isUnclaimed(r dmarcd.Report, domains map[string]bool) bool {
	return domains[r.Domain] && r.State == dmarcd.ReportCounted && (r.Kind != dmarcd.KindTLS || r.Records <= 1)
}
