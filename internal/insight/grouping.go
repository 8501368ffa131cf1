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
	GroupSender:   "Unknown networks",
	GroupCountry:  "Unknown country",
	GroupAddress:  "Unknown address",
	GroupReporter: "Unnamed reporter",
	GroupSelector: "No signature",
	GroupFrom:     "No From domain",
	GroupEnvelope: "No envelope domain",
}

// otherKey is the key of the row of others.
const otherKey = "*"

// plurals name the rows of a group.
var plurals = map[Group]string{
	GroupSender:   "senders",
	GroupCountry:  "countries",
	GroupAddress:  "addresses",
	GroupReporter: "reporters",
	GroupSelector: "DKIM selectors",
	GroupFrom:     "From domains",
	GroupEnvelope: "envelope domains",
}

// grouping maps records to the slots of their keys in a group. Within a block, it caches the slots by
// address, identity and share.
type grouping struct {
	group Group
	atlas *senders.Atlas
	// known caches the slots of IPv4 addresses, or of their countries, by number: that is faster than
	// by text.
	known map[uint32]slot
	// recognition decides on senders, and is nil for other groups.
	recognition *recognition
	slot        func(key string) slot

	block      *rollup.Block
	byAddress  []slot
	byIdentity []slot
	// evaluations, current, signers, addresses and bySender are used for senders only.
	evaluations evaluations
	current     *domainLinks
	signers     []networkIndex
	addresses   []groupedAddress
	bySender    []slot
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
	unsetNetwork networkIndex = math.MaxUint32
)

// begin begins a block.
func (g *grouping) begin(b *rollup.Block) {
	g.block, g.share = b, nil
	switch g.group {
	case GroupCountry, GroupAddress:
		g.byAddress = refill(g.byAddress, b.Addresses.Len(), unset)
	case GroupEnvelope:
		g.byIdentity = refill(g.byIdentity, len(b.Identities), unset)
	case GroupSelector:
		g.byIdentity = refill(g.byIdentity, len(b.Identities), unset)
		clear(g.several)
	case GroupSender:
		g.evaluations.begin(b)
		g.addresses = refill(g.addresses, b.Addresses.Len(), groupedAddress{})
		g.signers = refill(g.signers, len(b.Identities), unsetNetwork)
	}
}

// refill returns a list of n times a value. It reuses the memory of list.
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
func (g *grouping) of(share *rollup.Share, r *rollup.Record) slot {
	switch g.group {
	case GroupCountry, GroupAddress:
		at := &g.byAddress[r.Address]
		if *at == unset {
			*at = g.ofAddress(g.block.Addresses.At(r.Address))
		}
		return *at
	case GroupEnvelope:
		at := &g.byIdentity[r.Identity]
		if *at == unset {
			*at = g.slot(cmp.Or(g.block.Identities[r.Identity].Envelope, notReported))
		}
		return *at
	case GroupSelector:
		return g.ofSelector(share, r)
	case GroupSender:
		return g.ofSender(share, r)
	}
	if g.share != share {
		key := share.From
		if g.group == GroupReporter {
			key = share.Reporter
		}
		g.share, g.slotOfShare = share, g.slot(cmp.Or(key, notReported))
	}
	return g.slotOfShare
}

// ofAddress returns the slot of an address or of its country. The key of an address is its form in
// rollups.
func (g *grouping) ofAddress(form string) slot {
	number, isIPv4 := rollup.IPv4(form)
	if at, known := g.known[number]; known && isIPv4 {
		return at
	}
	key := form
	if g.group == GroupCountry {
		key = g.atlas.Locate(rollup.Address(form)).Country
	}
	at := g.slot(cmp.Or(key, notReported))
	if isIPv4 && len(g.known) < maxRemembered {
		g.known[number] = at
	}
	return at
}

func (g *grouping) ofSelector(share *rollup.Share, r *rollup.Record) slot {
	identity := &g.block.Identities[r.Identity]
	if len(identity.Signatures) < 2 {
		at := &g.byIdentity[r.Identity]
		if *at == unset {
			*at = g.slot(cmp.Or(selectorName(identity, ""), notReported))
		}
		return *at
	}
	of := signed{share.From, r.Identity}
	at, known := g.several[of]
	if !known {
		if g.several == nil {
			g.several = make(map[signed]slot)
		}
		at = g.slot(cmp.Or(selectorName(identity, share.From), notReported))
		g.several[of] = at
	}
	return at
}

