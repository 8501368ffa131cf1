package truth

import (
	"fmt"
	"net/netip"
)

// fix makes a sender the one to fix.
func (p *planter) fix(sender string) { p.Action.Sender = sender }

// brokenVolume returns how many messages of a broken sender there are on a day.
func (p *planter) brokenVolume() float64 { return p.volume * p.some(2*least, most) }

func forgottenNamed(p *planter) {
	in, addr := p.named()
	p.hosts = append(p.hosts, host{addr: addr, name: pick(p, "legacy.", "mx1.branch.") + p.Name})
	f := flow{
		class: Legitimate, sender: in.base + ":yours", sources: []netip.Addr{addr},
		spf: fail(p.Name, ""), days: p.steady(p.brokenVolume()),
	}
	p.plant(f)
	if p.chance(0.3) { // receivers took a part for forwarded
		f.reason, f.days = "forwarded", p.steady(p.brokenVolume())
		p.plant(f)
	}
	p.fix(in.base + ":yours")
}

// forgottenKey plants a server that signs a part of its mail, with a key of its own.
func forgottenKey(p *planter) {
	in := pick(p, ordinary...)
	volume := p.brokenVolume()
	signed := flow{
		class: Legitimate, sender: in.base + ":yours", sources: p.addresses(in, p.between(1, 2)),
		spf: auth{p.Name, "", "softfail"}, dkim: []auth{p.sign("shop")}, days: p.steady(volume * p.some(0.3, 0.6)),
	}
	unsigned := signed
	unsigned.dkim, unsigned.days = nil, p.steady(volume)
	p.plant(signed)
	p.plant(unsigned)
	p.fix(signed.sender)
}

// listedElsewhere plants a listed server whose envelope has the domain of its host.
func listedElsewhere(p *planter) {
	in := pick(p, ordinary...)
	source := p.address(in)
	switch p.IntN(4) {
	case 0:
		p.include = append(p.include, "ip4:"+source.String())
	case 1:
		p.spf = append(p.spf, "ip4:"+netip.PrefixFrom(source, 32).String())
	case 2:
		p.spf = append(p.spf, "a:batch."+p.Name)
		p.record("batch.%s. A %s", p.Name, source)
	default:
		p.spf = append(p.spf, "mx")
		p.record("%s. MX 10 batch.%s.", p.Name, p.Name)
		p.record("batch.%s. A %s", p.Name, source)
	}
	f := flow{
		class: Legitimate, sender: in.base + ":yours", sources: []netip.Addr{source},
		spf: auth{fmt.Sprintf("vm%d.rented.example", p.Number), "", "none"}, days: p.steady(p.brokenVolume()),
	}
	if p.chance(0.5) {
		f.spf.result = "pass"
	}
	p.plant(f)
	p.fix(f.sender)
}

// forgottenTwin plants a server that SPF lists with its IPv4 address only.
func forgottenTwin(p *planter) {
	in, v4 := p.named()
	_, v6 := p.slash64(in, p.between(1, 3)) // the first one has a name
	name := fmt.Sprintf("host%d.rented.example", p.Number)
	p.hosts = append(p.hosts, host{addr: v4, name: name}, host{addr: v6[0], name: name})
	p.spf = append(p.spf, "ip4:"+v4.String())
	p.plant(flow{
		class: Legitimate, sender: in.base + ":yours", sources: []netip.Addr{v4},
		spf: pass(p.Name, ""), days: p.steady(p.brokenVolume()),
	})
	p.plant(flow{
		class: Legitimate, sender: in.base + ":yours", sources: v6,
		spf: fail(p.Name, ""), days: p.steady(p.brokenVolume()),
	})
	p.fix(in.base + ":yours")
}

