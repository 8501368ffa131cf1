package truth

import (
	"fmt"
	"net/netip"
	"strings"
)

// The shares of the legitimate mail of a domain.
const (
	least, most             = 0.04, 0.25   // of a sender beside the main one
	fewLeast, fewMost       = 0.001, 0.004 // of what must not matter
	forwarded, mostForwards = 0.01, 0.04
)

// ownServer returns mail of servers that the SPF record lists, in one of some networks.
func (p *planter) ownServer(in []origin) flow {
	p.network = pick(p, in...)
	sources := p.addresses(p.network, p.between(1, 3))
	for i, source := range sources {
		switch name := fmt.Sprintf("out%d.%s", i, p.Name); p.IntN(4) {
		case 0:
			p.spf = append(p.spf, "ip4:"+source.String())
		case 1:
			p.include = append(p.include, "ip4:"+source.String())
		case 2:
			p.spf = append(p.spf, "a:"+name)
			p.record("%s. A %s", name, source)
		default:
			p.spf = append(p.spf, "mx:"+name)
			p.record("%s. MX 10 %s.", name, name)
			p.record("%s. A %s", name, source)
		}
	}
	return flow{class: Legitimate, sender: p.network.base + ":yours", sources: sources, spf: pass(p.Name, ""), dkim: p.mostlySigned("mail")}
}

// mostlySigned chooses whether the main sender signs.
func (p *planter) mostlySigned(selector string) []auth {
	if p.chance(0.2) {
		return nil
	}
	p.key = selector
	return []auth{p.sign(selector)}
}

func ownServers(p *planter) {
	f := p.ownServer(ordinary)
	f.days = p.steady(p.volume)
	p.plant(f)
}

func ownHosting(p *planter) {
	f := p.ownServer(hosting)
	p.used[p.network.base] = true
	f.days = p.steady(p.volume)
	p.plant(f)
}

// ownNames plants servers that share a host name and a key, of which SPF lists one.
func ownNames(p *planter) {
	p.key = "mail"
	signature := p.sign(p.key)
	name := fmt.Sprintf("pool%d.rented.example", p.Number)
	for i := range 3 {
		in, addr := p.named()
		p.hosts = append(p.hosts, host{addr: addr, name: name})
		f := flow{
			class: Legitimate, sender: in.base + ":yours", sources: []netip.Addr{addr},
			spf: auth{p.Name, "", "softfail"}, dkim: []auth{signature}, days: p.steady(p.volume / 3),
		}
		if i == 0 {
			p.network = in
			p.spf = append(p.spf, "ip4:"+addr.String())
			f.spf = pass(p.Name, "")
		}
		p.plant(f)
	}
}

func ownIPv6(p *planter) {
	p.network = pick(p, ordinary...)
	network, sources := p.slash64(p.network, span)
	p.spf = append(p.spf, "ip6:"+network.String())
	p.plant(flow{
		class: Legitimate, sender: p.network.base + ":yours", sources: sources,
		spf: pass(p.Name, ""), dkim: p.mostlySigned("mail"), days: p.steady(p.volume),
	})
}

// microsoftSources returns some addresses of Microsoft 365.
func (p *planter) microsoftSources() []netip.Addr {
	var all []netip.Addr
	for _, i := range p.Perm(microsoftHosts)[:p.between(3, 6)] {
		all = append(all, microsoft.at(i+1))
	}
	return all
}

func tenantBySPF(p *planter) {
	p.used[microsoft.base] = true
	p.spf = append(p.spf, "include:"+microsoft.include())
	p.plant(flow{
		class: Legitimate, sender: microsoft.base + ":yours", sources: p.microsoftSources(),
		spf: pass(p.Name, ""), dkim: p.mostlySigned("selector1"), days: p.steady(p.volume),
	})
}

func tenantByDKIM(p *planter) {
	p.used[microsoft.base] = true
	p.key, p.byKey = "selector1", true
	p.plant(flow{
		class: Legitimate, sender: microsoft.base + ":yours", sources: p.microsoftSources(),
		spf: auth{p.Name, "", "softfail"}, dkim: []auth{p.sign(p.key)}, days: p.steady(p.volume),
	})
}

func tenantElsewhere(p *planter) {
	at := p.take(providers[:3])
	p.spf = append(p.spf, "include:"+at.include())
	p.plant(flow{
		class: Legitimate, sender: at.base + ":yours", sources: p.addresses(at, p.between(2, 6)),
		spf: pass(p.Name, ""), dkim: p.mostlySigned("mail"), days: p.steady(p.volume),
	})
}

