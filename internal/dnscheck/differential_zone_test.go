package dnscheck_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
)

// The types of zoneLine.
const (
	typeTXT   = "TXT"
	typeCNAME = "CNAME"
	typeA     = "A"
)

// zoneLine is one record of a zone.
type zoneLine struct {
	owner string
	typ   string
	data  string // the joined text, the target or the address
}

// discoveryTrial is a zone, the faults of the servers for some of its names, and the
// domains to discover.
type discoveryTrial struct {
	lines   []zoneLine
	faults  map[string]faultPair
	authors []string
}

// zoneText returns the zone as a server reads it.
func (d discoveryTrial) zoneText() string {
	var b strings.Builder
	for _, l := range d.lines {
		data := l.data
		switch l.typ {
		case typeTXT:
			data = quoted(l.data)
		case typeCNAME:
			data += "."
		}
		fmt.Fprintf(&b, "%s. %s %s\n", l.owner, l.typ, data)
	}
	return b.String()
}

// String returns the zone and the faults for debugging.
func (d discoveryTrial) String() string {
	var b strings.Builder
	for _, line := range strings.Split(d.zoneText(), "\n") {
		const enough = 300
		fmt.Fprintf(&b, "%.*s\n", enough, line)
	}
	for name, pair := range d.faults {
		fmt.Fprintf(&b, "fault at %s: %s\n", name, pair.name)
	}
	return b.String()
}

// pieces cuts a text into character-strings, at places that depend on its length
// alone. An empty text is one empty piece.
func pieces(text string) []string {
	const longest = 255
	size := min(longest, 10+len(text)*7%longest)
	cut := []string{}
	for len(text) > size {
		cut, text = append(cut, text[:size]), text[size:]
	}
	return append(cut, text)
}

// quoted writes a text as the character-strings of a zone file.
func quoted(text string) string {
	var b strings.Builder
	for _, piece := range pieces(text) {
		b.WriteString(`"`)
		for _, c := range []byte(piece) {
			if c < ' ' || c > '~' || c == '"' || c == '\\' {
				fmt.Fprintf(&b, `\%03d`, c)
			} else {
				b.WriteByte(c)
			}
		}
		b.WriteString(`" `)
	}
	return b.String()
}

// trialMaker generates random discoveryTrials.
type trialMaker struct {
	*rand.Rand
	discoveryTrial
	domains []string // on the way from one deep name to the top, the deepest first
	links   int      // names made up for chains of aliases
}

const (
	deepest        = 12   // labels of an ordinary name
	mostLabels     = 127  // of any name: 253 octets with the dots between
	fullPacket     = 4096 // bytes of the longest packet that a resolver must take
	authorsPerZone = 2
)

// newDiscoveryTrial returns the trial for a seed and a number. It is deterministic.
func newDiscoveryTrial(seed, number uint64) discoveryTrial {
	m := trialMaker{Rand: rand.New(rand.NewPCG(seed, number))}
	m.faults = map[string]faultPair{}
	m.makeDomains()
	for _, domain := range m.domains {
		m.populate(domain)
		if chance(m.Rand, 15) {
			m.populate(m.label() + "." + domain)
		}
	}
	if chance(m.Rand, 20) {
		m.publish("*." + pick(m.Rand, m.domains...))
	}
	for range authorsPerZone {
		m.authors = append(m.authors, m.author())
	}
	if chance(m.Rand, 35) {
		m.spoil()
	}
	return m.discoveryTrial
}

// label returns one of a few labels, so that names collide.
func (m *trialMaker) label() string { return pick(m.Rand, "a", "b", "c") }

// makeDomains picks a deep name and takes its ancestors. The top is a public
// suffix of one label or two, a wildcard or a private one of the list, or none.
func (m *trialMaker) makeDomains() {
	name := pick(m.Rand, "com", "co.uk", "uk", "ck", "github.io", "example", "a")
	labels := 1 + m.IntN(deepest)
	if chance(m.Rand, 6) {
		// With 123 labels the _dmarc prefix still fits, with more it does not.
		name, labels = "a", mostLabels-m.IntN(8)
	}
	m.domains = []string{name}
	for strings.Count(name, ".")+1 < labels {
		name = m.label() + "." + name
		m.domains = append(m.domains, name)
	}
	slices.Reverse(m.domains)
	if len(m.domains) > deepest {
		m.domains = slices.Concat(m.domains[:2], m.domains[len(m.domains)-deepest:])
	}
}