// rotatedKey plants a server that passes by DKIM alone, until it signs with a key that is not
// published.
func rotatedKey(p *planter) {
	in := pick(p, ordinary...)
	volume, since := 2*p.brokenVolume(), p.between(8, 20)
	old := flow{
		class: Legitimate, sender: in.base + ":yours", sources: p.addresses(in, p.between(1, 3)),
		spf: auth{p.Name, "", "softfail"}, dkim: []auth{p.sign("k1")}, days: p.during(volume, since+1, span),
	}
	rotated := old
	rotated.dkim, rotated.days = []auth{fail(p.Name, "k2")}, p.during(volume, yesterday, since)
	p.plant(old)
	p.plant(rotated)
	p.fix(old.sender)
}

// rotatedAtService plants a service that has another key under the same selector: for some days,
// or for so long that the key passed only before the period.
func rotatedAtService(p *planter) {
	volume := p.brokenVolume()
	old := p.serviceMail(p.take(services), volume)
	if p.chance(0.5) {
		old.days = p.during(volume, 14, span)
	} else {
		old.days = p.during(volume, before-20, before)
	}
	old.spf = pass("bounces."+pickDomain(old.sender), "")
	rotated := old
	rotated.dkim, rotated.days = []auth{fail(p.Name, old.sender)}, p.during(volume, yesterday, 13)
	p.plant(old)
	p.plant(rotated)
	p.fix(old.sender)
}

// pickDomain returns the domain of a service.
func pickDomain(base string) string {
	for _, s := range services {
		if s.base == base {
			return s.domain
		}
	}
	panic("no service " + base)
}

// poolForgets plants a pool of which every address leaves some mail unsigned.
func poolForgets(p *planter) {
	signed := p.poolMail(max(3, p.brokenVolume()), []auth{p.sign("batch")})
	unsigned := *signed
	unsigned.dkim, unsigned.spf, unsigned.days = nil, auth{p.Name, "", "softfail"}, p.part(signed.days, p.some(0.4, 0.8))
	p.plant(unsigned)
	p.fix(signed.sender)
}

// droppedFromSPF plants a server that SPF listed until weeks before the period.
func droppedFromSPF(p *planter) {
	in := pick(p, ordinary...)
	volume := p.brokenVolume()
	listed := flow{
		class: Legitimate, sender: in.base + ":yours", sources: p.addresses(in, 1), spf: pass(p.Name, ""), days: p.during(volume, before-30, before),
	}
	dropped := listed
	dropped.spf, dropped.days = fail(p.Name, ""), p.steady(volume)
	p.plant(listed)
	p.plant(dropped)
	p.fix(listed.sender)
}

// tenantForgets plants a tenant of a mailbox provider of which a part does not authenticate at all.
func tenantForgets(p *planter) {
	at := p.take(providers)
	f := flow{
		class: Legitimate, sender: at.base + ":yours", sources: p.addresses(at, p.between(1, 3)),
		spf: auth{p.Name, "", "softfail"}, dkim: []auth{p.sign("tenant")}, days: p.steady(p.brokenVolume()),
	}
	p.plant(f)
	f.dkim, f.days = nil, p.steady(p.brokenVolume())
	p.plant(f)
	p.fix(f.sender)
}

// strictServer plants a server that the SPF record lists, with From addresses below the domain: it is
// aligned in relaxed mode only.
func strictServer(p *planter) {
	f := p.ownServer(ordinary)
	f.from, f.days = "shop."+p.Name, p.steady(p.brokenVolume())
	p.plant(f)
	p.fix(f.sender)
}

// strictService plants a service that signs with the domain, with From addresses below it.
func strictService(p *planter) {
	f := p.serviceMail(p.take(services), p.brokenVolume())
	f.from = "news." + p.Name
	p.plant(f)
	p.fix(f.sender)
}

// includedService plants a service that the SPF record includes, and of which nothing is aligned.
func includedService(p *planter) {
	at := p.take(services)
	p.spf = append(p.spf, "include:"+at.include())
	f := p.atService(at, p.steady(p.brokenVolume()))
	f.class = Legitimate
	p.plant(f)
	p.fix(f.sender)
}
