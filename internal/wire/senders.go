package wire

import "github.com/dmarcd/dmarcd"

// Sender is an item of /insights/senders: a sender, or another value that mail is grouped by,
// with its counts.
type Sender struct {
	// Key identifies the item in its group, Name is for display.
	Key  string `json:"key"`
	Name string `json:"name"`
	// Detail is additional information for display.
	Detail *string `json:"detail"`
	Counts
	// FirstDay and LastDay are the days of the first and last report in the period. FirstSeen and
	// LastSeen cover all time; they are null unless the item is a sender.
	FirstDay  string  `json:"first_day"`
	LastDay   string  `json:"last_day"`
	FirstSeen *string `json:"first_seen"`
	LastSeen  *string `json:"last_seen"`
	// Class is the relation of the sender to the domain, Evidence the reasons.
	Class    dmarcd.Class `json:"class"`
	Evidence []string     `json:"evidence"`
	// Cause is the reason why most of its failing messages fail, Fix the remedy.
	Cause *string `json:"cause"`
	Fix   *string `json:"fix"`
}

// NewSender returns the shape of a row. seen is nil unless it is a sender.
func NewSender(key, name, detail string, c dmarcd.Counts, first, last dmarcd.Day, seen *dmarcd.SeenDays) Sender {
	s := Sender{
		Key: key, Name: name, Detail: optionalText(detail), Counts: newCounts(c),
		FirstDay: first.String(), LastDay: last.String(), Class: dmarcd.ClassUnknown, Evidence: []string{},
	}
	if seen != nil {
		s.FirstSeen, s.LastSeen = optionalText(seen.First.String()), optionalText(seen.Last.String())
	}
	return s
}

// Daily holds the counts of one day.
type Daily struct {
	Day    string  `json:"day"`
	Domain *string `json:"domain"` // null for all domains of the team together
	Counts
	// Classes divides the messages by the class of their sender, nil unless it is asked for.
	Classes *Classes `json:"classes,omitempty"`
}

// Classes are the messages of a day by the class of their sender. Those of services count as yours.
// They add up to all messages of the day.
type Classes struct {
	YoursPassing int64 `json:"yours_passing"`
	YoursFailing int64 `json:"yours_failing"`
	Forwarded    int64 `json:"forwarded"`
	Spoofed      int64 `json:"spoofed"`
	Unknown      int64 `json:"unknown"`
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
