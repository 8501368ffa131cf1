package insight

import (
	"cmp"
	"math"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/rollup"
	"github.com/dmarcd/dmarcd/internal/senders"
)

// notReported is the key of mail about which a group has nothing to say.
const notReported = "-"

// notReportedNames are the names of such mail.
var notReportedNames = map[Group]string{
	GroupNetwork:  "Unknown network",
	GroupCountry:  "Unknown country",
	GroupAddress:  "Unknown address",
	GroupReporter: "Unnamed reporter",
	GroupSelector: "No signature",
	GroupFrom:     "No From domain",
	GroupEnvelope: "No envelope domain",
}

// otherKey is the key of all sources that are not listed one by one.
const otherKey = "*"

// plurals are what the sources of a group are called.
var plurals = map[Group]string{
	GroupNetwork:  "networks",
	GroupCountry:  "countries",
	GroupAddress:  "addresses",
	GroupReporter: "reporters",
	GroupSelector: "DKIM selectors",
	GroupFrom:     "From domains",
	GroupEnvelope: "envelope domains",
}

// keyed finds the keys of records in a group, and the slots of the keys. Both are found
// once for what the records of a block have in common.
type keyed struct {
	group   Group
	origins *origins
	// senders decides on networks, and is nil for other groups.
	senders *recognition
	slot    func(key string) slot

	// known are the slots of IPv4 addresses: a number is found in a fraction of the
	// time that a text takes.
	known nearby[slot]

	block       *rollup.Block
	byAddress   []slot
	byIdentity  []slot
	byNetwork   map[networkPlace]slot
	signers     []networkPlace
	homes       []home
	several     map[signed]slot
	share       *rollup.Share
	slotOfShare slot
}

// signed is a From domain and an identity with several signatures: which of them counts
// depends on the From domain.
type signed struct {
	from     string
	identity uint32
}

// unset is a slot, and a network, that was not found yet.
const (
	unset        slot         = math.MaxUint64
	unsetNetwork networkPlace = math.MaxUint32
)

// begin begins a block.
func (k *keyed) begin(b *rollup.Block) {
	k.block, k.share = b, nil
	switch k.group {
	case GroupCountry, GroupAddress:
		k.byAddress = refill(k.byAddress, b.Addresses.Len(), unset)
	case GroupEnvelope:
		k.byIdentity = refill(k.byIdentity, len(b.Identities), unset)
	case GroupSelector:
		k.byIdentity = refill(k.byIdentity, len(b.Identities), unset)
		clear(k.several)
	case GroupNetwork:
		k.homes = refill(k.homes, b.Addresses.Len(), home{sender: unsetNetwork, system: unsetNetwork})
		k.signers = refill(k.signers, len(b.Identities), unsetNetwork)
	}
}

// refill returns a list of a value, in the memory of another.
func refill[T any](list []T, n int, value T) []T {
	if cap(list) < n {
		list = make([]T, n)
	}
	list = list[:n]
	for i := range list {
		list[i] = value
	}
	return list
}

// of returns the slot of a record of the block.
func (k *keyed) of(share *rollup.Share, r *rollup.Record) slot {
	switch k.group {
	case GroupCountry, GroupAddress:
		at := &k.byAddress[r.Address]
		if *at == unset {
			*at = k.ofAddress(k.block.Addresses.At(r.Address))
		}
		return *at
	case GroupEnvelope:
		at := &k.byIdentity[r.Identity]
		if *at == unset {
			*at = k.slot(cmp.Or(k.block.Identities[r.Identity].Envelope, notReported))
		}
		return *at
	case GroupSelector:
		return k.ofSelector(share, r)
	case GroupNetwork:
		return k.ofNetwork(r)
	}
	if k.share != share {
		key := share.From
		if k.group == GroupReporter {
			key = share.Reporter
		}
		k.share, k.slotOfShare = share, k.slot(cmp.Or(key, notReported))
	}
	return k.slotOfShare
}

func (k *keyed) ofAddress(form string) slot {
	number, isIPv4 := rollup.IPv4(form)
	if isIPv4 {
		if at, known := k.known.get(uint64(number)); known {
			return at
		}
	}
	at := k.slot(k.addressKey(form))
	if isIPv4 && k.known.size() < maxRemembered {
		k.known.set(uint64(number), at)
	}
	return at
}

