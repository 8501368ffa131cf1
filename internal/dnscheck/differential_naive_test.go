package dnscheck_test

import (
	"strings"

	"golang.org/x/net/publicsuffix"
)

const (
	maxNameOctets = 253 // RFC 1035 §2.3.4, without the last dot
	maxAliases    = 8   // the number of aliases the resolver follows
)

// lowerName returns a name as it is compared.
func lowerName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// lastOf returns the right-most labels of a name.
func lastOf(name string, labels int) string {
	all := strings.Split(name, ".")
	return strings.Join(all[len(all)-labels:], ".")
}

func labelCount(name string) int { return len(strings.Split(name, ".")) }

// naiveAnswer is the combined answer of the two servers to a query.
type naiveAnswer struct {
	reported bool // whether the answer is usable
	silent   bool // whether it takes until the caller's timeout
	exists   bool // whether the last name of the chain exists
	aliased  bool
	data     []string
}

// answer looks up a name in the zone as RFC 1034 §4.3.2 describes, including the faults of
// the servers.
func (d discoveryTrial) answer(name, typ string) naiveAnswer {
	asked := true // a later name in the chain is queried only if a server leaves it to the client
	for links := 0; links <= maxAliases; links++ {
		aliased := links > 0
		if asked {
			fault := d.faults[name]
			switch fault.effect {
			case useless:
				return naiveAnswer{}
			case silent:
				return naiveAnswer{silent: true}
			case deniesName:
				return naiveAnswer{reported: true, aliased: aliased}
			case deniesData:
				return naiveAnswer{reported: true, exists: true, aliased: aliased}
			}
			asked = fault.effect == oneLink
		}
		source := d.source(name)
		if source == "" {
			return naiveAnswer{reported: true, aliased: aliased}
		}
		data := d.dataAt(source, typ)
		target := d.dataAt(source, typeCNAME)
		if len(data) > 0 || len(target) == 0 {
			return naiveAnswer{reported: true, exists: true, aliased: aliased, data: data}
		}
		name = target[0]
	}
	return naiveAnswer{} // a loop, or too many aliases
}

// source returns the owner name that answers for a name: itself, or the wildcard below the
// closest encloser (RFC 4592 §3.3.1); "" if there is none.
func (d discoveryTrial) source(name string) string {
	if d.exists(name) {
		return name
	}
	for !d.exists(name) {
		_, name, _ = strings.Cut(name, ".")
	}
	if wildcard := strings.TrimSuffix("*."+name, "."); d.exists(wildcard) {
		return wildcard
	}
	return ""
}

// exists reports whether the name or a name below it owns a line. The root always exists.
func (d discoveryTrial) exists(name string) bool {
	for _, l := range d.lines {
		if l.owner == name || strings.HasSuffix(l.owner, "."+name) {
			return true
		}
	}
	return name == ""
}

func (d discoveryTrial) dataAt(owner, typ string) []string {
	var data []string
	for _, l := range d.lines {
		if l.owner == owner && l.typ == typ {
			data = append(data, l.data)
		}
	}
	return data
}

// prediction is the expected result of policy discovery for an author domain.
type prediction struct {
	Status       string
	Text         string // of the record that applies
	RecordDomain string
	Policy       string
	Applied      string // after the t tag; of RFC 9989 only
	Source       string // the tag; of RFC 9989 only
	Percent      int    // of RFC 7489 only
	Organization string // "" if unknown
	Queried      []string
	Asked        []string // the queries sent to the resolver: name and type
}

// ask sends a query and returns the answer.
func (p *prediction) ask(d discoveryTrial, name, typ string) naiveAnswer {
	p.Asked = append(p.Asked, name+" "+typ)
	return d.answer(name, typ)
}

// askForRecords queries the _dmarc name of a domain. It returns nothing if that name is
// too long for DNS.
func (p *prediction) askForRecords(d discoveryTrial, domain string) naiveAnswer {
	name := "_dmarc." + domain
	p.Queried = append(p.Queried, name)
	if len(name) > maxNameOctets {
		return naiveAnswer{reported: true}
	}
	return p.ask(d, name, typeTXT)
}

