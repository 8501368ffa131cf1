package dnscheck

import (
	"math"

	"github.com/dmarcd/dmarcd"
)

// grade returns the grade for the findings. Each type of finding counts once.
func grade(findings []dmarcd.Finding) string {
	counted := map[string]bool{}
	points := 0
	for _, f := range findings {
		if !counted[f.ID] {
			counted[f.ID] = true
			points += f.Points
		}
	}
	return dmarcd.GradeOf(points)
}

// domainMissing is the finding to fix first: the name may be misspelt.
const domainMissing = "domain.missing"

// weight is the urgency of a finding among those of its level.
func weight(f dmarcd.Finding) int {
	if f.ID == domainMissing {
		return math.MaxInt
	}
	return f.Points
}

// next returns the finding to fix next: that the domain is missing, else the one with most
// points, then the most severe; nil if there is nothing to fix.
func next(findings []dmarcd.Finding) *dmarcd.Finding {
	var best *dmarcd.Finding
	for i, f := range findings {
		if f.Fix != "" && f.Level != dmarcd.LevelGood && f.Points > 0 && (best == nil || weight(f) > weight(*best)) {
			best = &findings[i]
		}
	}
	if best == nil {
		return nil
	}
	return new(*best)
}
