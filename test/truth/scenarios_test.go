package truth

import (
	"math/rand/v2"
	"slices"
)

// scenario is something that happens to the mail of a domain, in one of several ways.
type scenario struct {
	name     string
	variants []func(p *planter)
}

func happens(name string, variants ...func(p *planter)) scenario { return scenario{name, variants} }

// Scenarios that go together with others.
const (
	lowVolume = "low volume" // about 10 messages a day
	scatters  = "scattered spoofing"
	tenants   = "other tenants on the same addresses"
	below     = "subdomains"
)

// Marks of records and of answers, which scenarios do not name.
const (
	isStrict    = "strict alignment"
	isTest      = "t=y"
	isPercent   = "pct"
	isBelow     = "sp or np"
	answersOurs = "answered: yours"
	answersNot  = "answered: not yours"
)

// mains are most of the mail of a domain.
var mains = []scenario{
	happens("own servers", ownServers, ownHosting, ownNames),
	happens("own server whose IPv6 address changes", ownIPv6),
	happens("Microsoft 365 by SPF", tenantBySPF),
	happens("Microsoft 365 by DKIM alone", tenantByDKIM),
	happens("another mailbox provider or gateway", tenantElsewhere, behindGateway),
	happens("pool of 50 addresses", pool, widePool),
	happens("only an aligned service", onlyService),
}

// harmless scenarios do not change the next action.
var harmless = []scenario{
	happens("aligned service", alignedService),
	happens(below, subdomains),
	happens("server linked by its name", namedServer),
	happens("forwarder or list keeps DKIM", forwarderPreserves, relayPreserves, forwarderRarelyBreaks),
	happens("forwarding through a mailbox provider", providerForwards),
	happens("spoofers at the same service", fewAtService),
	happens(tenants, fewOfTenant),
	happens("few messages as another domain", fewAsAnother),
	happens("few own messages fail", fewFail),
}

// spoofers are stopped by a stricter policy.
var spoofers = []scenario{
	happens("spoofers next to own servers", spoofersInOwnNetwork, spoofersInOwnNetworkIPv6),
	happens("spoofers with a misleading host name", spoofersForged, spoofersAlike),
	happens("spoofers in a network that SPF names", spoofersListed, spoofersHosted, spoofersExcluded),
	happens("spoofers who authenticate a part of their mail", spoofersPartly),
	happens("spoofers without a network", spoofersUnrouted),
	happens(scatters, scattered),
	happens("burst of spoofing", burst),
	happens("botnet with a key that never existed", botnet),
	happens("new or returning spoofers", newSpoofers, returningSpoofers),
}

// These decide the next action.
var (
	forgotten  = happens("server forgotten in SPF", forgottenNamed, forgottenKey, listedElsewhere, forgottenTwin, droppedFromSPF, tenantForgets)
	rotated    = happens("key rotated without its record", rotatedKey, rotatedAtService)
	included   = happens("service in SPF is not aligned", includedService)
	strictly   = happens("strict alignment fails", strictServer, strictService)
	halfPool   = happens("pool of 50 addresses", poolForgets)
	misaligned = happens("misaligned service", misalignedService)
	accounts   = happens("spoofers at the same service", spoofersAtService)
	outsiders  = happens("mail as another domain", otherTenants, personalMailboxes, partner, partnerPartly, partnerCrowded)
	breaking   = happens("forwarder or list breaks DKIM", forwarderBreaks, relayBreaks, providerBreaks, markedForwarding, forwarderMixes)
	parked     = happens("parked domain", parkedDomain)
	waiting    = happens("too few reports", waitingDomain)
)

// outline is what a domain is about, and the next action.
type outline struct {
	action string
	about  *scenario // nil for nothing that decides
	mark   string    // names an outline that is known by no scenario
}

const (
	tighten  = "tighten_policy"
	fixIt    = "fix_sender"
	question = "answer_question"
	accept   = "accept_forwarding"
	// isEnforced and isAccepted are the marks of domains with p=reject, and of those whose users
	// accepted that forwarded mail is affected.
	isEnforced = "enforced domain"
	isAccepted = "forwarding was accepted"
)

// outlines are those of 20 domains in turn: 6 tighten, and 3 have a question.
var outlines = []outline{
	{action: tighten},
	{action: fixIt, about: &strictly},
	{action: tighten},
	{action: tighten},
	{action: tighten},
	{action: tighten},
	{action: fixIt, about: &included},
	{action: tighten, about: &breaking, mark: isAccepted},
	{action: fixIt, about: &forgotten},
	{action: fixIt, about: &forgotten},
	{action: fixIt, about: &rotated},
	{action: fixIt, about: &rotated},
	{action: fixIt, about: &halfPool},
	{action: question, about: &misaligned},
	{action: question, about: &accounts},
	{action: question, about: &outsiders},
	{action: accept, about: &breaking},
	{action: "wait_for_reports", about: &waiting},
	{action: "lock_parked", about: &parked},
	{action: "", mark: isEnforced},
}

