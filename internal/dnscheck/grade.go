package dnscheck

import "github.com/dmarcd/dmarcd"

// grades holds the scale: a grade is given up to a number of points. More than the
// last is an F.
var grades = []struct {
	grade  string
	points int
}{{"A+", 0}, {"A", 10}, {"B", 20}, {"C", 40}, {"D", 60}, {"E", 84}}

// worstGrade is for all that is worse.
const worstGrade = "F"

// grade returns the grade for what was found. A sort of finding costs its points
// once, however often it was found.
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

// next returns the finding that is best mended next: the one that costs most, of
// equals the most serious; nil where nothing is to be mended.
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
