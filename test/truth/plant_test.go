package truth

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
)

// Action is what the advice must name next.
type Action struct {
	// ID is "" if nothing is left to do.
	ID string
	// Sender is the key of the sender that is to be fixed or asked about, "" for other actions.
	Sender string
}

// Domain is a planted domain.
type Domain struct {
	// Seed and Number generate the domain again.
	Seed   uint64
	Number int
	Name   string
	// Scenarios are the names of what was planted.
	Scenarios []string
	// Parked and Accepted are answers of a user: whether the domain is parked, and how many
	// forwarded messages may be affected (0 for none).
	Parked   bool
	Accepted int
	// Figures are for p=reject with the other tags of the record, Full for p=reject for all
	// names.
	Figures, Full Figures
	Action        Action
	// Stage is how far the domain has come, and Next the policy that is published next.
	Stage, Next string
	// Answer is the user's answer to the question, yours or not_yours, "" if there is no
	// question; After is the action that follows.
	Answer string
	After  Action

	flows     []*flow
	hosts     []host
	policy    string
	tags      tags
	records   []string // of the zone
	reporters int
}

// Zone returns the DNS records of the domain.
func (d *Domain) Zone() string { return strings.Join(d.records, "\n") + "\n" }

// Hosts returns the addresses with names that planted mail comes from.
func (d *Domain) Hosts() []netip.Addr {
	named := map[netip.Addr]bool{}
	for _, h := range slices.Concat(d.hosts, sharedHosts()) {
		named[h.addr] = true
	}
	var all []netip.Addr
	for _, f := range d.flows {
		for _, source := range f.sources {
			if named[source] {
				all = append(all, source)
			}
		}
	}
	return all
}

// Flows describes the planted mail, one line for each part, for people.
func (d *Domain) Flows() []string {
	var lines []string
	for _, f := range d.flows {
		lines = append(lines, fmt.Sprintf("%-12s %6d messages from %s and %d more, as %s, SPF %v, DKIM %v %s: %s",
			f.class, f.messages(), f.sources[0], len(f.sources)-1, f.from, f.spf, f.dkim, f.reason, f.sender))
	}
	return lines
}

// BySender returns the planted messages of the period by the key of their sender and their class.
func (d *Domain) BySender() map[string]map[Class]int {
	all := map[string]map[Class]int{}
	for _, f := range d.flows {
		if all[f.sender] == nil {
			all[f.sender] = map[Class]int{}
		}
		all[f.sender][f.class] += f.messages()
	}
	return all
}

// tags are those of the DMARC record beside p and rua.
type tags struct {
	sp, np  string // "" for none
	strict  bool   // adkim and aspf
	testing bool   // t=y
	percent int    // pct, 0 for none
}

// String returns the tags as they follow p in a record.
func (t tags) String() string {
	var b strings.Builder
	if t.sp != "" {
		b.WriteString("; sp=" + t.sp)
	}
	if t.np != "" {
		b.WriteString("; np=" + t.np)
	}
	if t.strict {
		b.WriteString("; adkim=s; aspf=s")
	}
	if t.testing {
		b.WriteString("; t=y")
	}
	if t.percent > 0 {
		fmt.Fprintf(&b, "; pct=%d", t.percent)
	}
	return b.String()
}

// planter plants one domain.
type planter struct {
	*Domain
	*rand.Rand

	// volume is how many legitimate messages are sent on a day.
	volume float64
	// key is the selector that most mail is signed with, "" for none, and byKey means that nothing
	// else shows whose that mail is.
	key   string
	byKey bool
	// network is where the domain has its own servers, if it has.
	network origin
	spf     []string // terms of the SPF record
	include []string // terms of the record that it includes, in the same domain
	taken   map[netip.Addr]bool
	used    map[string]bool // senders of the catalogue
	names   int
}

// Plant returns the domain with a number of the series with a seed.
func Plant(seed uint64, number int) *Domain {
	if number >= maxDomain {
		panic(fmt.Sprintf("there are host names for %d domains", maxDomain))
	}
	p := &planter{
		Domain: &Domain{Seed: seed, Number: number, Name: fmt.Sprintf("d%d-%d.example", seed, number), policy: "none"},
		Rand:   rand.New(rand.NewPCG(seed, uint64(number))),
		taken:  map[netip.Addr]bool{}, used: map[string]bool{},
	}
	p.reporters = p.between(2, 3)
	p.volume = float64(p.between(50, 400))
	switch {
	case p.chance(0.15):
		p.volume = float64(p.between(9, 12))
		p.note(lowVolume)
	case p.chance(0.35):
		p.volume = float64(p.between(1000, 8000))
	}
	if p.chance(0.3) {
		p.policy = "quarantine"
	}
	p.compose(outlineOf(seed, number))
	findSmall(p.flows)
	p.Figures, p.Full = p.figures(false), p.figures(true)
	p.Stage, p.Next = p.stage()
	p.publish()
	return p.Domain
}

// stage returns how far the domain has come, and the policy of the next record: of now for all messages,
// else quarantine, then reject.
func (d *Domain) stage() (stage, next string) {
	whole := func(policy string) bool { return policy == "" || policy == "reject" }
	switch {
	case d.Parked:
		return "parked", ""
	case d.tags.percent > 0 && d.policy != "none":
		return "partial", d.policy
	case d.applied() == "none":
		return "monitoring", "quarantine"
	case d.applied() == "reject" && whole(d.tags.sp) && whole(d.tags.np):
		return "enforced", ""
	}
	return "partial", "reject"
}

