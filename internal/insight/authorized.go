package insight

import (
	"cmp"
	"net/netip"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/proposal"
	"github.com/dmarcd/dmarcd/spf"
)

// authorized is what an SPF record lists.
type authorized struct {
	// networks are those of passing terms of the domain's own records: of its SPF record, and of
	// those that it includes within the organizational domain. Wider ones than minListed4 and
	// minListed6 belong to many.
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

// read reads terms. own tells that they are of a record within the organization.
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
