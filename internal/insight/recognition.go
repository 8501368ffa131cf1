package insight

import (
	"cmp"
	"context"
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/rollup"
	"github.com/dmarcd/dmarcd/internal/senders"
)

// maxNamed is how many addresses are looked for by name, those with the most messages.
const maxNamed = 2000

// recognition is who sent some mail.
type recognition struct {
	service  *Service
	team     dmarcd.TeamID
	networks networks
	// homes are of addresses by their form, signers of domains. Some are remembered.
	homes   map[string]home
	signers map[string]networkPlace
	// hosts are the names of addresses, as far as they are known and needed.
	hosts map[string]string
	// sums are those of the networks, and all is the sum of them.
	sums []sum
	all  sum
	// days are those with mail.
	days map[dmarcd.Day]struct{}
}

// home returns where an address belongs to.
func (r *recognition) home(form string) home {
	found, known := r.homes[form]
	if !known {
		found = r.locate(form, 0)
		if len(r.homes) < maxRemembered {
			r.homes[strings.Clone(form)] = found
		}
	}
	return found
}

// locate returns where an address with so many messages belongs to by its network.
func (r *recognition) locate(form string, messages int64) home {
	addr := rollup.Address(form)
	origin := r.service.atlas.Locate(addr)
	found := home{system: r.networks.addSystem(origin, messages)}
	if sender, ok := r.service.catalogue.OfAddress(addr.Unmap()); ok {
		found.sender, found.certain = r.networks.addSender(sender), true
		return found
	}
	if sender, ok := r.service.catalogue.Identify(senders.Clues{Network: origin.Network.Number}); ok {
		found.sender = r.networks.addSender(sender)
	}
	return found
}

// signer returns the known sender that authenticated as one of the domains of an
// identity: a forwarder or list before others. A domain that did not pass says nothing:
// any sender can write it.
func (r *recognition) signer(identity *rollup.Identity) networkPlace {
	first := noNetwork
	consider := func(domain string) (relays bool) {
		at := r.ofDomain(domain)
		by := r.networks.list[at].sender
		relays = by != nil && by.Relays()
		if relays || first == noNetwork {
			first = at
		}
		return relays
	}
	for _, s := range identity.Signatures {
		if s.Passed() && consider(s.Domain) {
			return first
		}
	}
	for _, c := range identity.SPF {
		if c.Passed() && consider(c.Domain) {
			return first
		}
	}
	return first
}

func (r *recognition) ofDomain(domain string) networkPlace {
	at, known := r.signers[domain]
	if !known {
		if sender, ok := r.service.catalogue.Identify(senders.Clues{Domains: []string{domain}}); ok {
			at = r.networks.addSender(sender)
		}
		if len(r.signers) < maxRemembered {
			r.signers[strings.Clone(domain)] = at
		}
	}
	return at
}

// pairs gathers records by address and signer: which network they are of is known when
// the addresses with the most messages have their names. Those of pairs that are not
// listed are added to their networks at once.
type pairs struct {
	*recognition
	table *table
	rest  []sum // by network

	block    *rollup.Block
	signedBy []networkPlace // by identity
	last     []pair         // by address: most have one signer
	key      []byte
	// known are pairs of IPv4 addresses, by the address and the signer: a number is
	// found in a fraction of the time that a text takes.
	known nearby[pair]
}

// pair is an address with a signer. The network is set where it is not listed.
type pair struct {
	signer, network networkPlace
	slot            slot
}

func (m *Mail) newPairs() *pairs {
	return &pairs{table: m.newTable(MaxListed), recognition: &recognition{
		service: m.service, team: m.team.ID(), networks: newNetworks(), homes: make(map[string]home), signers: make(map[string]networkPlace),
		hosts: make(map[string]string), days: make(map[dmarcd.Day]struct{}),
	}}
}

func (p *pairs) begin(b *rollup.Block) {
	p.table.begin(func(key string, of *sum) {
		form, signer := splitPair(key)
		network := p.networks.of(p.home(form), signer)
		p.growRest()
		p.rest[network].merge(of)
		p.known.clear()
	})
	p.block = b
	p.signedBy = refill(p.signedBy, len(b.Identities), unsetNetwork)
	p.last = refill(p.last, b.Addresses.Len(), pair{signer: unsetNetwork})
	for i := range b.Shares {
		p.days[b.Shares[i].Day] = struct{}{}
	}
}

func (p *pairs) add(share *rollup.Share, records []rollup.Record) {
	for i := range records {
		r := &records[i]
		signer := &p.signedBy[r.Identity]
		if *signer == unsetNetwork {
			*signer = p.signer(&p.block.Identities[r.Identity])
		}
		of := &p.last[r.Address]
		if of.signer != *signer {
			*of = p.find(p.block.Addresses.At(r.Address), *signer)
		}
		p.table.add(of.slot, share, r)
		if of.slot&isUnlisted != 0 {
			p.rest[of.network].add(share, r)
		}
	}
}

func (p *pairs) find(form string, signer networkPlace) pair {
	number, isIPv4 := rollup.IPv4(form)
	if isIPv4 {
		if of, known := p.known.get(uint64(signer)<<32 | uint64(number)); known {
			return of
		}
	}
	p.key = binary.BigEndian.AppendUint32(append(p.key[:0], form...), uint32(signer))
	of := pair{signer: signer, slot: p.table.slot(string(p.key))}
	if of.slot&isUnlisted != 0 {
		of.network = p.networks.of(p.home(form), signer)
		p.growRest()
	}
	if isIPv4 && p.known.size() < maxRemembered {
		p.known.set(uint64(signer)<<32|uint64(number), of)
	}
	return of
}

