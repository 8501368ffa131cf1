package dmarcd

import (
	"net/netip"
	"time"
)

// Sender is a known service or a network that sends mail as a domain.
type Sender struct {
	// Domain is 0 for all domains of a team.
	Domain DomainID
	// Key identifies the sender.
	Key string
	SeenDays
}

// SeenDays is a range of days, both ends included.
type SeenDays struct{ First, Last Day }

// And extends the range to include a day.
func (d SeenDays) And(day Day) SeenDays {
	return SeenDays{First: min(d.First, day), Last: max(d.Last, day)}
}

// ReverseName is the name of a source address. All teams share it: it comes from DNS.
type ReverseName struct {
	Addr netip.Addr
	// Name is the verified reverse name, "" if there is none.
	Name string
	// CheckedAt is the time of the lookup.
	CheckedAt time.Time
}