// publish writes the zone of the domain.
func (p *planter) publish() {
	p.record("_dmarc.%s. TXT \"v=DMARC1; p=%s%s; rua=mailto:dmarc@%s\"", p.Name, p.policy, p.tags, p.Name)
	if len(p.include) > 0 {
		p.record("_spf.%s. TXT \"v=spf1 %s ?all\"", p.Name, strings.Join(p.include, " "))
		p.spf = append(p.spf, "include:_spf."+p.Name)
	}
	p.record("%s. TXT \"%s\"", p.Name, strings.Join(append(append([]string{"v=spf1"}, p.spf...), pick(p, "~all", "-all")), " "))
	for _, h := range p.hosts {
		p.records = append(p.records, strings.TrimSpace(h.zone()))
	}
	if !slices.ContainsFunc(p.records, func(r string) bool { return strings.HasPrefix(r, p.Name+". MX") }) {
		p.record("%s. MX 10 in.%s.", p.Name, p.Name)
		p.record("in.%s. A %s", p.Name, p.address(ordinary[p.IntN(len(ordinary))]))
	}
}

func (p *planter) record(format string, values ...any) {
	p.records = append(p.records, fmt.Sprintf(format, values...))
}

// note adds the name of a scenario.
func (p *planter) note(scenario string) {
	if !slices.Contains(p.Scenarios, scenario) {
		p.Scenarios = append(p.Scenarios, scenario)
	}
}

// between returns a number from least to most.
func (p *planter) between(least, most int) int { return least + p.IntN(most-least+1) }

// some returns a number between least and most.
func (p *planter) some(least, most float64) float64 { return least + p.Float64()*(most-least) }

func (p *planter) chance(probability float64) bool { return p.Float64() < probability }

func pick[T any](p *planter, from ...T) T { return from[p.IntN(len(from))] }

// take returns a sender of the catalogue that the domain does not use yet.
func (p *planter) take(from []origin) origin {
	for {
		if one := pick(p, from...); !p.used[one.base] {
			p.used[one.base] = true
			return one
		}
	}
}

// address returns an address without a name that the domain does not use yet.
func (p *planter) address(in origin) netip.Addr {
	most := min(unnamed, 1<<(32-in.v4.Bits())-2)
	for {
		if addr := in.at(p.between(1, most)); !p.taken[addr] {
			p.taken[addr] = true
			return addr
		}
	}
}

// addresses returns n of them.
func (p *planter) addresses(in origin, n int) []netip.Addr {
	all := make([]netip.Addr, n)
	for i := range all {
		all[i] = p.address(in)
	}
	return all
}

// slash64 returns addresses of one IPv6 network of the length 64.
func (p *planter) slash64(in origin, n int) (network netip.Prefix, all []netip.Addr) {
	octets := in.v6.Addr().As16()
	for i := 5; i < 8; i++ {
		octets[i] = byte(p.IntN(256))
	}
	network = netip.PrefixFrom(netip.AddrFrom16(octets), 64)
	for range n {
		for i := 8; i < 16; i++ {
			octets[i] = byte(p.between(1, 255))
		}
		all = append(all, netip.AddrFrom16(octets))
	}
	return network, all
}

// named returns a network, and an address in it to which no other domain gives a name.
func (p *planter) named() (origin, netip.Addr) {
	if p.names == perDomain {
		panic("a domain has no more names")
	}
	slot := p.Number*perDomain + p.names
	p.names++
	in := ordinary[slot%len(ordinary)]
	return in, in.at(unnamed + 1 + slot/len(ordinary))
}

// steady returns messages on each day of the period.
func (p *planter) steady(perDay float64) map[int]int { return p.during(perDay, yesterday, span) }

// during returns messages on each of some days, and at least 20 in all.
func (p *planter) during(perDay float64, last, first int) map[int]int {
	days := map[int]int{}
	sum := 0
	for day := last; day <= first; day++ {
		mean := perDay * p.some(0.7, 1.3)
		n := int(mean)
		if p.Float64() < mean-float64(n) {
			n++
		}
		if n > 0 {
			days[day] = n
		}
		sum += n
	}
	for ; sum < 20; sum++ {
		days[p.between(last, first)]++
	}
	return days
}

// part returns a share of the messages of each day.
func (p *planter) part(days map[int]int, share float64) map[int]int {
	some := map[int]int{}
	for _, day := range slices.Sorted(maps.Keys(days)) {
		mean := float64(days[day]) * share
		n := int(mean)
		if p.Float64() < mean-float64(n) {
			n++
		}
		if n > 0 {
			some[day] = n
		}
	}
	return some
}

// plant adds mail.
func (p *planter) plant(f flow) {
	if f.from == "" {
		f.from = p.Name
	}
	p.flows = append(p.flows, &f)
}

// sign publishes a key, and returns the result of its valid signatures.
func (p *planter) sign(selector string) auth {
	record := fmt.Sprintf("%s._domainkey.%s. TXT \"v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\"", selector, p.Name)
	if !slices.Contains(p.records, record) {
		p.records = append(p.records, record)
	}
	return pass(p.Name, selector)
}