// predict follows RFC 9989 §4.10 word for word.
func (d discoveryTrial) predict(author string) prediction {
	author = lowerName(author)
	var p prediction

	// §4.10: the names of the walk.
	names := []string{author}
	for n := min(labelCount(author)-1, 7); n > 0; n-- {
		names = append(names, lastOf(author, n))
	}
	records := map[string]naiveRecord{}
	var own naiveAnswer
	var found []string // longest first
	complete := true
	for _, name := range names {
		answer := p.askForRecords(d, name)
		if name == author {
			own = answer
		}
		if !answer.reported {
			complete = false
			break
		}
		if all := readAllNaively(answer.data); len(all) == 1 {
			records[name] = all[0]
			found = append(found, name)
			if all[0].psd() != "" {
				break
			}
		}
	}
	if complete {
		p.Organization = organizationOf(author, found, records)
	}

	// §4.10.1: the record that applies.
	if r, there := records[author]; there {
		p.apply(r, author, "p")
		return p
	}
	if !complete {
		p.Status = "inconclusive"
		return p
	}
	p.Status = "none"
	domain := p.Organization
	if _, there := records[domain]; !there && len(found) > 0 {
		domain = found[len(found)-1] // the walk ended with the public suffix domain
	}
	if r, there := records[domain]; there {
		if tag := p.tagFor(d, r, author, own); tag != "" {
			p.apply(r, domain, tag)
		} else {
			p.Status = "inconclusive"
		}
	}
	if p.Status != "inconclusive" && len(readAllNaively(own.data)) > 1 {
		p.Status = "multiple"
	}
	return p
}

// organizationOf applies RFC 9989 §4.10.2.
func organizationOf(author string, found []string, records map[string]naiveRecord) string {
	for _, name := range found {
		if records[name].psd() == "n" {
			return name
		}
		if records[name].psd() == "y" && name != author {
			return lastOf(author, labelCount(name)+1)
		}
	}
	if len(found) == 0 {
		return author
	}
	return found[len(found)-1]
}

// tagFor returns the tag of an ancestor's record that applies to the author domain, or ""
// if that depends on an existence check that failed. A name exists if a name below it does
// (RFC 8020), or if it is an alias, regardless of the target.
func (p *prediction) tagFor(d discoveryTrial, r naiveRecord, author string, own naiveAnswer) string {
	if r.treatment() == actOnIt && r.states("np") && (own.aliased || !own.exists) {
		answer := p.ask(d, author, typeA)
		if !answer.reported {
			return ""
		}
		if !answer.exists && !answer.aliased {
			return "np"
		}
	}
	if r.states("sp") {
		return "sp"
	}
	return "p"
}

// apply records the policy of one tag of a record.
func (p *prediction) apply(r naiveRecord, domain, tag string) {
	p.Text, p.RecordDomain = r.text, domain
	switch r.treatment() {
	case actOnIt:
		p.Status, p.Policy, p.Source = "ok", r.policy(tag), tag
	case actAsNone:
		p.Status, p.Policy, p.Source = "ok", "none", "p"
	default:
		p.Status = "unusable"
	}
	p.Applied = p.Policy
	if r.word("t", "y") != "" {
		weaker := map[string]string{"reject": "quarantine", "quarantine": "none", "none": "none"}
		p.Applied = weaker[p.Policy]
	}
}

// predictLegacy follows RFC 7489 §6.6.3: the author domain, then its registrable
// domain, and nothing else.
func (d discoveryTrial) predictLegacy(author string) prediction {
	author = lowerName(author)
	p := prediction{Status: "none", Organization: author}
	if suffix, _ := publicsuffix.PublicSuffix(author); suffix != author {
		p.Organization = lastOf(author, labelCount(suffix)+1)
	}
	names := []string{author}
	if p.Organization != author {
		names = append(names, p.Organization)
	}
	for _, name := range names {
		answer := p.askForRecords(d, name)
		if !answer.reported {
			p.Status = "inconclusive"
			return p
		}
		var records []naiveRecord
		for _, r := range readAllNaively(answer.data) {
			if !r.bare {
				records = append(records, r)
			}
		}
		switch len(records) {
		case 0:
			continue
		case 1:
			p.applyLegacy(records[0], name, author)
		default:
			p.Status = "multiple"
		}
		return p
	}
	return p
}

// applyLegacy does the same for a receiver that supports only RFC 7489.
func (p *prediction) applyLegacy(r naiveRecord, domain, author string) {
	p.Text, p.RecordDomain = r.text, domain
	switch r.legacyTreatment() {
	case actOnIt:
		p.Status, p.Policy, p.Percent = "ok", r.policy("p"), r.percent()
		if domain != author && r.states("sp") {
			p.Policy = r.policy("sp")
		}
	case actAsNone:
		p.Status, p.Policy, p.Percent = "ok", "none", 100
	default:
		p.Status = "unusable"
	}
}
