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

// Domain is what is known of the domain whose mail is judged, beside its mail.
type Domain struct {
	Name string
	// Facts is what the latest full check found, nil if there is none.
	Facts *dmarcd.Facts
	// Classes are those that the team gave senders, by their keys.
	Classes map[string]dmarcd.Class
}

// organization returns the organizational domain of a From domain.
func (d *Domain) organization(from string) string {
	if d.Facts != nil {
		if o := d.Facts.DMARC.OrganizationalDomain; dmarcd.Covers(o, from) {
			return o
		}
	}
	return dmarc.LegacyOrganization(from)
}

// What is remembered of one sender, and of all.
const (
	maxGroups    = 24
	maxAllGroups = 2 * MaxListed
	maxKeys      = 1024
)

// profile is what the mail of a sender says about it, in messages.
type profile struct {
	sum
	// dkimOnly pass by DKIM alone, relayed are those that receivers took for forwarded,
	// broken fail with a signature of the organization that does not verify.
	dkimOnly, relayed, broken int64
	// listed come from addresses that the SPF record lists, named from hosts whose names
	// are in the organization.
	listed, named int64
	// failures are the groups of messages that fail, and unlisted those beyond maxGroups.
	failures map[failure]*failed
	unlisted int64
	// keys are messages that pass by DKIM alone, by the key.
	keys map[string]int64
}

// failed is a group of messages that fail.
type failed struct {
	messages    int64
	first, last dmarcd.Day
}

// keyUse is how a key is used by all senders: messages, and those that pass SPF, too.
type keyUse struct{ messages, both int64 }

// judge gathers the profiles of senders.
type judge struct {
	*keyed
	evaluations
	domain     *Domain
	authorised authorised
	hosts      map[string]string
	profiles   []profile // by slot; the first is of no sender
	groups     int       // of all profiles
	uses       map[string]*keyUse
	atAddress  []addressFacts
}

// addressFacts is what is known of an address of a block.
type addressFacts struct{ known, listed, named bool }

// newJudge returns what gathers profiles. The caller sets slot.
func (m *Mail) newJudge(group Group, domain *Domain) *judge {
	return &judge{
		keyed: m.keyed(group), evaluations: evaluations{organization: domain.organization}, domain: domain,
		authorised: authorisedBy(domain.Facts), hosts: m.whole.hosts, profiles: make([]profile, 1), uses: make(map[string]*keyUse),
	}
}

func (j *judge) begin(b *rollup.Block) {
	j.keyed.begin(b)
	j.evaluations.begin(b)
	j.atAddress = refill(j.atAddress, b.Addresses.Len(), addressFacts{})
}

func (j *judge) add(share *rollup.Share, records []rollup.Record) {
	for i := range records {
		j.addRecord(share, &records[i])
	}
}

func (j *judge) addRecord(share *rollup.Share, r *rollup.Record) {
	e := j.evaluations.of(share, r)
	j.use(e, r)
	at := j.keyed.of(share, r)
	if at == 0 {
		return
	}
	p := &j.profiles[at]
	p.sum.add(share, r)
	facts := j.factsOf(share, r.Address)
	if facts.listed {
		addMessages(&p.listed, r.Count)
	}
	if facts.named {
		addMessages(&p.named, r.Count)
	}
	if j.keyed.block.Identities[r.Identity].Reasons.Relayed() {
		addMessages(&p.relayed, r.Count)
	}
	switch {
	case !r.Outcome.Compliant():
		if e.dkim == signatureFails {
			addMessages(&p.broken, r.Count)
		}
		j.fail(p, e.failure, share.Day, r.Count)
	case !r.Outcome.SPF():
		addMessages(&p.dkimOnly, r.Count)
		if e.key != "" && (len(p.keys) < maxGroups || p.keys[e.key] > 0) {
			if p.keys == nil {
				p.keys = make(map[string]int64)
			}
			p.keys[strings.Clone(e.key)] += r.Count
		}
	}
}

// use counts a message for the key that it is signed with.
func (j *judge) use(e *evaluation, r *rollup.Record) {
	if e.key == "" || !r.Outcome.DKIM() {
		return
	}
	of := j.uses[e.key]
	if of == nil {
		if len(j.uses) >= maxKeys {
			return
		}
		of = new(keyUse)
		j.uses[strings.Clone(e.key)] = of
	}
	addMessages(&of.messages, r.Count)
	if r.Outcome.SPF() {
		addMessages(&of.both, r.Count)
	}
}

// fail adds messages to a group of a profile.
func (j *judge) fail(p *profile, f failure, day dmarcd.Day, messages int64) {
	if f.spf != spfMissing && f.spf != spfAligned && f.dkim != signedAligned {
		f.from = "" // it does not matter to the cause
	}
	of := p.failures[f]
	if of == nil {
		if len(p.failures) >= maxGroups || j.groups >= maxAllGroups {
			addMessages(&p.unlisted, messages)
			return
		}
		j.groups++
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

func (j *judge) factsOf(share *rollup.Share, address uint32) addressFacts {
	of := &j.atAddress[address]
	if !of.known {
		form := j.keyed.block.Addresses.At(address)
		host := j.hosts[form]
		*of = addressFacts{
			known: true, listed: j.authorised.has(rollup.Address(form)),
			named: host != "" && dmarcd.Covers(j.organization(share.From), host),
		}
	}
	return *of
}

// foremostFailure returns the group with the most messages, and whether there is one.
func (p *profile) foremostFailure() (failure, failed, bool) {
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
	by := make(map[string]int64)
	for f, of := range p.failures {
		switch {
		case f.dkim == signedByOther:
			by[f.signer] += of.messages
		case f.spf == spfOther:
			by[f.checked] += of.messages
		}
	}
	for other, n := range by {
		if n > messages || n == messages && other < name {
			name, messages = other, n
		}
	}
	return name, messages, len(by)
}
