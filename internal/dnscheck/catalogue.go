package dnscheck

import (
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// Entry is one sort of finding: all that can be said before a domain is looked at.
type Entry struct {
	// ID names the sort, such as spf.too-many-lookups. It is stable.
	ID    string
	Level dmarcd.Level
	// Points is what a finding of this sort costs in the grade.
	Points int
	// RFC names the text that says so, with its section.
	RFC string
	// What, Why and Fix hold {names} in the place of what is found. Fix ends in a
	// colon where the exact record to publish follows.
	What, Why, Fix string
}

// Catalogue returns every sort of finding, in the order of the parts.
func Catalogue() []Entry { return slices.Concat(catalogue...) }

// catalogue holds every sort of finding once, by part.
var catalogue = [][]Entry{
	domainEntries, dmarcEntries, dmarcTagEntries, destinationEntries, parkedEntries,
	spfEntries, spfAdviceEntries, dkimEntries, mxEntries,
	mtastsEntries, tlsrptEntries, daneEntries, dnssecEntries, bimiEntries,
}

// findEntry returns the entry with that id. An id that is not in the catalogue is
// a mistake in this package, which a test that provokes the finding shows.
func findEntry(id string) Entry {
	for _, part := range catalogue {
		if i := slices.IndexFunc(part, func(e Entry) bool { return e.ID == id }); i >= 0 {
			return part[i]
		}
	}
	panic("dnscheck: the catalogue has no finding " + id)
}

// words are what stands in the place of the {names} of an entry.
type words map[string]string

// fill puts words into a text, in one pass: braces in what is filled in mean
// nothing. Names that have no word stay.
func fill(text string, w words) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{")
		b.WriteString(before)
		if !found {
			return b.String()
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
