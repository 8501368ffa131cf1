package insight

import (
	"net/netip"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// maxAuthorized is how many networks and names of an SPF record are considered.
const maxAuthorized = 2000

// authorized is what an SPF record lists, with the records that it includes.
type authorized struct {
	networks []netip.Prefix
	// names are the domains that it includes or redirects to.
	names []string
}

// authorizedBy reads the terms that allow mail, as the latest check found them.
func authorizedBy(f *dmarcd.Facts) (a authorized) {
	if f != nil {
		a.read(f.SPF.Tree)
	}
	return a
}

func (a *authorized) read(terms []dmarcd.SPFTerm) {
	for _, t := range terms {
		if len(a.networks)+len(a.names) >= maxAuthorized {
			return
		}
		term := strings.ToLower(strings.TrimPrefix(t.Term, "+"))
		name, value, _ := strings.Cut(term, ":")
		switch name {
		case "ip4", "ip6":
			if network, ok := parseNetwork(value); ok && network.Bits() > 0 {
				a.networks = append(a.networks, network)
			}
		case "include":
			a.names = append(a.names, value)
			a.read(t.Terms)
		default:
			if target, ok := strings.CutPrefix(term, "redirect="); ok {
				a.names = append(a.names, target)
				a.read(t.Terms)
			}
		}
	}
}

// parseNetwork reads an address or a network in the form of SPF.
func parseNetwork(text string) (netip.Prefix, bool) {
	if network, err := netip.ParsePrefix(text); err == nil {
		return network.Masked(), true
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(addr, addr.BitLen()), true
}

// has reports whether the record lists the address itself.
func (a *authorized) has(addr netip.Addr) bool {
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
