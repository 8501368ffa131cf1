package dmarcd

// Sender is who sends mail as a domain: a known service, or a network.
type Sender struct {
	// Domain is 0 for all domains of a team.
	Domain DomainID
	// Key names the sender.
	Key string
	SeenDays
}

// SeenDays are the first and the last day of something.
type SeenDays struct{ First, Last Day }

// And returns the days with one more.
func (d SeenDays) And(day Day) SeenDays {
	return SeenDays{First: min(d.First, day), Last: max(d.Last, day)}
}
