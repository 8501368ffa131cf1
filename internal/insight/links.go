package insight

import (
	"math"
	"net/netip"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// LinkDays is the window over which links and keys are found, up to the end of the period, so
// that every view of a domain has the same senders.
const LinkDays = 90

// Thresholds for links, as fractions of messages. docs/senders.md explains them.
const (
	// enoughAligned: an address is linked if this fraction of its messages passes aligned.
	enoughAligned = 0.1
	// mostly: an address forwards if this fraction carries a signature of the domain; a key is used
	// elsewhere if this fraction of its messages comes from other, linked addresses.
	mostly = 0.5
	// oneDomain: mail belongs to one sender if this fraction authenticates as one other domain.
	oneDomain = 0.6
	// enoughRelayed: an address forwards if receivers report this fraction as forwarded.
	enoughRelayed = 0.2
	// originFraction: a key belongs to a network that has at least this fraction of its messages.
	originFraction = 0.25
)

// link is how an address is linked to a domain, the strongest first.
type link uint8

const (
	linkNone   link = iota
	linkSPF         // its mail passes aligned SPF
	linkListed      // the SPF record lists it
	linkDKIM        // its mail passes DKIM by a key that is not used elsewhere
	linkName        // its host name is in the domain, or a linked address has the same
)

// domainLinks are the addresses that send as a domain.
type domainLinks struct {
	domain     *Domain
	authorized authorized
	classified []classifiedNetwork
	addresses  map[string]*addressMail // by sourceForm
	dkimKeys   []dkimKeyUse
	byDKIMKey  map[string]uint32
	first      dmarcd.Day // with mail
}

// classifiedNetwork is an address or network that the team classified for the domain.
type classifiedNetwork struct {
	netip.Prefix
	key string
}

func newDomainLinks(domain *Domain) *domainLinks {
	d := &domainLinks{
		domain: domain, authorized: domain.authorized(), addresses: make(map[string]*addressMail), byDKIMKey: make(map[string]uint32),
		first: math.MaxInt32,
	}
	for key := range domain.Classes {
		if prefix, ok := dmarcd.SenderNetwork(key); ok {
			d.classified = append(d.classified, classifiedNetwork{prefix, key})
		}
	}
	return d
}

// classifiedAs returns the key of the narrowest classified network that contains an address, or "".
func (d *domainLinks) classifiedAs(form string) (key string) {
	if len(d.classified) == 0 {
		return ""
	}
	addr, bits := rollup.Address(form), -1
	for _, c := range d.classified {
		if c.Bits() > bits && c.Contains(addr) {
			key, bits = c.key, c.Bits()
		}
	}
	return key
}

// finish decides which addresses are linked to the domain, and to which part of its network each
// belongs. host returns the confirmed name of an address, "" if unknown.
func (d *domainLinks) finish(host func(form string) string) {
	organization := d.domain.organization(d.domain.Name)
	for _, a := range d.addresses {
		switch {
		case a.spf > 0 && a.has(a.spf, enoughAligned):
			a.link = linkSPF
		case slices.ContainsFunc(a.forms, func(form string) bool { return d.authorized.lists(rollup.Address(form)) }):
			a.link = linkListed
		case organization != "" && slices.ContainsFunc(a.forms, func(form string) bool {
			name := host(form)
			return name != "" && dmarcd.Covers(organization, name)
		}):
			a.link = linkName
		}
	}
	d.linkByName(host)
	for _, a := range d.addresses {
		for _, k := range a.dkimKeys {
			use := &d.dkimKeys[k.key]
			addMessages(&use.passed, k.passed)
			if a.link != linkNone {
				addMessages(&use.linked, k.passed)
			}
			if use.byNetwork == nil {
				use.byNetwork = make(map[networkIndex]int64)
			}
			use.byNetwork[a.network] = min(use.byNetwork[a.network]+k.passed, dmarcd.MaxCount)
		}
	}
	var byKey []*addressMail
	for _, a := range d.addresses {
		var own int64
		for i := range a.dkimKeys {
			k := &a.dkimKeys[i]
			if k.elsewhere = d.elsewhere(a, k); !k.elsewhere {
				addMessages(&own, k.passed)
			}
		}
		if a.link == linkNone && own > 0 && a.has(own, enoughAligned) {
			byKey = append(byKey, a) // set later: elsewhere is about SPF, listing and name
		}
	}
	for _, a := range byKey {
		a.link = linkDKIM
	}
	d.linkByName(host)
	for _, a := range d.addresses {
		a.part, a.as = a.divide()
	}
}

// linkByName links addresses that have the host name of a linked one.
func (d *domainLinks) linkByName(host func(form string) string) {
	names := make(map[string]bool)
	for _, a := range d.addresses {
		for _, form := range a.forms {
			if name := host(form); a.link != linkNone && name != "" {
				names[name] = true
			}
		}
	}
	for _, a := range d.addresses {
		if a.link == linkNone && slices.ContainsFunc(a.forms, func(form string) bool { return names[host(form)] }) {
			a.link = linkName
		}
	}
}

// has reports whether a number of messages is at least a fraction of all messages of the address.
func (a *addressMail) has(messages int64, part float64) bool {
	return float64(messages) >= part*float64(a.total)
}

// elsewhere reports whether a key of an address is used elsewhere: half of its messages come from
// other addresses that are linked by SPF, listing or name. If there are no such addresses, the key is
// used elsewhere if the network of the address has less than a quarter of its messages.
func (d *domainLinks) elsewhere(a *addressMail, k *dkimKeyMail) bool {
	use := &d.dkimKeys[k.key]
	linked := use.linked
	if a.link != linkNone {
		linked -= k.passed
	}
	if linked > 0 {
		return float64(linked) >= mostly*float64(use.passed)
	}
	return use.passed > 0 && float64(use.byNetwork[a.network]) < originFraction*float64(use.passed)
}

// divide returns the part of its network that an address belongs to.
func (a *addressMail) divide() (part, string) {
	if a.link != linkNone {
		return partYours, ""
	}
	var signed int64
	for _, k := range a.dkimKeys {
		if k.elsewhere {
			addMessages(&signed, k.passed+k.broken)
		}
	}
	if signed > 0 && a.has(signed, mostly) || a.relayed > 0 && a.has(a.relayed, enoughRelayed) {
		return partForwarding, ""
	}
	for _, other := range a.others {
		if a.has(other.messages, oneDomain) {
			return partAs, other.organization
		}
	}
	return partOthers, ""
}

// signsElsewhere reports whether a record of an address carries a signature of the domain, valid
// or not, by a key that is used elsewhere. a may be nil.
func (d *domainLinks) signsElsewhere(a *addressMail, e *evaluation) bool {
	key, known := d.byDKIMKey[e.signature()]
	if !known || e.signature() == "" {
		return false
	}
	if a == nil {
		return d.dkimKeys[key].passed > 0
	}
	for i := range a.dkimKeys {
		if a.dkimKeys[i].key == key {
			return a.dkimKeys[i].elsewhere
		}
	}
	return d.dkimKeys[key].passed > 0
}

// passesAt reports whether mail with the key of a broken signature passes from a network.
func (d *domainLinks) passesAt(n networkIndex, e *evaluation) bool {
	key, known := d.byDKIMKey[e.signature()]
	return known && e.signature() != "" && (d.dkimKeys[key].byNetwork[n] > 0 || d.dkimKeys[key].bySigner[n] > 0)
}
