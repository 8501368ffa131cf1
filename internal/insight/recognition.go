package insight

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/rollup"
	"github.com/dmarcd/dmarcd/internal/senders"
)

// maxNamed limits the addresses whose names are looked up, those with the most messages.
const maxNamed = 2000

// recognition maps mail to senders: it has the links of each domain, and all networks and senders.
type recognition struct {
	service  *Service
	team     dmarcd.TeamID
	networks networks
	senders  senderList
	// origins caches the origin of each address by its form, signers the known sender of each
	// domain.
	origins map[string]addressOrigin
	signers map[string]networkIndex
	// hosts are the confirmed names of addresses that are known now.
	hosts map[string]string
	// domains are the links of each domain. one is set if all records belong to one domain.
	domains map[dmarcd.DomainID]*domainLinks
	one     *domainLinks
}

func (m *Mail) newRecognition() *recognition {
	r := &recognition{
		service: m.service, team: m.team.ID(), networks: newNetworks(), senders: senderList{byValue: make(map[sender]senderIndex), byKey: make(map[string]senderIndex)},
		origins: make(map[string]addressOrigin), signers: make(map[string]networkIndex), domains: make(map[dmarcd.DomainID]*domainLinks),
	}
	if m.domain != "" {
		r.one = newDomainLinks(&Domain{Name: m.domain})
		if len(m.about) > 0 {
			r.one = newDomainLinks(&m.about[0])
		}
		return r
	}
	for i := range m.about {
		r.domains[m.about[i].ID] = newDomainLinks(&m.about[i])
	}
	return r
}

// linksOf returns the links of the domain of a share.
func (r *recognition) linksOf(domain dmarcd.DomainID) *domainLinks {
	if r.one != nil {
		return r.one
	}
	d := r.domains[domain]
	if d == nil {
		d = newDomainLinks(&Domain{ID: domain})
		r.domains[domain] = d
	}
	return d
}

// eachDomain calls f with the links of each domain.
func (r *recognition) eachDomain(f func(*domainLinks)) {
	if r.one != nil {
		f(r.one)
	}
	for _, d := range r.domains {
		f(d)
	}
}

// origin returns the network of an address.
func (r *recognition) origin(form string) addressOrigin {
	found, known := r.origins[form]
	if !known {
		found = r.locate(form, 0)
		if len(r.origins) < maxRemembered {
			r.origins[strings.Clone(form)] = found
		}
	}
	return found
}

// locate finds the network of an address by the team's senders, its host name or its system. messages
// is how many came from it.
func (r *recognition) locate(form string, messages int64) addressOrigin {
	addr := rollup.Address(form)
	located := r.service.atlas.Locate(addr)
	found := addressOrigin{system: r.networks.addSystem(located, messages)}
	if sender, ok := r.service.catalogue.OfAddress(addr.Unmap()); ok {
		found.sender, found.certain = r.networks.addSender(sender), true
		return found
	}
	if sender, ok := r.service.catalogue.Identify(senders.Clues{Host: r.hosts[form], Network: located.Network.Number}); ok {
		found.sender = r.networks.addSender(sender)
	}
	return found
}

