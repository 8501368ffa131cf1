package insight

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/rollup"
)

// Limits of the profiles of a scan: groups of one sender, and all profiles, groups and addresses.
const (
	maxGroups      = 24
	maxAllProfiles = MaxListed
	maxAllGroups   = 2 * MaxListed
	maxAllPairs    = 2 * MaxListed
)

// profile sums the mail of a sender of one domain. All numbers are messages.
type profile struct {
	sum
	// relayed counts messages that receivers report as forwarded.
	relayed int64
	// failures are the failing messages by cause, at most maxGroups.
	failures map[failure]*failed
	// as are the failing messages by the other organization as which they authenticate.
	as map[string]int64
	// addresses is the number of addresses, links the number by kind of link.
	addresses int
	links     [linkName + 1]int
	// firstSeen is the first day of its addresses in the link window.
	firstSeen dmarcd.Day
	// senders are the messages of an address by sender.
	senders map[senderIndex]int64
	// parts are the messages of an undivided sender by the part they would belong to.
	parts [partOthers + 1]int64
	// rfc9989 and rfc7489 are the messages that fail under the simulated policy, by the policy that
	// receivers of each RFC apply.
	rfc9989, rfc7489 [dmarc.Reject + 1]int64
}

// failed is a group of messages that fail.
type failed struct {
	messages    int64
	first, last dmarcd.Day
}

// domainMail is the mail of the senders of one domain.
type domainMail struct {
	domain   *Domain
	links    *domainLinks
	classes  map[string]dmarcd.Class // of the team's senders, for all domains
	profiles map[slot]*profile
	sum      sum
	days     map[dmarcd.Day]struct{}
	// policy is the simulated policy, nil if there is none; existing are subdomains that exist.
	policy   *Policy
	existing map[string]struct{}
	// spf is the mail on which an SPF record is tried out; spfFull is true if there was too much.
	spf     map[spfUse]*spfCount
	spfFull bool
}

// assessor gathers the profiles of senders, or of addresses.
type assessor struct {
	*grouping
	legacy evaluations
	// profiles, groups, tried and pairs are counted over all domains, for the limits.
	profiles, groups, tried int
	pairs                   map[addressOf]struct{}
	// domains has the mail by domain. only is set if all mail belongs to one domain.
	domains map[dmarcd.DomainID]*domainMail
	only    *domainMail
	mail    *domainMail // of the current share
	// wanted selects the senders to assess, nil for all.
	wanted map[senderIndex]bool
	// byAddress assesses addresses instead of senders.
	byAddress bool
}

// addressOf is an address of a profile.
type addressOf struct {
	profile *profile
	address *addressMail
}

// newAssessor returns an assessor for the senders of some domains. It needs m.whole.
func (m *Mail) newAssessor(domains []Domain) *assessor {
	a := &assessor{grouping: m.grouping(GroupSender), domains: make(map[dmarcd.DomainID]*domainMail), pairs: make(map[addressOf]struct{})}
	a.legacy.organization = dmarc.LegacyOrganization
	for i := range domains {
		d := &domainMail{
			domain: &domains[i], links: m.whole.linksOf(domains[i].ID), classes: m.service.classes,
			profiles: make(map[slot]*profile), days: make(map[dmarcd.Day]struct{}),
		}
		a.domains[domains[i].ID] = d
		if m.domain != "" {
			a.only = d
		}
	}
	return a
}

func (a *assessor) begin(b *rollup.Block) {
	a.grouping.begin(b)
	a.legacy.begin(b)
}

func (a *assessor) add(share *rollup.Share, records []rollup.Record) {
	if a.mail = cmp.Or(a.only, a.domains[share.Domain]); a.mail == nil {
		return
	}
	a.mail.days[share.Day] = struct{}{}
	for i := range records {
		a.addRecord(share, &records[i])
	}
}

// profile returns the profile at a slot. If there are too many, it returns the profile of others of
// unknown networks, or nil for addresses.
func (a *assessor) profile(at slot) *profile {
	p := a.mail.profiles[at]
	if p == nil && a.profiles >= maxAllProfiles && a.byAddress {
		return nil
	}
	if p == nil && a.profiles >= maxAllProfiles {
		at = slot(a.recognition.add(sender{part: partOthers}))
		p = a.mail.profiles[at]
	}
	if p == nil {
		a.profiles++
		p = new(profile)
		a.mail.profiles[at] = p
	}
	return p
}

