package dnscheck

import "github.com/dmarcd/dmarcd"

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

// next returns the finding to fix next: the one with most points, then the most severe;
// nil if there is nothing to fix.
func next(findings []dmarcd.Finding) *dmarcd.Finding {
	var best *dmarcd.Finding
	for i, f := range findings {
		if f.Fix != "" && f.Level != dmarcd.LevelGood && f.Points > 0 && (best == nil || f.Points > best.Points) {
			best = &findings[i]
		}
	}
	if best == nil {
		return nil
	}
	return new(*best)
}
