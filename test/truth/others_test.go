package truth

import (
	"fmt"
	"net/netip"
	"slices"
)

// ask makes mail the one that a question is about.
func (p *planter) ask(sender string) { p.Action.Sender = sender }

// atService returns mail of an account at a service that authenticates only as the service.
func (p *planter) atService(at origin, days map[int]int) flow {
	f := flow{
		class: Undecidable, sender: at.base + ":rest", sources: p.serviceSources(at),
		spf: pass("bounces."+at.domain, ""), dkim: []auth{pass(at.domain, "s")}, days: days,
	}
	if p.chance(0.3) {
		f.dkim = nil
	}
	return f
}

func misalignedService(p *planter) {
	f := p.atService(p.take(services), p.steady(p.volume*p.some(2*least, most)))
	p.plant(f)
	p.ask(f.sender)
}

// spoofersAtService plants spoofers with an account at a service that the domain uses too.
func spoofersAtService(p *planter) {
	at := p.take(services)
	if p.chance(0.4) {
		p.spf = append(p.spf, "include:"+at.include())
	}
	p.plant(p.serviceMail(at, p.volume*p.some(least, most)))
	f := p.atService(at, p.during(p.volume*p.some(2*least, most), yesterday, p.between(14, span)))
	p.plant(f)
	p.ask(f.sender)
}

func fewAtService(p *planter) {
	if p.volume < 100 {
		return // 1 % of its mail is one message
	}
	at := p.take(services)
	p.plant(p.serviceMail(at, p.volume*p.some(least, most)))
	p.plant(p.atService(at, p.few()))
}

// few returns messages of which so few are planted that no question about them matters.
func (p *planter) few() map[int]int {
	days := map[int]int{}
	for n := int(p.volume * span * p.some(fewLeast, fewMost)); n > 0; n-- {
		days[p.between(yesterday, span)]++
	}
	return days
}

// ofTenant returns mail of another customer of Microsoft 365, on the addresses that the domain
// uses if it is one.
func (p *planter) ofTenant(days map[int]int) flow {
	sources := p.microsoftSources()
	for _, f := range p.flows {
		if f.sender == microsoft.base+":yours" {
			sources = f.sources
		}
	}
	tenant := fmt.Sprintf("tenant%d.example", p.Number)
	f := flow{
		class: Undecidable, sender: microsoft.base + ":as:" + tenant, sources: sources,
		spf: pass(tenant, ""), dkim: []auth{pass(tenant, "selector1")}, days: days,
	}
	if p.chance(0.3) {
		f.dkim = nil
	}
	return f
}

func otherTenants(p *planter) {
	f := p.ofTenant(p.steady(p.volume * p.some(2*least, most)))
	p.plant(f)
	p.ask(f.sender)
}

func fewOfTenant(p *planter) {
	if p.volume >= 100 {
		p.plant(p.ofTenant(p.few()))
	}
}

// personalMailboxes plants mail of people who send as the domain from their accounts elsewhere.
func personalMailboxes(p *planter) {
	at := p.take(providers)
	f := flow{
		class: Undecidable, sender: at.base + ":as:" + at.domain, sources: p.addresses(at, p.between(2, 5)),
		spf: pass(at.domain, ""), dkim: []auth{pass(at.domain, "20230601")}, days: p.steady(p.volume * p.some(2*least, most)),
	}
	p.plant(f)
	p.ask(f.sender)
}

// asAnother returns mail of servers that authenticate as a domain of others.
func (p *planter) asAnother(days map[int]int) flow {
	in := pick(p, slices.Concat(hosting, ordinary)...)
	domain := fmt.Sprintf("partner%d.example", p.Number)
	f := flow{
		class: Undecidable, sender: in.base + ":as:" + domain, sources: p.addresses(in, p.between(1, 3)),
		spf: pass(domain, ""), days: days,
	}
	if p.chance(0.5) {
		f.spf, f.dkim = pass("bounce."+domain, ""), []auth{pass(domain, "s1")}
	}
	return f
}

func partner(p *planter) {
	f := p.asAnother(p.steady(p.volume * p.some(2*least, most)))
	p.plant(f)
	p.ask(f.sender)
}

// partnerPartly plants servers of which a quarter of the mail does not authenticate.
func partnerPartly(p *planter) {
	f := p.asAnother(p.steady(p.volume * p.some(2*least, most)))
	f.sources = f.sources[:1]
	p.plant(f)
	p.ask(f.sender)
	f.spf, f.dkim, f.days = fail(p.Name, ""), nil, p.part(f.days, 0.25)
	p.plant(f)
}

// partnerCrowded plants a server that also sent single messages as many other domains.
func partnerCrowded(p *planter) {
	f := p.asAnother(p.steady(p.volume * p.some(2*least, most)))
	f.sources = f.sources[:1]
	p.plant(f)
	p.ask(f.sender)
	f.dkim = nil
	for i := range 9 {
		f.spf, f.days = pass(fmt.Sprintf("crowd%d.example", i), ""), map[int]int{span: 1}
		p.plant(f)
	}
}