// groupedAddress is an address of a block: its origin, and its mail for the domain that it was
// last looked up for.
type groupedAddress struct {
	origin     addressOrigin
	links      *domainLinks
	mail       *addressMail
	classified string // the key of a network that the team classified
}

// enter sets and returns the links of the domain of a share. It must be called before its records.
func (g *grouping) enter(share *rollup.Share) *domainLinks {
	if d := g.recognition.linksOf(share.Domain); d != g.current {
		g.current = d
		g.evaluations.begin(g.block) // the organization may be another one
	}
	return g.current
}

// signer returns the known sender that signed a record of the block.
func (g *grouping) signer(r *rollup.Record) networkIndex {
	by := &g.signers[r.Identity]
	if *by == unsetNetwork {
		*by = g.recognition.signer(&g.block.Identities[r.Identity])
	}
	return *by
}

// sender returns the sender of a record of the block. It needs GroupSender.
func (g *grouping) sender(share *rollup.Share, r *rollup.Record) senderIndex {
	d, from := g.enter(share), &g.addresses[r.Address]
	form := g.block.Addresses.At(r.Address)
	if from.links != d {
		from.links, from.mail, from.classified = d, d.addresses[sourceForm(form)], d.classifiedAs(form)
		if from.mail != nil {
			from.origin = g.recognition.origin(from.mail.forms[0]) // of an IPv6 /64
		} else {
			from.origin = g.recognition.origin(form)
		}
	}
	if from.classified != "" {
		return g.recognition.add(sender{part: partClassified, as: from.classified})
	}
	identity := &g.block.Identities[r.Identity]
	network := g.recognition.networks.of(from.origin, g.signer(r))
	of := d.senderOf(g.recognition, from.mail, network, form, r, g.evaluations.of(share, r), identity.Reasons.Relayed())
	return g.recognition.add(of)
}

func (g *grouping) ofSender(share *rollup.Share, r *rollup.Record) slot {
	sender := g.sender(share, r)
	for int(sender) >= len(g.bySender) {
		g.bySender = append(g.bySender, unset)
	}
	at := &g.bySender[sender]
	if *at == unset {
		*at = g.slot(g.recognition.senders.keys[sender])
	}
	return *at
}

// matches reports whether a record has the selected key.
func (g *grouping) matches(share *rollup.Share, r *rollup.Record) bool { return g.of(share, r) != 0 }

// only returns a grouping that maps one key to slot 1 and all others to slot 0.
func (m *Mail) only(group Group, key string) *grouping {
	g := m.grouping(group)
	g.slot = func(found string) slot {
		if group == GroupAddress {
			found = rollup.AddressText(found)
		}
		if found == key {
			return 1
		}
		return 0
	}
	return g
}

// grouping returns a grouping without a slot function. GroupNetwork needs m.whole.
func (m *Mail) grouping(group Group) *grouping {
	g := &grouping{group: group, atlas: m.service.atlas, known: make(map[uint32]slot), recognition: m.whole}
	g.evaluations.organization = func(from string) string { return g.current.domain.organization(from) }
	return g
}

// groupTable gathers the records of a group in a table.
type groupTable struct {
	*grouping
	table *table
}

func (m *Mail) groupTable(group Group, limit, space int) *groupTable {
	g := &groupTable{m.grouping(group), m.newTable(limit, space)}
	g.slot = g.table.slot
	return g
}

func (g *groupTable) add(share *rollup.Share, records []rollup.Record) {
	for i := range records {
		if g.table.isFull() {
			g.table.drop()
			g.forget()
			g.begin(g.block) // it caches slots, too
		}
		r := &records[i]
		g.table.sums[g.of(share, r)].add(share, r)
	}
}

// forget drops the slots that are cached over blocks.
func (g *groupTable) forget() {
	clear(g.known)
	g.bySender = g.bySender[:0]
}

// again makes it ready for the second scan, if one is needed.
func (g *groupTable) again() bool {
	g.forget()
	return g.table.again()
}

// selectorName returns the DNS name of the key of the signature that counts: one that passes and is
// aligned comes first. It returns the domain alone if the report does not contain the selector.
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