// growRest makes room for all networks.
func (p *pairs) growRest() {
	p.rest = append(p.rest, make([]sum, max(len(p.networks.list)-len(p.rest), 0))...)
}

// splitPair returns what find made a key of.
func splitPair(key string) (form string, signer networkPlace) {
	end := len(key) - 4
	return key[:end], networkPlace(binary.BigEndian.Uint32([]byte(key[end:])))
}

// again makes it ready for the second scan, if one is needed.
func (p *pairs) again() bool {
	if !p.table.isFull() {
		return false
	}
	p.table = p.table.again()
	clear(p.rest)
	p.known.clear()
	return true
}

// address is an address with its messages.
type address struct {
	form     string
	messages int64
}

// foundAddresses are the addresses of pairs.
type foundAddresses struct {
	addresses []address
	homes     []home
	places    map[string]int // of an address, by its form
	of        []int          // the place of the address of a key
}

// found returns the addresses of all pairs.
func (p *pairs) found() foundAddresses {
	f := foundAddresses{places: make(map[string]int, len(p.table.keys)), addresses: make([]address, 0, len(p.table.keys)), of: make([]int, len(p.table.keys))}
	for at := 1; at < len(p.table.keys); at++ {
		form, _ := splitPair(p.table.keys[at])
		place, known := f.places[form]
		if !known {
			place = len(f.addresses)
			f.places[form] = place
			f.addresses = append(f.addresses, address{form: form})
		}
		addMessages(&f.addresses[place].messages, p.table.sums[at].total())
		f.of[at] = place
	}
	f.homes = make([]home, len(f.addresses))
	for place, a := range f.addresses {
		f.homes[place] = p.locate(a.form, a.messages)
	}
	return f
}

// finish adds up the networks, after the addresses that were found have their names in p.hosts.
func (p *pairs) finish(f foundAddresses) {
	for form, host := range p.hosts {
		home := &f.homes[f.places[form]]
		if home.certain {
			continue
		}
		if sender, ok := p.service.catalogue.Identify(senders.Clues{Host: host}); ok {
			home.sender = p.networks.addSender(sender)
		}
	}
	p.growRest()
	for at := 1; at < len(p.table.keys); at++ {
		_, signer := splitPair(p.table.keys[at])
		p.rest[p.networks.of(f.homes[f.of[at]], signer)].merge(&p.table.sums[at])
	}
	if len(p.homes) == 0 {
		p.homes = make(map[string]home, len(f.places))
	}
	for form, place := range f.places {
		p.homes[form] = f.homes[place]
	}
	p.sums = p.rest
	for i := range p.sums {
		p.all.merge(&p.sums[i])
	}
	p.table, p.rest = nil, nil
}

// mostMessages returns the addresses with the most messages, at least n if there are as
// many, sorted.
func mostMessages(addresses []address, n int) []address {
	if len(addresses) > n { // numbers are sorted in a fraction of the time
		messages := make([]int64, len(addresses))
		for i, a := range addresses {
			messages[i] = a.messages
		}
		slices.Sort(messages)
		least := messages[len(messages)-n]
		addresses = slices.DeleteFunc(addresses, func(a address) bool { return a.messages < least })
	}
	slices.SortFunc(addresses, func(a, b address) int {
		return cmp.Or(cmp.Compare(b.messages, a.messages), cmp.Compare(a.form, b.form))
	})
	return addresses
}

// hosts returns the names of the team's addresses with the most messages, by their forms.
func (s *Service) hosts(ctx context.Context, team dmarcd.TeamID, addresses []address) (map[string]string, error) {
	addresses = mostMessages(addresses, maxNamed)
	var addrs []netip.Addr
	forms := make(map[netip.Addr]string)
	for _, a := range addresses {
		if addr := rollup.Address(a.form); addr.IsValid() && len(addrs) < maxNamed {
			addrs = append(addrs, addr)
			forms[addr] = a.form
		}
	}
	if len(addrs) == 0 {
		return nil, nil
	}
	names, err := s.names.Known(ctx, team, addrs)
	if err != nil {
		return nil, err
	}
	hosts := make(map[string]string)
	for addr, name := range names {
		if name != "" {
			hosts[forms[addr]] = name
		}
	}
	return hosts, nil
}

// recognize finds out who sent the mail, with others that gather it in the same scan.
func (m *Mail) recognize(ctx context.Context, others ...gatherer) error {
	if m.whole != nil {
		if len(others) == 0 {
			return nil
		}
		return m.scanTables(ctx, nil, others...)
	}
	p := m.newPairs()
	if err := m.scanTables(ctx, nil, slices.Concat(others, []gatherer{p})...); err != nil {
		return err
	}
	var all foundAddresses
	m.inTurn(ctx, func() { all = p.found() })
	var err error
	m.inTurn(ctx, func() { p.hosts, err = m.service.hosts(ctx, m.team.ID(), all.addresses) })
	if err != nil {
		return err
	}
	m.inTurn(ctx, func() { p.finish(all) })
	m.whole = p.recognition
	return nil
}