// addressKey returns the key of an address in its group. That of an address is in the
// form of rollups.
func (k *keyed) addressKey(form string) string {
	if k.group == GroupCountry {
		return cmp.Or(k.origins.of(form).Country, notReported)
	}
	return cmp.Or(form, notReported)
}

func (k *keyed) ofSelector(share *rollup.Share, r *rollup.Record) slot {
	identity := &k.block.Identities[r.Identity]
	if len(identity.Signatures) < 2 {
		at := &k.byIdentity[r.Identity]
		if *at == unset {
			*at = k.slot(cmp.Or(selectorName(identity, ""), notReported))
		}
		return *at
	}
	of := signed{share.From, r.Identity}
	at, known := k.several[of]
	if !known {
		if k.several == nil {
			k.several = make(map[signed]slot)
		}
		at = k.slot(cmp.Or(selectorName(identity, share.From), notReported))
		k.several[of] = at
	}
	return at
}

func (k *keyed) ofNetwork(r *rollup.Record) slot {
	from, by := &k.homes[r.Address], &k.signers[r.Identity]
	if from.system == unsetNetwork {
		*from = k.senders.home(k.block.Addresses.At(r.Address))
	}
	if *by == unsetNetwork {
		*by = k.senders.signer(&k.block.Identities[r.Identity])
	}
	network := k.senders.networks.of(*from, *by)
	at, known := k.byNetwork[network]
	if !known {
		if k.byNetwork == nil {
			k.byNetwork = make(map[networkPlace]slot)
		}
		at = k.slot(k.senders.networks.list[network].key)
		k.byNetwork[network] = at
	}
	return at
}

// has reports whether a record is of the key that a selection has.
func (k *keyed) has(share *rollup.Share, r *rollup.Record) bool { return k.of(share, r) != 0 }

// only returns a keyed that maps one key to slot 1 and all others to slot 0.
func (m *Mail) only(group Group, key string) *keyed {
	k := m.keyed(group)
	k.slot = func(found string) slot {
		if group == GroupAddress {
			found = rollup.AddressText(found)
		}
		if found == key {
			return 1
		}
		return 0
	}
	return k
}

// keyed returns what finds the keys of a group. It needs m.whole for networks.
func (m *Mail) keyed(group Group) *keyed {
	return &keyed{group: group, origins: &origins{m.service.atlas, make(map[string]senders.Origin)}, senders: m.whole}
}

// groupTable gathers the records of a group in a table.
type groupTable struct {
	*keyed
	table *table
}

func (m *Mail) groupTable(group Group, limit int) *groupTable {
	g := &groupTable{m.keyed(group), m.newTable(limit)}
	g.slot = g.table.slot
	return g
}

func (g *groupTable) begin(b *rollup.Block) {
	if g.table.begin(nil) {
		g.known.clear()
		clear(g.byNetwork)
	}
	g.keyed.begin(b)
}

func (g *groupTable) add(share *rollup.Share, records []rollup.Record) {
	for i := range records {
		r := &records[i]
		g.table.add(g.of(share, r), share, r)
	}
}

// again makes it ready for the second scan, if one is needed.
func (g *groupTable) again() bool {
	if !g.table.isFull() {
		return false
	}
	g.table = g.table.again()
	g.slot = g.table.slot
	g.known.clear()
	clear(g.byNetwork)
	return true
}

// selectorName returns the name at which the key of the signature is published that
// counts, or the domain alone where the report does not tell the selector.
func selectorName(identity *rollup.Identity, from string) string {
	var best *rollup.Signature
	rank := -1
	for i, s := range identity.Signatures {
		score := 0
		if s.Passed() {
			score = 1
			if dmarcd.Covers(s.Domain, from) || dmarcd.Covers(from, s.Domain) {
				score = 2
			}
		}
		if score > rank {
			best, rank = &identity.Signatures[i], score
		}
	}
	switch {
	case best == nil:
		return ""
	case best.Selector == "":
		return best.Domain
	}
	return best.Selector + "._domainkey." + best.Domain // RFC 6376 §3.6.2.1
}

// countryName returns the English name of a code of ISO 3166-1, or the code.
func countryName(code string) string {
	region, err := language.ParseRegion(code)
	if err != nil {
		return code
	}
	return cmp.Or(display.English.Regions().Name(region), code)
}
