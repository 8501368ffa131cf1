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
	// FirstDay and LastDay are when the first and the last report of it begin.
	FirstDay string `json:"first_day"`
	LastDay  string `json:"last_day"`
}

// NewSource returns the shape of a source.
func NewSource(key, name, detail string, c dmarcd.Counts, first, last dmarcd.Day) Source {
	return Source{
		Key: key, Name: name, Detail: optionalText(detail), Summary: NewSummary(c.Summary),
		Delivered:   max(0, c.Total()-c.Quarantined-c.Rejected), // sums that reached their end may not fit
		Quarantined: c.Quarantined, Rejected: c.Rejected, DKIM: c.DKIM, SPF: c.SPF, Unverified: c.Unverified,
		FirstDay: first.String(), LastDay: last.String(),
	}
}
