package dnscheck

import "github.com/dmarcd/dmarcd"

// grades is the scale: each grade with its maximum points. More points are an F.
var grades = []struct {
	grade  string
	points int
}{{"A+", 0}, {"A", 10}, {"B", 20}, {"C", 40}, {"D", 60}, {"E", 84}}

// worstGrade is below the scale.
const worstGrade = "F"

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
	for _, g := range grades {
		if points <= g.points {
			return g.grade
		}
	}
	return worstGrade
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
	chosen := *best
	return &chosen
}
