package proposal

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/spf"
)

// draft is a record that is being changed.
type draft struct {
	terms   []spf.Term
	changes []Change
}

// String returns the text of the record. Terms are as published.
func (d draft) String() string {
	var b strings.Builder
	b.WriteString("v=spf1")
	for _, t := range d.terms {
		b.WriteString(" " + t.Text)
	}
	return b.String()
}

// evaluated returns the terms that receivers evaluate, in order: mechanisms up to all, or the
// redirect last.
func (d draft) evaluated() []spf.Term {
	var terms, last []spf.Term
	for _, t := range d.terms {
		switch {
		case t.Kind == spf.All:
			return append(terms, t)
		case t.Kind == spf.Redirect:
			last = []spf.Term{t}
		case !t.Kind.Modifier():
			terms = append(terms, t)
		}
	}
	return append(terms, last...)
}

// without returns the draft without the terms that have a reason for removal.
func (d draft) without(reason func(i int, t spf.Term) string) draft {
	shorter := draft{changes: slices.Clone(d.changes)}
	for i, t := range d.terms {
		if why := reason(i, t); why != "" {
			shorter.changes = append(shorter.changes, Change{Remove, t.Text, why})
			continue
		}
		shorter.terms = append(shorter.terms, t)
	}
	return shorter
}

// with returns the draft with another term, which passes: a network after the networks at the
// beginning, so that it needs no lookups; another mechanism before all.
func (d draft) with(term spf.Term, change Change) draft {
	stays := func(t spf.Term) bool { return t.Kind != spf.All }
	if term.Kind == spf.IP4 || term.Kind == spf.IP6 {
		stays = func(t spf.Term) bool { return (t.Kind == spf.IP4 || t.Kind == spf.IP6) && t.Qualifier == spf.Pass }
	}
	at := slices.IndexFunc(d.terms, func(t spf.Term) bool { return !stays(t) })
	if at < 0 {
		at = len(d.terms)
	}
	return draft{slices.Insert(slices.Clone(d.terms), at, term), append(slices.Clone(d.changes), change)}
}

// The reasons for which terms are removed.
const (
	whyInvalid   = "is not a valid term"
	whyRepeated  = "may occur only once"
	whyUnused    = "never passes SPF for your domain"
	whyDuplicate = "is a duplicate"
	whyVoid      = "returns nothing"
)

// repaired returns the record to change as a draft, without the terms that are an error for every
// receiver.
func (t *trial) repaired() draft {
	record, _ := spf.Parse(t.base)
	d := draft{terms: record.Terms}
	if len(t.published) > 1 {
		d.changes = []Change{{Merge, "", fmt.Sprintf("receivers treat %d SPF records as an error", len(t.published))}}
	}
	return d.without(func(i int, term spf.Term) string {
		switch {
		case term.Kind == spf.Invalid:
			return whyInvalid
		case (term.Kind == spf.Redirect || term.Kind == spf.Exp) &&
			slices.ContainsFunc(record.Terms[:i], func(o spf.Term) bool { return o.Kind == term.Kind }):
			return whyRepeated
		case term.Kind == spf.Include && !term.Domain.Dynamic():
			records, known := t.records[dns.Name(term.Domain.String())]
			switch {
			case known && len(records) == 0:
				return facts.SPFNoRecord
			case len(records) > 1:
				return facts.SPFMultipleRecords
			}
		}
		return ""
	})
}

// extended adds terms for failing mail that the draft does not list: those of earlier records, then
// the addresses of own servers.
func (t *trial) extended(d draft, history []*facts.Facts) draft {
	var need []source
	for _, s := range t.sources {
		if s.fails > 0 && s.today != passes && !t.lists(d, s.addr) {
			need = append(need, s)
		}
	}
	for _, f := range history[:min(len(history), maxHistory)] {
		if f == nil || dns.Name(f.Domain) != t.domain {
			continue
		}
		earlier, err := spf.Parse(f.SPF.Record)
		if err != nil {
			continue
		}
		for _, term := range earlier.Terms {
			if !restorable(term) || hasTerm(d.terms, term) {
				continue
			}
			var listed int64
			rest := slices.DeleteFunc(slices.Clone(need), func(s source) bool {
				lists := t.matches(term, s.addr) == passes
				if lists {
					listed += s.fails
				}
				return lists
			})
			if listed > 0 {
				need = rest
				d = d.with(term, Change{Restore, term.Text, "was in the SPF record before, and lists " + failing(listed)})
			}
		}
	}
	for _, n := range folded(need) {
		text := "ip4:"
		if n.Addr().Is6() {
			text = "ip6:"
		}
		if text += n.String(); n.IsSingleIP() {
			text = text[:strings.LastIndexByte(text, '/')]
		}
		d = d.with(ParseTerm(text), Change{Add, text, "lists " + n.describe()})
	}
	return d
}

