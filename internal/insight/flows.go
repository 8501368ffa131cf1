package insight

import (
	"cmp"
	"slices"

	"github.com/dmarcd/dmarcd/aggregate"
)

// Flow is how many messages of a sender went the same way.
type Flow struct {
	// Sender is the name of a known sender or network, or OtherSenders.
	Sender string
	// SPF and DKIM tell which of them passed, aligned.
	SPF, DKIM bool
	// Disposition is what receivers did: none, quarantine or reject.
	Disposition aggregate.Policy
	Messages    int64
}

// OtherSenders stands for all senders that are too small to be told apart.
const OtherSenders = "Other senders"

// maxFlowSenders is how many senders are told apart.
const maxFlowSenders = 8

// way is a Flow without its amount.
type way struct {
	sender      string
	spf, dkim   bool
	disposition aggregate.Policy
}

// Flows returns the amounts from sender to authentication to what receivers did, the
// largest first, with the small senders put together: of the source that the query
// names by Group and Key, or of all mail.
func (m *Mail) Flows(q Query) []Flow {
	rows := m.of(q)
	large := m.largest(rows)
	amounts := make(map[way]int64)
	for _, r := range rows {
		w := way{OtherSenders, r.SPF, r.DKIM, r.Disposition}
		if name, ok := large[r.network]; ok {
			w.sender = name
		}
		amounts[w] += r.Count
	}
	flows := make([]Flow, 0, len(amounts))
	for w, messages := range amounts {
		if messages > 0 {
			flows = append(flows, Flow{Sender: w.sender, SPF: w.spf, DKIM: w.dkim, Disposition: w.disposition, Messages: messages})
		}
	}
	slices.SortFunc(flows, func(a, b Flow) int {
		return cmp.Or(cmp.Compare(b.Messages, a.Messages), cmp.Compare(a.Sender, b.Sender),
			compareBools(a.SPF, b.SPF), compareBools(a.DKIM, b.DKIM), cmp.Compare(a.Disposition, b.Disposition))
	})
	return flows
}

// largest returns the names of the senders that are told apart, by their keys. One
// more than that many is told apart too: it would stand alone among the others.
func (m *Mail) largest(rows []row) map[string]string {
	senders := m.group(GroupNetwork, rows)
	slices.SortFunc(senders, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Counts.Total(), a.Counts.Total()), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key))
	})
	if len(senders) > maxFlowSenders+1 {
		senders = senders[:maxFlowSenders]
	}
	names := make(map[string]string, len(senders))
	for _, s := range senders {
		names[s.Key] = s.Name
	}
	return names
}

// compareBools puts true first.
func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
