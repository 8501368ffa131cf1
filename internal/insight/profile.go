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
	ID   dmarcd.DomainID
	Name string
	// Facts is what the latest full check, Check, found, nil if there is none.
	Facts *dmarcd.Facts
	Check dmarcd.CheckID
	// Checks are the full checks of the period, the latest first: causes follow from what
	// they found at the time. Without them the latest check counts.
	Checks []dmarcd.StoredCheck
	// Classes are those that the team gave senders, by their keys.
	Classes map[string]dmarcd.Class
}

// factsAt returns what the check found that was valid on a day.
func (d *Domain) factsAt(day dmarcd.Day) *dmarcd.Facts {
	for _, check := range d.Checks {
		if dmarcd.DayOf(check.FirstAt) <= day && check.Check.Facts != nil {
			return check.Check.Facts
		}
	}
	if len(d.Checks) > 0 { // the first check came later
		return d.Checks[len(d.Checks)-1].Check.Facts
	}
	return d.Facts
}

// spfBrokenSince returns the day from which the checks found the SPF record broken, up to the
// one that was valid on a day; that day if none of them did.
func (d *Domain) spfBrokenSince(day dmarcd.Day) dmarcd.Day {
	since := day
	for _, check := range d.Checks {
		switch facts := check.Check.Facts; {
		case dmarcd.DayOf(check.FirstAt) > day:
			continue
		case facts == nil || facts.SPF.Status == "ok" || facts.SPF.Status == "none":
			return since
		}
		since = dmarcd.DayOf(check.FirstAt)
	}
	return since
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
	maxGroups      = 24
	maxAllProfiles = MaxListed
	maxAllGroups   = 2 * MaxListed
	maxAllKeys     = MaxListed / 2
)

// remembered is how much is remembered of all senders of all domains.
type remembered struct{ profiles, groups, keys int }

// profile is what the mail of a sender says about it, in messages.
type profile struct {
	sum
	// dkimOnly pass by DKIM alone, relayed are those that receivers took for forwarded,
	// broken fail with a signature of the organization that does not verify.
	dkimOnly, relayed, broken int64
	// listed fail and come from addresses that the SPF record lists, named from hosts
	// whose names are in the organization.
	listed, named int64
	// failures are the groups of messages that fail, and unlisted those beyond maxGroups.
	failures map[failure]*failed
	unlisted int64
	// keys are messages that pass by DKIM alone, by the key.
	keys map[string]int64
	// rfc9989 and rfc7489 are the messages that fail under the policy that is tried out, by what
	// receivers of each RFC apply to them.
	rfc9989, rfc7489 [dmarc.Reject + 1]int64
}

// failed is a group of messages that fail.
type failed struct {
	messages    int64
	first, last dmarcd.Day
}

// keyUse is how a key is used by all senders: messages, and those that pass SPF, too.
type keyUse struct{ messages, both int64 }

// docket is what is known of the senders of one domain, or of all together.
type docket struct {
	domain     *Domain
	classes    map[string]dmarcd.Class // of the team's senders, for all domains
	authorized authorized
	profiles   []profile
	places     map[slot]int // of profiles
	remembered *remembered
	uses       map[string]*keyUse
	days       map[dmarcd.Day]struct{}
	// policy is tried out on the mail, nil if none is; existing are subdomains that
	// exist.
	policy   *Policy
	existing map[string]struct{}
}

func (j *judge) newDocket(domain *Domain) *docket {
	return &docket{
		domain: domain, classes: j.classes, remembered: &j.remembered, authorized: authorizedBy(domain.Facts), places: make(map[slot]int), uses: make(map[string]*keyUse),
		days: make(map[dmarcd.Day]struct{}),
	}
}

