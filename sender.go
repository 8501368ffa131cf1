package dmarcd

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