func behindGateway(p *planter) {
	at := p.take(gateways)
	p.spf = append(p.spf, "include:"+at.include())
	p.plant(flow{
		class: Legitimate, sender: at.base + ":yours", sources: p.addresses(at, p.between(2, 4)),
		spf: pass(p.Name, ""), dkim: p.mostlySigned("gw"), days: p.steady(p.volume),
	})
}

// pool plants servers that share a key and that SPF does not list.
func pool(p *planter) {
	p.key, p.byKey = "pool", true
	p.poolMail(p.volume, []auth{p.sign(p.key)})
}

// widePool plants a pool in three networks that share the key.
func widePool(p *planter) {
	p.key, p.byKey = "pool", true
	signature := p.sign(p.key)
	for _, i := range p.Perm(len(ordinary))[:3] {
		p.plant(flow{
			class: Legitimate, sender: ordinary[i].base + ":yours", sources: p.addresses(ordinary[i], 17),
			spf: auth{p.Name, "", "softfail"}, dkim: []auth{signature}, days: p.steady(p.volume / 3),
		})
	}
}

// poolMail plants mail of a pool, and returns its flow.
func (p *planter) poolMail(perDay float64, dkim []auth) *flow {
	first := pick(p, ordinary...)
	if p.network.base == "" {
		p.network = first
	}
	f := flow{
		class: Legitimate, sender: first.base + ":yours", sources: p.addresses(first, 50),
		spf: auth{p.Name, "", "softfail"}, dkim: dkim, days: p.steady(perDay),
	}
	if p.chance(0.5) {
		f.spf = pass(fmt.Sprintf("bounces%d.example", p.Number), "") // of the platform
	}
	p.plant(f)
	return &f
}

// serviceSources returns addresses of a service: its own, or those of a cloud, where only the
// domains that pass show whose they are.
func (p *planter) serviceSources(at origin) []netip.Addr {
	if p.chance(0.2) {
		at = pick(p, remote...)
	}
	return p.addresses(at, p.between(1, 4))
}

// serviceMail returns aligned mail of a service.
func (p *planter) serviceMail(at origin, perDay float64) flow {
	f := flow{
		class: Legitimate, sender: at.base, sources: p.serviceSources(at),
		spf: pass("bounces."+at.domain, ""), dkim: []auth{p.sign(at.base), pass(at.domain, "s")}, days: p.steady(perDay),
	}
	switch p.IntN(3) {
	case 0: // an envelope in the domain of the customer
		f.spf = pass("em."+p.Name, "")
		p.record("em.%s. TXT \"v=spf1 ip4:%s -all\"", p.Name, at.v4)
	case 1:
		f.dkim = f.dkim[:1]
	}
	return f
}

func onlyService(p *planter) {
	f := p.serviceMail(p.take(services), p.volume)
	p.key, p.byKey = f.dkim[0].selector, true
	p.plant(f)
}

func alignedService(p *planter) {
	p.plant(p.serviceMail(p.take(services), p.volume*p.some(least, most)))
}

// subdomains plants mail with From addresses below the domain, of a server and of a service.
func subdomains(p *planter) {
	at := pick(p, ordinary...)
	name := "shop." + p.Name
	server := p.address(at)
	p.record("%s. TXT \"v=spf1 ip4:%s -all\"", name, server)
	p.plant(flow{
		class: Legitimate, sender: at.base + ":yours", sources: []netip.Addr{server}, from: name,
		spf: pass(name, ""), days: p.steady(p.volume * p.some(least, most)),
	})
	f := p.serviceMail(p.take(services), p.volume*p.some(least, most))
	f.from = "news." + p.Name
	p.plant(f)
}

// namedServer plants a server with a name in the domain, which may share the key of listed ones.
func namedServer(p *planter) {
	in, addr := p.named()
	p.hosts = append(p.hosts, host{addr: addr, name: "app." + p.Name})
	key := p.key
	if key == "" || p.byKey {
		key = "app"
	}
	p.plant(flow{
		class: Legitimate, sender: in.base + ":yours", sources: []netip.Addr{addr},
		spf: auth{p.Name, "", "softfail"}, dkim: []auth{p.sign(key)}, days: p.steady(p.volume * p.some(least, most)),
	})
}

// fewFail plants a few messages of the main sender that do not authenticate.
func fewFail(p *planter) {
	if p.volume < 100 {
		return
	}
	f := *p.flows[0]
	if !strings.HasSuffix(f.sender, ":yours") {
		return // a service: what does not align there is the mail of another sender
	}
	f.spf, f.dkim, f.days = auth{p.Name, "", "temperror"}, nil, p.few()
	p.plant(f)
}
