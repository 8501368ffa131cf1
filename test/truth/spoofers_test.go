package truth

import (
	"net/netip"
)

// spoofed returns mail that authenticates as no domain.
func (p *planter) spoofed(sender string, sources []netip.Addr, days map[int]int) flow {
	f := flow{class: Spoofing, sender: sender, sources: sources, spf: fail(p.Name, ""), days: days}
	if p.chance(0.4) {
		f.spf = auth{pick(p, "mail.invalid", "spoofer.example"), "", pick(p, "none", "fail", "neutral")}
	}
	if p.chance(0.2) || p.tags.sp+p.tags.np != "" && p.chance(0.8) {
		f.from = pick(p, "billing.", "secure.login.") + p.Name
	}
	return f
}

// spoofedVolume returns how many spoofed messages there are on a day.
func (p *planter) spoofedVolume() float64 { return max(2, p.volume*p.some(0.02, 0.5)) }

// ownNetwork returns the network of the domain's own servers, or another.
func (p *planter) ownNetwork() origin {
	if p.network.base == "" {
		p.network = pick(p, ordinary...)
	}
	return p.network
}

func spoofersInOwnNetwork(p *planter) {
	in := p.ownNetwork()
	p.plant(p.spoofed(in.base+":others", p.addresses(in, p.between(2, 8)), p.steady(p.spoofedVolume())))
}

// spoofersForged plants spoofers who gave their address a name in the domain.
func spoofersForged(p *planter) {
	in, addr := p.named()
	p.hosts = append(p.hosts, host{addr: addr, name: "smtp." + p.Name, forged: true})
	p.plant(p.spoofed(in.base+":others", []netip.Addr{addr}, p.steady(p.spoofedVolume())))
}

// spoofersInOwnNetworkIPv6 plants them in IPv6 networks next to those of the domain.
func spoofersInOwnNetworkIPv6(p *planter) {
	in := p.ownNetwork()
	if !in.v6.IsValid() {
		in = pick(p, ordinary...)
	}
	var sources []netip.Addr
	for range p.between(1, 4) {
		_, some := p.slash64(in, 3)
		sources = append(sources, some...)
	}
	p.plant(p.spoofed(in.base+":others", sources, p.steady(p.spoofedVolume())))
}

// spoofersAlike plants spoofers whose confirmed name only looks like one in the domain.
func spoofersAlike(p *planter) {
	in, addr := p.named()
	p.hosts = append(p.hosts, host{addr: addr, name: pick(p, "mail."+p.Name+".spoofer.example", "mail-"+p.Name)})
	p.plant(p.spoofed(in.base+":others", []netip.Addr{addr}, p.steady(p.spoofedVolume())))
}

// spoofersExcluded plants spoofers at an address that the SPF record names and does not pass.
func spoofersExcluded(p *planter) {
	in := pick(p, remote...)
	source := p.address(in)
	p.spf = append(p.spf, pick(p, "-", "~", "?")+"ip4:"+source.String())
	p.plant(p.spoofed(in.base+":others", []netip.Addr{source}, p.steady(p.spoofedVolume())))
}

// spoofersPartly plants spoofers: a third of their mail passes SPF for one of their domains, or
// receivers consider a few messages forwarded.
func spoofersPartly(p *planter) {
	in := pick(p, remote...)
	f := p.spoofed(in.base+":others", p.addresses(in, p.between(1, 3)), p.steady(p.spoofedVolume()))
	p.plant(f)
	if p.chance(0.5) {
		f.spf, f.days = pass("spoofer.example", ""), p.part(f.days, 0.5)
	} else {
		f.reason, f.days = "forwarded", map[int]int{p.between(yesterday, span): f.messages() / 20}
	}
	p.plant(f)
}

// spoofersListed plants spoofers in a network that the SPF record lists, but that is too wide to be
// one's own.
func spoofersListed(p *planter) {
	p.spf = append(p.spf, "ip4:"+wide.v4.String())
	f := p.spoofed(wide.base+":others", p.addresses(wide, p.between(2, 5)), p.steady(p.spoofedVolume()))
	f.spf = auth{"mail.invalid", "", "none"} // with an envelope of the domain it would pass
	p.plant(f)
}

// spoofersHosted plants them in a network that it includes from a hosting company.
func spoofersHosted(p *planter) {
	in := pick(p, hosting...)
	p.spf = append(p.spf, "include:"+in.include())
	f := p.spoofed(in.base+":others", p.addresses(in, p.between(2, 5)), p.steady(p.spoofedVolume()))
	f.spf = auth{"mail.invalid", "", "none"}
	p.plant(f)
}

func spoofersUnrouted(p *planter) {
	p.plant(p.spoofed(unrouted.base+":others", p.addresses(unrouted, p.between(2, 20)), p.steady(p.spoofedVolume())))
}

// scattered plants single messages from many networks.
func scattered(p *planter) {
	for range p.between(8, 30) {
		in := pick(p, append([]origin{unrouted}, remote...)...)
		p.plant(p.spoofed(in.base+":others", p.addresses(in, 1), map[int]int{p.between(oldBefore, span): 1}))
	}
}

// burst plants much spoofing on one to three days.
func burst(p *planter) {
	begin := p.between(oldBefore, span-2)
	for range p.between(1, 3) {
		in := pick(p, append([]origin{p.ownNetwork()}, remote...)...)
		days := map[int]int{}
		for day := range p.between(1, 3) {
			days[begin+day] = int(max(10, p.volume*p.some(0.5, 8)))
		}
		p.plant(p.spoofed(in.base+":others", p.addresses(in, p.between(3, 20)), days))
	}
}

// botnet plants spoofers in many networks that add a signature with a key that never existed.
func botnet(p *planter) {
	for _, i := range p.Perm(len(remote))[:8] {
		f := p.spoofed(remote[i].base+":others", p.addresses(remote[i], 2), p.during(p.spoofedVolume()/4, oldBefore, span))
		f.dkim = []auth{fail(p.Name, "default")}
		p.plant(f)
	}
}

// returningSpoofers plants spoofers that were seen two months ago, and in the last days.
func returningSpoofers(p *planter) {
	in := pick(p, remote...)
	days := map[int]int{p.between(before-20, before): 5}
	for range p.between(20, 60) {
		days[p.between(yesterday, newSince)]++
	}
	p.plant(p.spoofed(in.base+":others", p.addresses(in, p.between(1, 3)), days))
}

// newSpoofers plants spoofers that were first seen a few days ago.
func newSpoofers(p *planter) {
	in := pick(p, remote...)
	days := map[int]int{}
	for range p.between(1, 60) {
		days[p.between(yesterday, newSince)]++
	}
	p.plant(p.spoofed(in.base+":others", p.addresses(in, p.between(1, 5)), days))
}