// populate lets a domain exist, be an alias, have a policy, or not.
func (m *trialMaker) populate(domain string) {
	switch n := m.IntN(100); {
	case n < 20:
		m.add(domain, typeA, "192.0.2.1")
	case n < 24:
		m.add("deep.below."+domain, typeA, "192.0.2.2")
	case n < 27:
		m.add(domain, typeCNAME, m.target())
	}
	if chance(m.Rand, 42) {
		m.publish("_dmarc." + domain)
	}
}

// publish puts texts or an alias at a name.
func (m *trialMaker) publish(owner string) {
	switch n := m.IntN(100); {
	case n < 14:
		m.add(owner, typeCNAME, m.target())
	case n < 16:
		m.publishFullPacket(owner)
	default:
		m.publishTexts(owner)
	}
}

func (m *trialMaker) publishTexts(owner string) {
	for _, text := range policyTexts(m.Rand) {
		m.add(owner, typeTXT, text)
	}
}

// publishFullPacket puts a record and so long a text at a name that the reply has
// 4,096 bytes, or a few more or less, and lets the servers send it over UDP.
func (m *trialMaker) publishFullPacket(owner string) {
	record, filler := recordText(m.Rand), strings.Repeat("f", 3500)
	wanted := fullPacket - 3 + m.IntN(6)
	for replyBytes(owner, record, filler) < wanted {
		filler += "f"
	}
	m.add(owner, typeTXT, record)
	m.add(owner, typeTXT, filler)
	m.faults[owner] = faultPair{name: "oversize", first: resolvertest.Oversize, second: resolvertest.Oversize}
}

// replyBytes returns the size of a reply to a question with EDNS for the texts of
// a name.
func replyBytes(owner string, texts ...string) int {
	const header, question, edns, record = 12, 4, 11, 12
	bytes := header + len(owner) + 2 + question + edns
	for _, text := range texts {
		bytes += record + len(text) + len(pieces(text))
	}
	return bytes
}

// target returns the target of an alias: another policy, nothing, a chain or a loop.
func (m *trialMaker) target() string {
	switch m.IntN(5) {
	case 0:
		return "_dmarc." + pick(m.Rand, m.domains...)
	case 1:
		return "nowhere.hosts"
	default:
		return m.chain(m.IntN(11))
	}
}

// chain creates a chain of n aliases and returns the first name.
func (m *trialMaker) chain(aliases int) string {
	first := m.link()
	name := first
	for range aliases {
		next := m.link()
		m.add(name, typeCNAME, next)
		name = next
	}
	if chance(m.Rand, 20) {
		m.add(name, typeCNAME, first)
	} else {
		m.publishTexts(name)
	}
	return first
}

// link returns a new name.
func (m *trialMaker) link() string {
	m.links++
	return fmt.Sprintf("link%d.hosts", m.links)
}

// add stores a line unless an alias and other data would share a name (RFC 1034 §3.6.2),
// or the name would be too long.
func (m *trialMaker) add(owner, typ, data string) {
	for _, l := range m.lines {
		if l.owner == owner && (l.typ == typeCNAME || typ == typeCNAME) {
			return
		}
	}
	if len(owner) <= maxNameOctets && (typ != typeCNAME || len(data) <= maxNameOctets) {
		m.lines = append(m.lines, zoneLine{owner, typ, data})
	}
}

// author returns a name on the path or next to it, sometimes in another spelling.
func (m *trialMaker) author() string {
	name := pick(m.Rand, m.domains...)
	if chance(m.Rand, 40) {
		name = m.domains[0]
	}
	for chance(m.Rand, 30) {
		name = pick(m.Rand, m.label(), "nope") + "." + name
	}
	if len(name) > maxNameOctets {
		name = m.domains[0]
	}
	switch m.IntN(10) {
	case 0:
		return strings.ToUpper(name)
	case 1:
		return name + "."
	default:
		return name
	}
}

// spoil adds faults for names that may be queried.
func (m *trialMaker) spoil() {
	for range 1 + m.IntN(3) {
		names := []string{"_dmarc." + pick(m.Rand, m.domains...), "_dmarc." + pick(m.Rand, m.domains...)}
		for _, author := range m.authors {
			names = append(names, lowerName(author), "_dmarc."+lowerName(author))
		}
		for _, l := range m.lines {
			if l.typ == typeCNAME {
				names = append(names, l.owner, l.data)
			}
		}
		m.faults[pick(m.Rand, names...)] = drawFault(m.Rand)
	}
}