func fewAsAnother(p *planter) {
	if p.volume >= 100 {
		p.plant(p.asAnother(p.few()))
	}
}

// forwardedVolume returns how many forwarded messages there are on a day: rarely very many, if the
// sender of the forwarded mail is known by more than its key.
func (p *planter) forwardedVolume() float64 {
	if !p.byKey && p.chance(0.15) {
		return p.volume * p.some(0.1, 0.25)
	}
	return p.volume * p.some(forwarded, mostForwards)
}

// forwarding returns forwarded mail with the signature of the main sender: valid or broken. The
// envelope stays, or has the domain of the forwarder.
func (p *planter) forwarding(sender, domain string, sources []netip.Addr, preserves bool) flow {
	f := flow{
		class: Forwarder, sender: sender, sources: sources, spf: fail(p.Name, ""), days: p.steady(p.forwardedVolume()),
	}
	if p.chance(0.5) {
		f.spf = pass(domain, "")
	}
	switch {
	case p.key == "": // nothing but the word of receivers shows what it is
		f.reason = "forwarded"
	case preserves:
		f.dkim = []auth{pass(p.Name, p.key)}
	default:
		f.dkim = []auth{fail(p.Name, p.key)}
	}
	return f
}

// forwarder returns mail through a forwarder in a network without servers of the domain.
func (p *planter) forwarder(preserves bool) flow {
	in := pick(p, slices.Concat(hosting, remote)...)
	return p.forwarding(in.base+":forwarding", fmt.Sprintf("forwarder%d.example", p.Number), p.addresses(in, p.between(1, 3)), preserves)
}

// relay returns mail through a forwarder or list of the catalogue, which signs it or has its own
// envelope.
func (p *planter) relay(preserves bool) flow {
	at := p.take(relays)
	in := at
	if at.system == 0 {
		in = pick(p, remote...)
	}
	f := p.forwarding(at.base, at.domain, p.addresses(in, p.between(1, 2)), preserves)
	f.spf, f.reason = pass(at.domain, ""), ""
	if p.chance(0.5) {
		f.dkim = append(f.dkim, pass(at.domain, "arc"))
	}
	return f
}

// provider returns mail that users of a mailbox provider or of a gateway forward.
func (p *planter) provider(preserves bool) flow {
	at := p.take(append(slices.Concat(gateways, providers), microsoft))
	sources := p.addresses(at, p.between(1, 4))
	if at.base == microsoft.base {
		sources = p.microsoftSources()
	}
	return p.forwarding(at.base+":forwarding", at.domain, sources, preserves)
}

// The scenarios that keep signatures have nothing to keep in a domain that does not sign.

func forwarderPreserves(p *planter) {
	if p.key != "" {
		p.plant(p.forwarder(true))
	}
}

func relayPreserves(p *planter) {
	if p.key != "" {
		p.plant(p.relay(true))
	}
}

func providerForwards(p *planter) {
	if p.key != "" {
		p.plant(p.provider(true))
	}
}

func forwarderBreaks(p *planter) { p.plant(p.forwarder(false)) }
func relayBreaks(p *planter)     { p.plant(p.relay(false)) }
func providerBreaks(p *planter)  { p.plant(p.provider(false)) }

// markedForwarding plants forwarded mail without signatures of which receivers recognized a part.
func markedForwarding(p *planter) {
	f := p.forwarder(false)
	f.sources = f.sources[:1]
	f.dkim, f.reason = nil, pick(p, "forwarded", "trusted_forwarder", "mailing_list")
	p.plant(f)
	f.reason, f.days = "", p.part(f.days, 0.8)
	p.plant(f)
}

// forwarderMixes plants a forwarder that keeps, breaks and removes signatures.
func forwarderMixes(p *planter) {
	if p.key == "" {
		markedForwarding(p)
		return
	}
	f := p.forwarder(true)
	f.sources = f.sources[:1]
	p.plant(f)
	f.dkim, f.days = []auth{fail(p.Name, p.key)}, p.part(f.days, 0.5)
	p.plant(f)
	f.dkim = nil
	p.plant(f)
}

// forwarderRarelyBreaks plants a forwarder that breaks so few signatures that no user must accept it.
func forwarderRarelyBreaks(p *planter) {
	if p.key == "" || p.volume < 100 {
		return
	}
	f := p.forwarder(true)
	f.days = p.steady(p.volume * mostForwards)
	stored := f.messages()
	p.plant(f)
	f.dkim, f.days = []auth{fail(p.Name, p.key)}, map[int]int{p.between(yesterday, span): stored / 100}
	p.plant(f)
}
