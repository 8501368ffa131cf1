package insight

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/senders"
)

// maxNamed is how many addresses are looked for by name, those with the most messages.
const maxNamed = 2000

// recognise finds out who sent the mail.
func (s *Service) recognise(ctx context.Context, m *Mail) error {
	const lookup = 50 // is that much more work than to add up a record
	split(len(m.addresses), len(m.addresses)*lookup, func(from, to int) {
		for i := from; i < to; i++ {
			m.addresses[i].origin = s.atlas.Locate(m.addresses[i].addr)
		}
	})
	if err := s.nameAddresses(ctx, m); err != nil {
		return err
	}
	for i := range m.addresses {
		a := &m.addresses[i]
		if sender, ok := s.catalogue.Identify(senders.Clues{Host: a.host, Network: a.origin.Network.Number}); ok {
			m.homes[i].sender = m.networks.addSender(sender)
			continue
		}
		m.homes[i].system = m.networks.addSystem(a)
	}
	for i := range m.sent.Identities {
		if sender, ok := s.catalogue.Identify(senders.Clues{Domains: passed(&m.sent.Identities[i])}); ok {
			m.signers[i] = m.networks.addSender(sender)
		}
	}
	return nil
}

// nameAddresses gives addresses their names, as far as they are known and needed.
func (s *Service) nameAddresses(ctx context.Context, m *Mail) error {
	byMessages := m.largestAddresses(maxNamed)
	if len(byMessages) == 0 {
		return nil
	}
	asked := make([]netip.Addr, len(byMessages))
	for i, at := range byMessages {
		asked[i] = m.addresses[at].addr
	}
	names, err := s.names.Known(ctx, asked)
	for _, at := range byMessages {
		m.addresses[at].host = names[m.addresses[at].addr]
	}
	return err
}

// largestAddresses returns the places of the addresses with the most messages.
func (m *Mail) largestAddresses(n int) []int {
	var messages []int64
	for i := range m.addresses {
		if m.addresses[i].isNamed() {
			messages = append(messages, m.addresses[i].messages)
		}
	}
	least := int64(0)
	if len(messages) > n { // only some are worth comparing further
		slices.Sort(messages)
		least = messages[len(messages)-n]
	}
	var places []int
	for i := range m.addresses {
		if m.addresses[i].isNamed() && m.addresses[i].messages >= least {
			places = append(places, i)
		}
	}
	slices.SortFunc(places, func(a, b int) int {
		return cmp.Or(cmp.Compare(m.addresses[b].messages, m.addresses[a].messages), m.addresses[a].addr.Compare(m.addresses[b].addr))
	})
	return places[:min(len(places), n)]
}

// isNamed tells whether it may have a name.
func (a *address) isNamed() bool { return a.addr.IsValid() && !a.merged }

// passed returns the domains that passed DKIM or SPF. One that did not says nothing:
// anybody can write it.
func passed(identities *dmarcd.SentIdentities) []string {
	var domains []string
	for _, r := range identities.DKIM {
		if r.Result == aggregate.ResultPass {
			domains = append(domains, r.Domain)
		}
	}
	for _, r := range identities.SPF {
		if r.Result == aggregate.ResultPass {
			domains = append(domains, r.Domain)
		}
	}
	return domains
}
