package insight

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/senders"
)

// maxNamed is how many addresses are looked for by name, those with the most messages.
const maxNamed = 2000

// recognise finds out who sent each record.
func (s *Service) recognise(ctx context.Context, m *Mail) error {
	for _, a := range m.addresses {
		a.origin = s.atlas.Locate(a.addr)
	}
	if err := s.nameAddresses(ctx, m.addresses); err != nil {
		return err
	}
	for _, a := range m.addresses {
		if sender, ok := s.catalogue.Identify(senders.Clues{Host: a.host, Network: a.origin.Network.Number}); ok {
			a.sender = m.addSender(sender)
		}
	}
	signed := make(map[*dmarcd.SentIdentities]string)
	for i := range m.rows {
		r := &m.rows[i]
		r.network = r.from.sender
		if r.network != "" {
			continue
		}
		by, looked := signed[r.Identities]
		if !looked {
			if sender, ok := s.catalogue.Identify(senders.Clues{Domains: passed(r.Identities)}); ok {
				by = m.addSender(sender)
			}
			signed[r.Identities] = by
		}
		if r.network = by; by == "" {
			r.network = m.system(r.from)
		}
	}
	return nil
}

// nameAddresses gives addresses their names, as far as they are known and needed.
func (s *Service) nameAddresses(ctx context.Context, all []*address) error {
	byMessages := slices.SortedFunc(slices.Values(all), func(a, b *address) int {
		return cmp.Or(cmp.Compare(b.messages, a.messages), cmp.Compare(a.text, b.text))
	})
	var asked []netip.Addr
	for _, a := range byMessages {
		if a.addr.IsValid() && len(asked) < maxNamed {
			asked = append(asked, a.addr)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	names, err := s.names.Known(ctx, asked)
	for _, a := range all {
		a.host = names[a.addr]
	}
	return err
}

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

// addSender returns the key of a known sender.
func (m *Mail) addSender(sender senders.Sender) string {
	m.networks[sender.Name] = network{name: sender.Name, kind: sender.Kind}
	return sender.Name
}

// system returns the key of the autonomous system of an address.
func (m *Mail) system(a *address) string {
	if a.system == "" {
		a.system = notTold
		if of := a.origin.Network; of.Number != 0 {
			a.system = "AS" + strconv.FormatUint(uint64(of.Number), 10)
			m.networks[a.system] = network{name: cmp.Or(of.Name, a.system), number: of.Number}
		}
	}
	return a.system
}
