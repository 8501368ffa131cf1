package wire

import "github.com/dmarcd/dmarcd"

// Source is who sent mail, with what was counted of it.
type Source struct {
	// Key names the source among those of its group, Name is for people.
	Key  string `json:"key"`
	Name string `json:"name"`
	// Detail is what else is known of it.
	Detail *string `json:"detail"`
	Summary
	// Delivered, Quarantined and Rejected are what receivers did with the messages.
	Delivered   int64 `json:"delivered"`
	Quarantined int64 `json:"quarantined"`
	Rejected    int64 `json:"rejected"`
	// DKIM and SPF are the messages that passed each, aligned.
	DKIM int64 `json:"dkim"`
	SPF  int64 `json:"spf"`
	// Unverified are the messages of reports that nobody knows the sender of.
	Unverified int64 `json:"unverified"`
	// FirstDay and LastDay are when the first and the last report of it in the period
	// begin, FirstSeen and LastSeen the same over all time: of senders alone, else null.
	FirstDay  string  `json:"first_day"`
	LastDay   string  `json:"last_day"`
	FirstSeen *string `json:"first_seen"`
	LastSeen  *string `json:"last_seen"`
	// Class is what the source is to the domain, Evidence what that is concluded from.
	Class    dmarcd.Class `json:"class"`
	Evidence []string     `json:"evidence"`
	// Cause says why most of its failing messages fail, Fix what to do about it.
	Cause *string `json:"cause"`
	Fix   *string `json:"fix"`
}

// NewSource returns the shape of a source, which is a sender if seen is not nil.
func NewSource(key, name, detail string, c dmarcd.Counts, first, last dmarcd.Day, seen *dmarcd.SeenDays) Source {
	s := Source{
		Key: key, Name: name, Detail: optionalText(detail), Summary: NewSummary(c.Summary),
		Delivered:   max(0, c.Total()-c.Quarantined-c.Rejected), // sums that reached their end may not fit
		Quarantined: c.Quarantined, Rejected: c.Rejected, DKIM: c.DKIM, SPF: c.SPF, Unverified: c.Unverified,
		FirstDay: first.String(), LastDay: last.String(), Class: dmarcd.ClassUnknown, Evidence: []string{},
	}
	if seen != nil {
		s.FirstSeen, s.LastSeen = optionalText(seen.First.String()), optionalText(seen.Last.String())
	}
	return s
}
