package insight

import (
	"cmp"
	"context"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
)

// Flow counts messages of a sender with the same authentication result and disposition.
type Flow struct {
	// Sender is the name of a known sender or network, or OtherSenders.
	Sender string
	// Key is the key of the sender among networks, "" for OtherSenders.
	Key string
	// SPF and DKIM are true if they pass with alignment.
	SPF, DKIM bool
	// Disposition is none, quarantine or reject, as receivers applied it.
	Disposition aggregate.Policy
	Messages    int64
}

// OtherSenders is the name of all senders beyond the largest.
const OtherSenders = "Other senders"

// maxFlowSenders limits the senders with flows of their own.
const maxFlowSenders = 8

// Flows returns the amounts from sender to authentication to what receivers did, the
// largest first, with the small senders put together: of the row that the query
// names by Group and Key, or of all mail. The caller must not change them.
func (m *Mail) Flows(ctx context.Context, q Query) ([]Flow, error) {
	q = Query{Group: q.Group, Key: q.Key}
	return answered(m, "flows", q, func() ([]Flow, error) { return m.listFlows(ctx, q) })
}

func (m *Mail) listFlows(ctx context.Context, q Query) ([]Flow, error) {
	if err := m.count(ctx); err != nil {
		return nil, err
	}
	of := m.senderEntries(m.tally.sums)
	if q.Key != "" {
		chosen, err := m.choose(ctx, q)
		if err != nil {
			return nil, err
		}
		of = chosen.entries(m, GroupSender)
	}
	senders := of.entries
	slices.SortFunc(senders, largestFirst)
	shown := len(senders)
	if shown > maxFlowSenders+1 { // one more would stand alone among the others
		shown = maxFlowSenders
	}
	var flows []Flow
	for _, s := range senders[:shown] {
		flows = appendFlows(flows, s.Name, s.Key, s.sum)
	}
	others := of.rest
	for _, s := range senders[shown:] {
		others.merge(s.sum)
	}
	flows = appendFlows(flows, OtherSenders, "", &others)
	slices.SortStableFunc(flows, func(a, b Flow) int {
		return cmp.Or(cmp.Compare(b.Messages, a.Messages), cmp.Compare(a.Sender, b.Sender))
	})
	return flows, nil
}

func appendFlows(flows []Flow, sender, key string, of *sum) []Flow {
	for o, messages := range of.messages {
		outcome := dmarcd.Outcome(o)
		if messages > 0 {
			flows = append(flows, Flow{
				Sender: sender, Key: key, SPF: outcome.SPF(), DKIM: outcome.DKIM(), Disposition: outcome.Disposition(), Messages: messages,
			})
		}
	}
	return flows
}