// outlineOf returns the outline of a domain: each is in every 20 domains.
func outlineOf(seed uint64, number int) outline {
	shuffled := rand.New(rand.NewPCG(seed, uint64(number/len(outlines)))).Perm(len(outlines))
	return outlines[shuffled[number%len(outlines)]]
}

// Scenarios returns the names of all scenarios.
func Scenarios() []string {
	names := []string{lowVolume, isEnforced, isAccepted, isStrict, isTest, isPercent, isBelow, answersOurs, answersNot}
	for _, s := range slices.Concat(mains, harmless, spoofers, []scenario{forgotten, rotated, included, strictly, misaligned, outsiders, breaking, parked, waiting}) {
		names = append(names, s.name)
	}
	return names
}

// compose plants the scenarios of an outline.
func (p *planter) compose(s outline) {
	p.Action.ID = s.action
	if s.mark != "" {
		p.note(s.mark)
	}
	if s.mark == isEnforced {
		p.policy = "reject"
	}
	if s.about == &parked || s.about == &waiting {
		p.perform(*s.about)
		return
	}
	p.tag(s)
	p.perform(mains[p.IntN(len(mains))])
	density := pick(p, 0.15, 0.3, 0.6)
	for _, h := range harmless {
		if h.name == below && p.tags.strict {
			continue // its service signs with the domain
		}
		if p.chance(density) || h.name == tenants && p.used[microsoft.base] && p.chance(0.5) {
			p.perform(h)
		}
	}
	for _, spoofer := range spoofers {
		if p.chance(density/2) || spoofer.name == scatters && slices.Contains(p.Scenarios, lowVolume) {
			p.perform(spoofer)
		}
	}
	if s.about != nil {
		p.perform(*s.about)
		p.complicate()
	}
	if s.mark == isAccepted {
		p.Accepted = p.figures(true).Affected[Forwarder]
	}
	if s.action == question {
		p.answer()
	}
}

// tag adds tags to the record that do not change the next action.
func (p *planter) tag(s outline) {
	if p.tags.strict = s.about == &strictly || p.chance(0.1); p.tags.strict {
		p.note(isStrict)
	}
	if s.mark == isEnforced {
		return
	}
	switch p.IntN(6) {
	case 0:
		p.tags.testing = true
		p.policy = pick(p, p.policy, "reject")
		p.note(isTest)
	case 1:
		p.tags.percent = p.between(1, 99)
		p.policy = pick(p, p.policy, "reject")
		p.note(isPercent)
	case 2:
		p.tags.sp = pick(p, "none", "none", "quarantine", "")
		p.tags.np = pick(p, "none", "none", "quarantine", "reject")
		p.tags.testing = p.chance(0.2)
		p.note(isBelow)
	}
}

// answer chooses the answer to the question, and the action that follows from it.
func (p *planter) answer() {
	if p.chance(0.5) {
		p.note(answersOurs)
		p.Answer, p.After = "yours", Action{fixIt, p.Action.Sender}
		return
	}
	p.note(answersNot)
	p.Answer, p.After = "not_yours", Action{ID: tighten}
	if slices.Contains(p.Scenarios, breaking.name) {
		p.After.ID = accept
	}
}

// complicate adds what comes after the action: questions after senders to fix, and forwarding after
// both.
func (p *planter) complicate() {
	action := p.Action
	if action.ID == fixIt && p.chance(0.2) {
		p.perform(outsiders)
	}
	if (action.ID == fixIt || action.ID == question) && p.chance(0.2) {
		p.perform(breaking)
	}
	p.Action = action
}

// perform plants a scenario, and notes its name if it applies to the domain.
func (p *planter) perform(s scenario) {
	planted := len(p.flows)
	s.variants[p.IntN(len(s.variants))](p)
	if len(p.flows) > planted {
		p.note(s.name)
	}
}

// parkedDomain plants a domain that a user marked as parked, with spoofed mail.
func parkedDomain(p *planter) {
	p.Parked = true
	p.policy = "none"
	burst(p)
	scattered(p)
	spoofersUnrouted(p)
}

// waitingDomain plants a domain with too few days of reports, or with too few messages.
func waitingDomain(p *planter) {
	server := p.ownServer(ordinary)
	server.days = p.during(p.some(20, 100), yesterday, p.between(4, 9))
	if p.chance(0.5) {
		server.days = p.during(p.some(1, 2), yesterday, span)
	}
	p.plant(server)
}
