package wire

import "github.com/dmarcd/dmarcd"

// Source is a sender with its counts.
type Source struct {
	// Key identifies the source in its group, Name is for display.
	Key  string `json:"key"`
	Name string `json:"name"`
	// Detail is additional information for display.
	Detail *string `json:"detail"`
	Counts
	// FirstDay and LastDay are the begin of the first and last report in the period, FirstSeen
	// and LastSeen the same over all time, for senders only, else null.
	FirstDay  string  `json:"first_day"`
	LastDay   string  `json:"last_day"`
	FirstSeen *string `json:"first_seen"`
	LastSeen  *string `json:"last_seen"`
	// Class is the relation of the source to the domain, Evidence the reasons.
	Class    dmarcd.Class `json:"class"`
	Evidence []string     `json:"evidence"`
	// Cause is why most of its failing messages fail, Fix how to resolve it.
	Cause *string `json:"cause"`
	Fix   *string `json:"fix"`
}

// NewSource returns the shape of a source, which is a sender if seen is not nil.
func NewSource(key, name, detail string, c dmarcd.Counts, first, last dmarcd.Day, seen *dmarcd.SeenDays) Source {
	s := Source{
		Key: key, Name: name, Detail: optionalText(detail), Counts: newCounts(c),
		FirstDay: first.String(), LastDay: last.String(), Class: dmarcd.ClassUnknown, Evidence: []string{},
	}
	if seen != nil {
		s.FirstSeen, s.LastSeen = optionalText(seen.First.String()), optionalText(seen.Last.String())
	}
	return s
}
