package zone

import (
	"sync/atomic"

	mdns "github.com/miekg/dns"
)

// Stats count what a server did since its start.
type Stats struct {
	// Queries by result, those of the limits and transfers among them.
	Answered, NoData, NoName, Refused, Failed uint64
	// Limited UDP answers: truncated, and left out. Connections are those closed at a limit.
	Truncated, Dropped, Connections uint64
	// Transfers that were sent: whole, and incremental. Rejected ones are unsigned or have a wrong key.
	Whole, Incremental, Rejected uint64
	// NotifyFailures counts NOTIFY messages without an answer, or with an error.
	NotifyFailures uint64
}

// statistics are the counters of Stats.
type statistics struct {
	answered, noData, noName, denied, failed atomic.Uint64
	truncated, dropped, connections          atomic.Uint64
	whole, incremental, rejected             atomic.Uint64
	notifyFailures                           atomic.Uint64
}

// Stats returns the counters.
func (s *Server) Stats() Stats {
	c := &s.stats
	return Stats{
		Answered: c.answered.Load(), NoData: c.noData.Load(), NoName: c.noName.Load(), Refused: c.denied.Load(), Failed: c.failed.Load(),
		Truncated: c.truncated.Load(), Dropped: c.dropped.Load(), Connections: c.connections.Load(),
		Whole: c.whole.Load(), Incremental: c.incremental.Load(), Rejected: c.rejected.Load(),
		NotifyFailures: c.notifyFailures.Load(),
	}
}

// count counts a query by the code of its answer; empty is one without records.
func (c *statistics) count(rcode int, empty bool) {
	switch {
	case rcode == mdns.RcodeSuccess && empty:
		c.noData.Add(1)
	case rcode == mdns.RcodeSuccess:
		c.answered.Add(1)
	case rcode == mdns.RcodeNameError:
		c.noName.Add(1)
	case rcode == mdns.RcodeRefused:
		c.denied.Add(1)
	default:
		c.failed.Add(1)
	}
}

// limited counts a decision of the limit, and returns it.
func (c *statistics) limited(d decision) decision {
	switch d {
	case shortened:
		c.truncated.Add(1)
	case silenced:
		c.dropped.Add(1)
	case answered:
	}
	return d
}
