package insight

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/proposal"
	"github.com/dmarcd/dmarcd/spf"
)

// Domain is the knowledge about a domain besides its mail.
type Domain struct {
	ID   dmarcd.DomainID
	Name string
	// Facts are the facts of Check, the latest full check; nil if there is none.
	Facts *facts.Facts
	Check dmarcd.CheckID
	// Checks are the full checks of the period, the latest first. A cause is derived from the check
	// that was valid at the time; if Checks is empty, from Facts.
	Checks []facts.StoredCheck
	// Classes are the classes that the team assigned, by the keys of senders.
	Classes map[string]dmarcd.Class
	// brief is set by LoadDomains instead of Facts and Checks.
	brief *brief
}

// authorized returns what the SPF record authorizes.
func (d *Domain) authorized() authorized {
	if d.brief != nil {
		return d.brief.authorized
	}
	return authorizedBy(d.Facts)
}

// factsAt returns the facts of the check that was valid on a day; before the first check, its facts.
func (d *Domain) factsAt(day dmarcd.Day) *facts.Facts {
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

// spfBrokenSince returns since when the SPF record had been broken on a day: the day of the first of
// the checks without a valid record in between, or the day itself if no check shows it.
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
	known := ""
	if d.brief != nil {
		known = d.brief.organization
	} else if d.Facts != nil {
		known = d.Facts.DMARC.OrganizationalDomain
	}
	if dmarcd.Covers(known, from) {
		return known
	}
	return dmarc.LegacyOrganization(from)
}

// SetDomains sets the facts about the domain of the mail, or about all its domains. Senders are found
// and assessed with them. It must be called before any other method. LoadDomains is for many domains.
func (m *Mail) SetDomains(domains ...Domain) { m.about = domains }

// brief is the part of a check that classes depend on. It is enough for classes but not for causes, and
// up to a hundred times smaller than the facts.
type brief struct {
	organization string // "" if it is not known
	authorized   authorized
}

// LoadDomains is SetDomains for any number of domains: it reads a brief of their latest checks.
// Assessments then have no causes.
func (m *Mail) LoadDomains(ctx context.Context) error {
	found := make(map[dmarcd.CheckID]*brief)
	cache, team := m.service.briefs, m.team.ID()
	known := func(check dmarcd.CheckID) bool {
		b, ok := cache.Get(briefKey{team, check})
		if ok {
			found[check] = b
		}
		return ok
	}
	domains, err := m.team.SenderDomains(ctx, known, func(check dmarcd.CheckID, facts *facts.Facts) {
		found[check] = &brief{organization: facts.DMARC.OrganizationalDomain, authorized: authorizedBy(facts)}
		cache.Put(briefKey{team, check}, found[check], found[check].size())
	})
	if err != nil {
		return fmt.Errorf("read domains: %w", err)
	}
	m.about = make([]Domain, len(domains))
	for i, d := range domains {
		m.about[i] = Domain{ID: d.ID, Name: d.Name, Check: d.Check, Classes: d.Classes, brief: found[d.Check]}
		if m.about[i].brief == nil {
			m.about[i].brief = new(brief)
		}
	}
	return nil
}

// maxBriefs limits the cache of briefs for all teams, in bytes: enough for about 20,000 domains.
const maxBriefs = 16 << 20

// briefKey is a check, which does not change once it is stored.
type briefKey struct {
	team  dmarcd.TeamID
	check dmarcd.CheckID
}

// size estimates the memory of a brief, in bytes.
func (b *brief) size() int {
	const entry, network, name = 200, 32, 16
	size := entry + network*cap(b.authorized.networks) + name*cap(b.authorized.names) + len(b.organization)
	for _, n := range b.authorized.names {
		size += len(n)
	}
	return size
}

// authorized lists the networks and domains that an SPF record authorizes.
type authorized struct {
	// networks are the networks in passing terms of the SPF record, and of records that it includes
	// within the organizational domain. Networks wider than minListed4 and minListed6 are left out:
	// they belong to many senders.
	networks []netip.Prefix
	// names are the domains that it includes or redirects to.
	names []string
}

const minListed4, minListed6 = 20, 48

// authorizedBy reads the terms that allow mail, as the latest check found them.
func authorizedBy(f *facts.Facts) (a authorized) {
	if f != nil {
		organization := cmp.Or(f.DMARC.OrganizationalDomain, dmarc.LegacyOrganization(f.Domain))
		a.read(f.SPF.Tree, organization, true)
	}
	return a
}

// read adds the terms of a record. own is true for a record within the organizational domain.
func (a *authorized) read(terms []facts.SPFTerm, organization string, own bool) {
	for _, t := range terms {
		if len(a.networks)+len(a.names) >= maxAuthorizedBy {
			return
		}
		term := proposal.ParseTerm(t.Term)
		switch {
		case term.Qualifier != spf.Pass && term.Kind != spf.Redirect:
		case own && (term.Kind == spf.IP4 || term.Kind == spf.IP6):
			a.add(term.Network.Masked())
		case own && (term.Kind == spf.A || term.Kind == spf.MX):
			for _, network := range t.Addresses {
				a.add(network)
			}
		case term.Kind == spf.Include || term.Kind == spf.Redirect:
			name := strings.ToLower(term.Domain.String())
			a.names = append(a.names, name)
			a.read(t.Terms, organization, own && dmarcd.Covers(organization, name))
		}
	}
}

func (a *authorized) add(network netip.Prefix) {
	least := minListed6
	if network.Addr().Is4() {
		least = minListed4
	}
	if network.Bits() >= least {
		a.networks = append(a.networks, network)
	}
}

// lists reports whether the domain itself lists the address.
func (a *authorized) lists(addr netip.Addr) bool {
	for _, network := range a.networks {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}

// includes reports whether the record includes one of the domains, or a name below it.
func (a *authorized) includes(domains []string) bool {
	for _, name := range a.names {
		for _, domain := range domains {
			if dmarcd.Covers(domain, name) {
				return true
			}
		}
	}
	return false
}