// restorable reports whether a term of an earlier record may be restored: networks of a plausible
// size, and includes, whose records must be those of the last check. Hosts may have other
// addresses now.
func restorable(t spf.Term) bool {
	if t.Qualifier != spf.Pass {
		return false
	}
	record, _ := spf.Parse("v=spf1 " + t.Text)
	broad := slices.ContainsFunc(record.Problems, func(p spf.Problem) bool { return p.Kind == spf.BroadRange })
	return !broad && (t.Kind == spf.IP4 || t.Kind == spf.IP6 || t.Kind == spf.Include)
}

// sameTerm reports whether two terms match the same addresses, regardless of their qualifiers.
func sameTerm(a, b spf.Term) bool {
	a.Qualifier, b.Qualifier = spf.Pass, spf.Pass
	return a.Kind == b.Kind && strings.EqualFold(a.String(), b.String())
}

func hasTerm(terms []spf.Term, term spf.Term) bool {
	return slices.ContainsFunc(terms, func(t spf.Term) bool { return sameTerm(t, term) })
}

// matching returns the draft without terms that never match.
func (t *trial) matching(d draft) draft {
	return d.without(func(i int, term spf.Term) string {
		switch {
		case term.Kind.Modifier():
			return ""
		case hasTerm(d.terms[:i], term):
			return whyDuplicate
		case (term.Kind == spf.A || term.Kind == spf.MX) && t.isVoid(term):
			return whyVoid
		}
		return ""
	})
}

// used returns the draft without includes that pass for no mail.
func (t *trial) used(d draft) draft {
	return d.without(func(_ int, term spf.Term) string {
		if term.Kind != spf.Include || term.Qualifier != spf.Pass || len(t.sources) == 0 {
			return ""
		}
		// Also mail that fails because of the limit may need it.
		if slices.ContainsFunc(t.sources, func(s source) bool { return t.matches(term, s.addr) != fails }) {
			return ""
		}
		return whyUnused
	})
}

// isVoid reports whether the host of an a or mx term is known to have no address.
func (t *trial) isVoid(term spf.Term) bool {
	name := t.domain
	if !term.Domain.IsZero() {
		name = dns.Name(term.Domain.String())
	}
	key := hostKey{name: name, mx: term.Kind == spf.MX}
	ipv4, known := t.hosts[key]
	key.ipv6 = true
	return known && len(ipv4.addrs)+len(t.hosts[key].addrs) == 0
}

// network is a network of failing mail from own servers.
type network struct {
	netip.Prefix

	fails int64
	hosts []string
}

func (n network) describe() string {
	if len(n.hosts) != 1 {
		return failing(n.fails)
	}
	return n.hosts[0] + " with " + failing(n.fails)
}

// folded returns the networks of own servers, those with the most mail if there are too many. It
// merges neighbours if the result contains no other addresses, and IPv6 addresses of a /64.
func folded(sources []source) []network {
	var networks []network
	for _, s := range sources {
		if s.service != "" {
			continue
		}
		n := network{Prefix: netip.PrefixFrom(s.addr, s.addr.BitLen()), fails: s.fails}
		if s.host != "" {
			n.hosts = []string{s.host}
		}
		networks = append(networks, n)
	}
	const subnet, shortest = 64, 24
	networks = mergeNetworks(networks, func(n network) int {
		if n.Addr().Is6() {
			return subnet
		}
		return n.Bits()
	})
	for range fullIPv4 - shortest {
		networks = mergeNetworks(networks, func(n network) int {
			sibling := func(o network) bool {
				return o.Prefix != n.Prefix && o.Bits() == n.Bits() && o.Addr().Is4() &&
					netip.PrefixFrom(n.Addr(), n.Bits()-1).Contains(o.Addr())
			}
			if n.Addr().Is4() && n.Bits() > shortest && slices.ContainsFunc(networks, sibling) {
				return n.Bits() - 1
			}
			return n.Bits()
		})
	}
	slices.SortStableFunc(networks, func(a, b network) int { return cmp.Compare(b.fails, a.fails) })
	networks = networks[:min(len(networks), maxAdded)]
	slices.SortFunc(networks, func(a, b network) int { return a.Compare(b.Prefix) })
	return networks
}

const fullIPv4 = 32

// mergeNetworks shortens networks to the given prefix lengths and merges those that become equal.
// Others are unchanged.
func mergeNetworks(networks []network, bits func(network) int) []network {
	groups := make(map[netip.Prefix][]network)
	var order []netip.Prefix
	for _, n := range networks {
		key, _ := n.Addr().Prefix(bits(n))
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], n)
	}
	var merged []network
	for _, key := range order {
		n := groups[key][0]
		for _, other := range groups[key][1:] {
			n.Prefix = key
			n.fails += other.fails
			n.hosts = append(slices.Clone(n.hosts), other.hosts...)
		}
		slices.Sort(n.hosts)
		n.hosts = slices.Compact(n.hosts)
		merged = append(merged, n)
	}
	return merged
}

// failing formats a number of failing messages.
func failing(n int64) string {
	return phrase.Count(n, "failing message")
}