func (a *assessor) addRecord(share *rollup.Share, r *rollup.Record) {
	of := a.sender(share, r)
	if a.wanted != nil && !a.wanted[of] {
		a.mail.sum.add(share, r)
		return
	}
	e := a.evaluations.of(share, r)
	at := slot(of)
	if a.byAddress {
		if at = a.slot(a.block.Addresses.At(r.Address)); at == 0 {
			return
		}
	}
	p := a.profile(at)
	if p == nil {
		return
	}
	if a.byAddress {
		if p.senders == nil {
			p.senders = make(map[senderIndex]int64)
		}
		p.senders[of] += r.Count
	}
	p.add(share, r)
	a.mail.sum.add(share, r)
	a.addAddress(p, a.addresses[r.Address].mail)
	if a.mail.policy != nil {
		a.try(p, share, r, e)
		a.addSPF(of, r, e)
	}
	relayed := a.block.Identities[r.Identity].Reasons.Relayed()
	if relayed {
		addMessages(&p.relayed, r.Count)
	}
	if s := a.recognition.senders.list[of]; s.part == partWhole || s.part == partClassified {
		part, _ := a.current.partOfRecord(a.addresses[r.Address].mail, a.block.Addresses.At(r.Address), r, e, relayed)
		addMessages(&p.parts[part], r.Count)
	}
	if !r.Outcome.Compliant() {
		a.fail(p, e, share.Day, r.Count)
	}
}

// addAddress counts an address of a profile once.
func (a *assessor) addAddress(p *profile, of *addressMail) {
	pair := addressOf{p, of}
	if _, known := a.pairs[pair]; known || of == nil || len(a.pairs) >= maxAllPairs {
		return
	}
	a.pairs[pair] = struct{}{}
	if p.addresses == 0 || of.first < p.firstSeen {
		p.firstSeen = of.first
	}
	p.addresses++
	p.links[of.link]++
}

// fail adds failing messages to a group of a profile.
func (a *assessor) fail(p *profile, e *evaluation, day dmarcd.Day, messages int64) {
	f := e.failure
	if other := e.other(); other != "" {
		if p.as == nil {
			p.as = make(map[string]int64)
		}
		if _, known := p.as[other]; known || len(p.as) < maxGroups {
			p.as[strings.Clone(other)] += messages
		}
	}
	if f.spf != spfMissing && f.spf != spfAligned && f.dkim != signedAligned {
		f.from = "" // it does not matter to the cause
	}
	of := p.failures[f]
	if of == nil {
		if len(p.failures) >= maxGroups || a.groups >= maxAllGroups {
			return
		}
		a.groups++
		if p.failures == nil {
			p.failures = make(map[failure]*failed)
		}
		of = &failed{first: day, last: day}
		p.failures[f.clone()] = of
	}
	addMessages(&of.messages, messages)
	of.first, of.last = min(of.first, day), max(of.last, day)
}

// clone returns a failure that does not share memory with a block.
func (f failure) clone() failure {
	f.signer, f.selector, f.checked, f.from = strings.Clone(f.signer), strings.Clone(f.selector), strings.Clone(f.checked), strings.Clone(f.from)
	return f
}

// topFailure returns the group with the most messages, and whether there is one.
func (p *profile) topFailure() (failure, failed, bool) {
	groups := slices.SortedFunc(maps.Keys(p.failures), func(a, b failure) int {
		return cmp.Or(cmp.Compare(p.failures[b].messages, p.failures[a].messages), a.compare(b))
	})
	if len(groups) == 0 {
		return failure{}, failed{}, false
	}
	return groups[0], *p.failures[groups[0]], true
}

func (f failure) compare(o failure) int {
	return cmp.Or(cmp.Compare(f.dkim, o.dkim), cmp.Compare(f.spf, o.spf), cmp.Compare(f.signer, o.signer),
		cmp.Compare(f.selector, o.selector), cmp.Compare(f.checked, o.checked), cmp.Compare(f.from, o.from))
}

// authenticatedAs returns the other organization as which most failing messages
// authenticate, how many do, and how many organizations there are.
func (p *profile) authenticatedAs() (name string, messages int64, names int) {
	for other, n := range p.as {
		if n > messages || n == messages && other < name {
			name, messages = other, n
		}
	}
	return name, messages, len(p.as)
}