// profile returns that of the sender at a slot. Where there are too many, the mail of the
// others is that of the unknown network.
func (d *docket) profile(at slot) *profile {
	place, known := d.places[at]
	if !known && d.remembered.profiles >= maxAllProfiles {
		at = slot(noNetwork) + 1
		place, known = d.places[at]
	}
	if !known {
		d.remembered.profiles++
		place = len(d.profiles)
		d.places[at] = place
		d.profiles = append(d.profiles, profile{})
	}
	return &d.profiles[place]
}

// judge gathers the profiles of senders.
type judge struct {
	*keyed
	evaluations, legacy evaluations
	hosts               map[string]string
	remembered          remembered
	classes             map[string]dmarcd.Class
	// dockets are by domain; where there are none, all is that of all domains.
	dockets map[dmarcd.DomainID]*docket
	all     *docket
	current *docket
}

// newJudge returns what gathers profiles. The caller sets slot, which is 0 for senders
// that are left out, and all or dockets.
func (m *Mail) newJudge(group Group) *judge {
	j := &judge{keyed: m.keyed(group), hosts: m.whole.hosts, classes: m.service.classes}
	j.evaluations.organization = func(from string) string { return j.current.domain.organization(from) }
	j.legacy.organization = dmarc.LegacyOrganization
	return j
}

func (j *judge) begin(b *rollup.Block) {
	j.keyed.begin(b)
	j.evaluations.begin(b)
	j.legacy.begin(b)
}

func (j *judge) add(share *rollup.Share, records []rollup.Record) {
	if j.current = cmp.Or(j.all, j.dockets[share.Domain]); j.current == nil {
		return
	}
	j.current.days[share.Day] = struct{}{}
	for i := range records {
		j.addRecord(share, &records[i])
	}
}

func (j *judge) addRecord(share *rollup.Share, r *rollup.Record) {
	e := j.evaluations.of(share, r)
	j.current.use(e, r)
	at := j.of(share, r)
	if at == 0 {
		return
	}
	p := j.current.profile(at)
	p.add(share, r)
	if j.current.policy != nil {
		j.try(p, share, r, e)
	}
	if j.block.Identities[r.Identity].Reasons.Relayed() {
		addMessages(&p.relayed, r.Count)
	}
	switch {
	case !r.Outcome.Compliant():
		j.fail(p, e, share, r)
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

// fail adds messages that fail.
func (j *judge) fail(p *profile, e *evaluation, share *rollup.Share, r *rollup.Record) {
	if e.dkim == signatureFails {
		addMessages(&p.broken, r.Count)
	}
	form := j.block.Addresses.At(r.Address)
	if j.current.authorized.has(rollup.Address(form)) {
		addMessages(&p.listed, r.Count)
	}
	if host := j.hosts[form]; host != "" && dmarcd.Covers(j.current.domain.organization(share.From), host) {
		addMessages(&p.named, r.Count)
	}
	j.current.fail(p, e.failure, share.Day, r.Count)
}

// use counts a message for the key that it is signed with.
func (d *docket) use(e *evaluation, r *rollup.Record) {
	if e.key == "" || !r.Outcome.DKIM() {
		return
	}
	of := d.uses[e.key]
	if of == nil {
		if d.remembered.keys >= maxAllKeys {
			return
		}
		d.remembered.keys++
		of = new(keyUse)
		d.uses[strings.Clone(e.key)] = of
	}
	addMessages(&of.messages, r.Count)
	if r.Outcome.SPF() {
		addMessages(&of.both, r.Count)
	}
}

// fail adds messages to a group of a profile.
func (d *docket) fail(p *profile, f failure, day dmarcd.Day, messages int64) {
	if f.spf != spfMissing && f.spf != spfAligned && f.dkim != signedAligned {
		f.from = "" // it does not matter to the cause
	}
	of := p.failures[f]
	if of == nil {
		if len(p.failures) >= maxGroups || d.remembered.groups >= maxAllGroups {
			addMessages(&p.unlisted, messages)
			return
		}
		d.remembered.groups++
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
