package insight

import (
	"context"

	"github.com/dmarcd/dmarcd/internal/rollup"
)

// maxOfAddresses limits the addresses of SendersOf.
const maxOfAddresses = 10_000

// SendersOf returns the sender of each address, by its text: the one of most of its messages. Only Key
// and Name of the rows are set. Addresses without mail, and those after the first maxOfAddresses, are
// missing.
func (m *Mail) SendersOf(ctx context.Context, addresses []string) (map[string]Row, error) {
	if err := m.recognize(ctx); err != nil {
		return nil, err
	}
	of := &ofAddresses{grouping: m.grouping(GroupSender), messages: make(map[string]map[senderIndex]int64)}
	for _, text := range addresses {
		if len(of.messages) < maxOfAddresses {
			of.messages[text] = nil
		}
	}
	if err := m.scan(ctx, m.days, nil, of); err != nil {
		return nil, err
	}
	found := make(map[string]Row, len(of.messages))
	for text, senders := range of.messages {
		if len(senders) == 0 {
			continue
		}
		at, most := senderIndex(0), int64(-1)
		for sender, messages := range senders {
			if messages > most || messages == most && sender < at {
				at, most = sender, messages
			}
		}
		found[text] = Row{Key: m.whole.senders.keys[at], Name: m.whole.senderName(m.whole.senders.list[at])}
	}
	return found, nil
}

// ofAddresses gathers the messages of some addresses by sender.
type ofAddresses struct {
	*grouping
	messages map[string]map[senderIndex]int64
	// texts caches the texts of the addresses of a block.
	texts map[uint32]string
}

func (a *ofAddresses) begin(b *rollup.Block) {
	a.texts = make(map[uint32]string)
	a.grouping.begin(b)
}

func (a *ofAddresses) add(share *rollup.Share, records []rollup.Record) {
	for i := range records {
		text, known := a.texts[records[i].Address]
		if !known {
			text = rollup.AddressText(a.block.Addresses.At(records[i].Address))
			a.texts[records[i].Address] = text
		}
		senders, wanted := a.messages[text]
		if !wanted {
			continue
		}
		if senders == nil {
			senders = make(map[senderIndex]int64)
			a.messages[text] = senders
		}
		senders[a.sender(share, &records[i])] += records[i].Count
	}
}
