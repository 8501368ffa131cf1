package dnscheck

import (
	_ "embed" // for the catalogue
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"

	"github.com/dmarcd/dmarcd"
)

// Entry describes one type of finding, before values are filled in.
type Entry struct {
	// ID is the stable name of the type, such as spf.too_many_lookups.
	ID    string
	Level dmarcd.Level
	// Points is the number of points a finding of this type adds to the grade.
	Points int
	// RFC is the specification and its section.
	RFC string
	// What, Why and Fix contain {placeholders}. Fix ends with a colon if the exact record
	// to publish follows.
	What, Why, Fix string
}

// catalogueText is the text of the catalogue.
//
//go:embed catalogue.toml
var catalogueText string

// catalogue contains each type of finding once, by part.
var catalogue = sync.OnceValue(func() []Entry {
	var read struct{ Finding []Entry }
	if _, err := toml.Decode(catalogueText, &read); err != nil {
		panic(err) // it is built in
	}
	return read.Finding
})

// findEntry returns the entry with that id. It panics on an unknown id, which is a bug in
// this package.
func findEntry(id string) Entry {
	all := catalogue()
	i := slices.IndexFunc(all, func(e Entry) bool { return e.ID == id })
	if i < 0 {
		panic("dnscheck: the catalogue has no finding " + id)
	}
	return all[i]
}

// words maps the placeholders of an entry to their values.
type words map[string]string

// fill replaces the {placeholders} of text in one pass, so braces in values have no
// meaning. Placeholders without a value are left unchanged. The sign of a value that was cut ends
// a sentence.
func fill(text string, w words) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{")
		b.WriteString(before)
		if !found {
			return strings.ReplaceAll(b.String(), "….", "…")
		}
		name, after, closed := strings.Cut(rest, "}")
		word, known := w[name]
		if !closed || !known {
			b.WriteString("{")
			text = rest
			continue
		}
		b.WriteString(quotable(word))
		text = after
	}
}

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

// weight returns the urgency of a finding among findings of the same level.
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
