package insight

import (
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// LinkDays is the window over which links and keys are found, up to the end of the period, so
// that every view of a domain has the same senders.
const LinkDays = 90

// What is enough for a link. docs/senders.md explains the numbers.
const (
	// enoughAligned is the part of an address's messages that has to pass so that the
	// others are attributed to the same sender.
	enoughAligned = 0.1
	// mostly is the part that has to carry a signature of the domain, and the part of a key's
	// messages that has to come from linked addresses.
	mostly = 0.5
	// oneDomain is the part that authenticates as one other domain, so that it is attributed
	// to one sender.
	oneDomain = 0.6
	// enoughRelayed is the part that receivers have to report as forwarded.
	enoughRelayed = 0.2
	// originShare is the part of a key's messages that comes from the network that signs them.
	originShare = 0.25
)

// Limits of what is remembered of the addresses of all domains. Beyond maxAddresses, only those
// are added whose mail passes or is reported as forwarded; that of spoofers is not. Keys that pass
// and those that only occur in broken signatures, which any sender can write, are limited apart.
const (
	maxAddresses    = MaxListed
	maxKeys         = MaxListed / 2
	maxOfAddress    = 8 // keys, and other domains
	maxForms        = 4 // addresses of an IPv6 /64
	maxAuthorizedBy = 2000
)

// link is how an address is linked to a domain, the strongest first.
type link uint8

const (
	linkNone   link = iota
	linkSPF         // its mail passes aligned SPF
	linkListed      // the SPF record lists it
	linkKey         // its mail passes DKIM by a key that is not used elsewhere
	linkName        // its host name is in the domain, or is that of a linked address
)

// addressMail is the mail of an address, for one domain, in the link window. Addresses of an
// IPv6 /64 are one.
type addressMail struct {
	// forms are the lowest addresses, as in rollups: one, or up to maxForms of an IPv6 /64.
	forms               []string
	first               dmarcd.Day
	total, spf, relayed int64
	// unaligned is the messages that do not pass.
	unaligned int64
	keys      []keyMail
	others    []otherMail

	// Set by finish.
	network networkIndex // without a signer
	link    link
	part    part
	as      string // for partAs
}

// keyMail is messages with a signature of the domain by a key: those that pass, and those that
// carry a signature that does not verify.
type keyMail struct {
	key            uint32
	passed, broken int64
	elsewhere      bool
}

// otherMail is messages that authenticate only as another organization.
type otherMail struct {
	organization string
	messages     int64
}

// keyUse is how a key is used by all addresses: messages that pass, those of them from addresses
// that are linked by SPF, listing or name, and by network.
type keyUse struct {
	passed, linked int64
	byNetwork      map[networkIndex]int64
	// bySigner is the messages of known senders that are recognized by who signed.
	bySigner map[networkIndex]int64
	passes   bool
}

// domainLinks are the addresses that send as a domain.
type domainLinks struct {
	domain     *Domain
	authorized authorized
	classified []classifiedNetwork
	addresses  map[string]*addressMail // by sourceForm
	keys       []keyUse
	byKey      map[string]uint32
	first      dmarcd.Day // with mail
}

// classifiedNetwork is an address or network that the team classified for the domain.
type classifiedNetwork struct {
	netip.Prefix
	key string
}

func newDomainLinks(domain *Domain) *domainLinks {
	d := &domainLinks{
		domain: domain, authorized: domain.authorized(), addresses: make(map[string]*addressMail), byKey: make(map[string]uint32),
		first: math.MaxInt32,
	}
	for key := range domain.Classes {
		if prefix, ok := dmarcd.SenderNetwork(key); ok {
			d.classified = append(d.classified, classifiedNetwork{prefix, key})
		}
	}
	return d
}

// classifiedAs returns the narrowest classified network with an address, "" if there is none.
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

// sourceForm returns the form of the source of an address: an IPv6 /64, or the address itself.
func sourceForm(form string) string {
	const ipv6, prefix = 1 + 16, 1 + 8
	if len(form) == ipv6 && form[0] == 0 {
		return form[:prefix]
	}
	return form
}

// linker gathers the mail of addresses.
type linker struct {
	*grouping
	// count is the number of addresses, passing and broken that of keys, in all domains.
	count, passing, broken int
}

func (m *Mail) newLinker(r *recognition) *linker {
	l := &linker{grouping: m.grouping(GroupNetwork)}
	l.recognition = r
	return l
}

func (l *linker) add(share *rollup.Share, records []rollup.Record) {
	d := l.enter(share)
	d.first = min(d.first, share.Day)
	for i := range records {
		r := &records[i]
		e, relayed := l.evaluations.of(share, r), l.block.Identities[r.Identity].Reasons.Relayed()
		sign := e.passesSPF(r.Outcome) || e.passesDKIM(r.Outcome) || relayed
		if of := l.address(r.Address, share.Day, sign); of != nil {
			l.addRecord(of, r, e, relayed)
		}
	}
}

// address returns the mail of an address of the block, nil if there are too many.
func (l *linker) address(at uint32, day dmarcd.Day, sign bool) *addressMail {
	last := &l.addresses[at]
	if last.links == l.current {
		last.mail.first = min(last.mail.first, day)
		return last.mail
	}
	form := l.block.Addresses.At(at)
	of := l.current.addresses[sourceForm(form)]
	if of == nil {
		if l.count >= maxAddresses && (!sign || l.count >= 2*maxAddresses) {
			return nil
		}
		l.count++
		form = strings.Clone(form)
		of = &addressMail{first: day}
		l.current.addresses[sourceForm(form)] = of
	}
	of.addForm(form)
	of.first = min(of.first, day)
	last.links, last.mail = l.current, of
	return of
}

// addForm remembers the lowest addresses of a source, whatever the order of the records.
func (a *addressMail) addForm(form string) {
	at, known := slices.BinarySearch(a.forms, form)
	if known || at >= maxForms {
		return
	}
	a.forms = slices.Insert(a.forms, at, strings.Clone(form))
	a.forms = a.forms[:min(len(a.forms), maxForms)]
}

func (l *linker) addRecord(of *addressMail, r *rollup.Record, e *evaluation, relayed bool) {
	addMessages(&of.total, r.Count)
	spf, dkim := e.passesSPF(r.Outcome), e.passesDKIM(r.Outcome)
	if spf {
		addMessages(&of.spf, r.Count)
	}
	if relayed {
		addMessages(&of.relayed, r.Count)
	}
	if name := e.signature(); name != "" || dkim {
		if key := l.key(of, name, dkim); key != nil && dkim {
			addMessages(&key.passed, r.Count)
			l.addSigner(key, r)
		} else if key != nil {
			addMessages(&key.broken, r.Count)
		}
	}
	if spf || dkim {
		return
	}
	addMessages(&of.unaligned, r.Count)
	if other := e.other(); other != "" {
		of.addOther(other, r.Count)
	}
}

// addSigner counts messages that pass with a key for the known sender that signed them, too.
func (l *linker) addSigner(key *keyMail, r *rollup.Record) {
	signer := l.signer(r)
	if signer == noNetwork {
		return
	}
	use := &l.current.keys[key.key]
	if use.bySigner == nil {
		use.bySigner = make(map[networkIndex]int64)
	}
	use.bySigner[signer] = min(use.bySigner[signer]+r.Count, dmarcd.MaxCount)
}

// key returns the mail of an address by the key of a name, nil if there are too many. The name is
// "" if the report does not name the key.
func (l *linker) key(of *addressMail, name string, passes bool) *keyMail {
	at, known := l.current.byKey[name]
	switch {
	case !known && passes && l.passing >= maxKeys, !known && !passes && l.broken >= maxKeys:
		return nil
	case !known:
		at = uint32(len(l.current.keys)) //nolint:gosec // there are few
		l.current.byKey[strings.Clone(name)] = at
		l.current.keys = append(l.current.keys, keyUse{passes: passes})
		if passes {
			l.passing++
		} else {
			l.broken++
		}
	case passes && !l.current.keys[at].passes:
		l.current.keys[at].passes = true
		l.passing, l.broken = l.passing+1, l.broken-1
	}
	free := -1
	for i := range of.keys {
		if of.keys[i].key == at {
			return &of.keys[i]
		}
		if of.keys[i].passed == 0 {
			free = i
		}
	}
	if len(of.keys) < maxOfAddress {
		of.keys = append(of.keys, keyMail{key: at})
		return &of.keys[len(of.keys)-1]
	}
	if free < 0 || !passes && !l.current.keys[at].passes {
		return nil
	}
	of.keys[free] = keyMail{key: at} // instead of one that never passes here
	return &of.keys[free]
}

// addOther counts messages that authenticate as another organization. Of many, those with the
// most messages are remembered.
func (a *addressMail) addOther(organization string, messages int64) {
	least := 0
	for i := range a.others {
		if a.others[i].organization == organization {
			addMessages(&a.others[i].messages, messages)
			return
		}
		if a.others[i].messages < a.others[least].messages {
			least = i
		}
	}
	other := otherMail{strings.Clone(organization), messages}
	if len(a.others) < maxOfAddress {
		a.others = append(a.others, other)
	} else {
		a.others[least] = other
	}
}

// finish finds out which addresses are linked, and which part of its network each is. host
// returns the confirmed name of an address, "" if it is not known.
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
		for _, k := range a.keys {
			use := &d.keys[k.key]
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
		for i := range a.keys {
			k := &a.keys[i]
			if k.elsewhere = d.elsewhere(a, k); !k.elsewhere {
				addMessages(&own, k.passed)
			}
		}
		if a.link == linkNone && own > 0 && a.has(own, enoughAligned) {
			byKey = append(byKey, a) // set later: elsewhere is about SPF, listing and name
		}
	}
	for _, a := range byKey {
		a.link = linkKey
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

// has reports whether messages are at least a part of those of the address.
func (a *addressMail) has(messages int64, part float64) bool {
	return float64(messages) >= part*float64(a.total)
}

// elsewhere reports whether a key of an address is used elsewhere: half of its messages come from
// other addresses that are linked by SPF, listing or name; or, where there are none, the network
// of the address has less than a quarter of them.
func (d *domainLinks) elsewhere(a *addressMail, k *keyMail) bool {
	use := &d.keys[k.key]
	linked := use.linked
	if a.link != linkNone {
		linked -= k.passed
	}
	if linked > 0 {
		return float64(linked) >= mostly*float64(use.passed)
	}
	return use.passed > 0 && float64(use.byNetwork[a.network]) < originShare*float64(use.passed)
}

// divide returns the part of its network that an address is.
func (a *addressMail) divide() (part, string) {
	if a.link != linkNone {
		return partYours, ""
	}
	var signed int64
	for _, k := range a.keys {
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
	key, known := d.byKey[e.signature()]
	if !known || e.signature() == "" {
		return false
	}
	if a == nil {
		return d.keys[key].passed > 0
	}
	for i := range a.keys {
		if a.keys[i].key == key {
			return a.keys[i].elsewhere
		}
	}
	return d.keys[key].passed > 0
}

// passesAt reports whether mail with the key of a broken signature passes from a network.
func (d *domainLinks) passesAt(n networkIndex, e *evaluation) bool {
	key, known := d.byKey[e.signature()]
	return known && e.signature() != "" && (d.keys[key].byNetwork[n] > 0 || d.keys[key].bySigner[n] > 0)
}
