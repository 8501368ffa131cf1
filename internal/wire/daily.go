package wire

import "github.com/dmarcd/dmarcd"

// Daily holds the counts of one day.
type Daily struct {
	Day    string  `json:"day"`
	Domain *string `json:"domain"` // null for all domains of the team together
	Counts
}

// NewDaily returns the shape of a day's counts, for a domain, or for the team if domain is "".
func NewDaily(day dmarcd.Day, domain string, c dmarcd.Counts) Daily {
	return Daily{Day: day.String(), Domain: optionalText(domain), Counts: newCounts(c)}
}

// Counts are numbers of messages.
type Counts struct {
	Summary
	// Delivered, Quarantined and Rejected are what receivers did with the messages.
	Delivered   int64 `json:"delivered"`
	Quarantined int64 `json:"quarantined"`
	Rejected    int64 `json:"rejected"`
	// DKIM and SPF are the messages that passed each, aligned.
	DKIM int64 `json:"dkim"`
	SPF  int64 `json:"spf"`
	// Unverified are the messages of reports with an unverified sender.
	Unverified int64 `json:"unverified"`
}

func newCounts(c dmarcd.Counts) Counts {
	return Counts{
		Summary:     NewSummary(c.Summary),
		Delivered:   max(0, c.Total()-c.Quarantined-c.Rejected), // saturated sums may not add up
		Quarantined: c.Quarantined, Rejected: c.Rejected, DKIM: c.DKIM, SPF: c.SPF, Unverified: c.Unverified,
	}
}