// signer returns the known sender that authenticated as one of the domains of an
// identity: a forwarder or list before others. A domain that did not pass says nothing:
// any sender can write it.
func (r *recognition) signer(identity *rollup.Identity) networkIndex {
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

func (r *recognition) ofDomain(domain string) networkIndex {
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

// address is an address with its messages.
type address struct {
	form     string
	messages int64
}

// addresses returns all addresses of the links.
func (r *recognition) addresses() []address {
	messages := make(map[string]int64)
	r.eachDomain(func(d *domainLinks) {
		for _, a := range d.addresses {
			for _, form := range a.forms {
				messages[form] = min(messages[form]+a.total, dmarcd.MaxCount)
			}
		}
	})
	all := make([]address, 0, len(messages))
	for form, n := range messages {
		all = append(all, address{form, n})
	}
	return all
}

// finish decides on the links of all domains. It needs r.hosts.
func (r *recognition) finish() {
	for _, a := range r.addresses() {
		if len(r.origins) < maxRemembered {
			r.origins[a.form] = r.locate(a.form, a.messages)
		}
	}
	r.eachDomain(func(d *domainLinks) {
		for _, a := range d.addresses {
			a.network = r.networks.of(r.origin(a.forms[0]), noNetwork)
		}
		d.finish(func(form string) string { return r.hosts[form] })
	})
}

// hosts returns the known names of the addresses with the most messages, by their forms.
func (s *Service) hosts(ctx context.Context, team dmarcd.TeamID, addresses []address) (map[string]string, error) {
	addresses = top(addresses, maxNamed, func(a, b address) int {
		return cmp.Or(cmp.Compare(b.messages, a.messages), cmp.Compare(a.form, b.form))
	})
	var addrs []netip.Addr
	forms := make(map[netip.Addr]string)
	for _, a := range addresses {
		if addr := rollup.Address(a.form); addr.IsValid() {
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

// recognize sets m.whole: which addresses are linked to the domains.
func (m *Mail) recognize(ctx context.Context) error {
	if m.whole != nil {
		return nil
	}
	days, err := m.linkDays(ctx)
	if err != nil {
		return err
	}
	r := m.newRecognition()
	if err := m.scan(ctx, days, nil, m.newLinker(r)); err != nil {
		return err
	}
	var all []address
	m.inTurn(ctx, func() { all = r.addresses() })
	m.inTurn(ctx, func() { r.hosts, err = m.service.hosts(ctx, m.team.ID(), all) })
	if err != nil {
		return err
	}
	m.inTurn(ctx, r.finish)
	m.whole = r
	return nil
}

// linkDays returns the days over which links are found: those before the end of the period or,
// if it is open, before the last day with mail.
func (m *Mail) linkDays(ctx context.Context) (dmarcd.Days, error) {
	if m.days.To != nil {
		first := *m.days.To - LinkDays + 1
		if m.window.From != nil && *m.window.From == first {
			return m.window, nil
		}
		return dmarcd.Days{From: &first, To: m.days.To}, nil
	}
	seen := make(byDay)
	if err := m.scan(ctx, m.days, nil, seen); err != nil {
		return dmarcd.Days{}, err
	}
	var last dmarcd.Day
	for day := range seen {
		last = max(last, day)
	}
	first := last - LinkDays + 1
	return dmarcd.Days{From: &first, To: &last}, nil
}

// linkWindow returns a period with the days over which its links are found.
func linkWindow(period dmarcd.Days) dmarcd.Days {
	if period.From == nil || period.To == nil {
		return period
	}
	first := min(*period.From, *period.To-LinkDays+1)
	return dmarcd.Days{From: &first, To: period.To}
}

// tally is the mail of the period by sender.
type tally struct {
	*grouping
	sums []sum // by senderIndex
	all  sum
	days map[dmarcd.Day]struct{}
}

func (t *tally) add(share *rollup.Share, records []rollup.Record) {
	t.days[share.Day] = struct{}{}
	for i := range records {
		at := t.sender(share, &records[i])
		for int(at) >= len(t.sums) {
			t.sums = append(t.sums, sum{})
		}
		t.sums[at].add(share, &records[i])
		t.all.add(share, &records[i])
	}
}

// count sets m.tally, the mail of the period by sender. The other gatherers take part in the scan.
func (m *Mail) count(ctx context.Context, others ...gatherer) error {
	if err := m.recognize(ctx); err != nil {
		return err
	}
	if m.tally != nil && len(others) == 0 {
		return nil
	}
	t := &tally{grouping: m.grouping(GroupSender), days: make(map[dmarcd.Day]struct{})}
	if err := m.scanTables(ctx, nil, slices.Concat(others, []gatherer{t})...); err != nil {
		return err
	}
	m.tally = t
	return nil
}
