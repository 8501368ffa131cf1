package insight

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/senders"
)

// assess assesses some rows of a group. Those of other groups than senders and addresses have
// no class.
func (m *Mail) assess(ctx context.Context, group Group, entries []*entry) error {
	for _, s := range entries {
		s.Assessment = &Assessment{Class: dmarcd.ClassUnknown}
	}
	if group != GroupSender && group != GroupAddress {
		return nil
	}
	if err := m.recognize(ctx); err != nil {
		return err
	}
	about := m.about
	if len(about) == 0 {
		about = []Domain{{Name: m.domain}}
	}
	all := m.newAssessor(about)
	gatherers := []gatherer{all}
	var addresses *assessor
	slots := make(map[string]slot, len(entries))
	for i, s := range entries {
		slots[s.form] = slot(i + 1)
	}
	if group == GroupSender {
		all.wanted = m.wanted(entries)
	} else {
		addresses = m.newAssessor(about)
		addresses.byAddress = true
		addresses.slot = func(form string) slot { return slots[form] }
		gatherers = append(gatherers, addresses)
	}
	if err := m.scan(ctx, m.days, nil, gatherers...); err != nil {
		return err
	}
	m.inTurn(ctx, func() {
		found := make([][]domainAssessment, len(entries))
		add := func(i slot, d *domainMail, p *profile, of Assessment) {
			found[i-1] = append(found[i-1], domainAssessment{of, d.domain.Name, p.total(), p.total() - p.counts().Compliant})
		}
		for id, d := range all.domains {
			if group == GroupAddress {
				for i, p := range addresses.domains[id].profiles {
					add(i, d, p, m.assessAddress(d, p))
				}
				continue
			}
			for at, p := range d.profiles {
				if i := slots[m.whole.senders.keys[at]]; i > 0 {
					add(i, d, p, m.assessSender(d, senderIndex(at))) //nolint:gosec // it was one
				}
			}
		}
		for i, s := range entries {
			*s.Assessment = together(found[i])
		}
	})
	return nil
}

// wanted returns the senders whose profiles tell what some rows are: their own, and the aligned
// mail of the same services.
func (m *Mail) wanted(entries []*entry) map[senderIndex]bool {
	wanted := make(map[senderIndex]bool, 2*len(entries))
	for _, s := range entries {
		if at, ok := m.whole.senders.byKey[s.form]; ok {
			wanted[at] = true
			if aligned, ok := m.whole.senders.byValue[sender{network: m.whole.senders.list[at].network}]; ok {
				wanted[aligned] = true
			}
		}
	}
	return wanted
}

// assessSender assesses a sender of a domain.
func (m *Mail) assessSender(d *domainMail, at senderIndex) Assessment {
	s := m.assessed(d, at)
	return s.assess()
}

// assessAddress assesses an address: it has the class of the sender of most of its messages, and
// causes of its own.
func (m *Mail) assessAddress(d *domainMail, p *profile) Assessment {
	var of senderIndex
	var most int64
	for at, messages := range p.senders {
		if messages > most || messages == most && at < of {
			of, most = at, messages
		}
	}
	s := m.assessed(d, of)
	if s.profile == nil { // there are too many senders
		s.profile = p
	}
	assessment := s.assess()
	s.profile = p
	s.explain(&assessment)
	return assessment
}

func (m *Mail) assessed(d *domainMail, at senderIndex) assessed {
	of := m.whole.senders.list[at]
	s := assessed{
		profile: d.profiles[slot(at)], sender: of, key: m.whole.senders.keys[at], name: m.whole.senderName(of),
		network: &m.whole.networks.list[of.network], mail: d, period: m.period(d.sum),
	}
	if of.part == partRest {
		aligned, known := m.whole.senders.byValue[sender{network: of.network}]
		s.aligned = known && d.profiles[slot(aligned)] != nil
	}
	return s
}

// domainAssessment is the assessment of a sender for one of several domains, with its messages and
// how many of them fail.
type domainAssessment struct {
	Assessment
	domain            string
	messages, failing int64
}

// together combines the assessments of a sender for several domains: the class of most messages, the
// domains of each class as evidence, and the cause and fix of the domain with the most failing
// messages.
func together(found []domainAssessment) Assessment {
	if len(found) == 0 {
		return Assessment{Class: dmarcd.ClassUnknown}
	}
	if len(found) == 1 {
		return found[0].Assessment
	}
	messages, domains := make(map[dmarcd.Class]int64), make(map[dmarcd.Class][]string)
	slices.SortFunc(found, func(a, b domainAssessment) int {
		return cmp.Or(cmp.Compare(b.messages, a.messages), cmp.Compare(a.domain, b.domain))
	})
	for _, a := range found {
		messages[a.Class] += a.messages
		domains[a.Class] = append(domains[a.Class], a.domain)
	}
	classes := slices.SortedFunc(maps.Keys(messages), func(a, b dmarcd.Class) int {
		return cmp.Or(cmp.Compare(messages[b], messages[a]), strings.Compare(string(a), string(b)))
	})
	parts := make([]string, len(classes))
	for i, class := range classes {
		parts[i] = relation(class) + " " + some(domains[class])
	}
	of := slices.MaxFunc(found, func(a, b domainAssessment) int { return cmp.Compare(a.failing, b.failing) }).Assessment
	of.Class, of.Evidence = classes[0], []string{sentence(strings.Join(parts, "; "))}
	of.Set = found[0].Set
	for _, a := range found {
		if a.Set != of.Set { // only for some of the domains
			of.Set = ""
		}
	}
	return of
}

// relation returns the words between a sender of a class and the names of domains.
func relation(class dmarcd.Class) string {
	switch class {
	case dmarcd.ClassForwarder:
		return "forwards mail of"
	case dmarcd.ClassSpoofing:
		return "spoofs"
	default:
		return string(class) + " for"
	}
}

// some names two of several domains.
func some(domains []string) string {
	switch n := len(domains); n {
	case 1:
		return domains[0]
	case 2:
		return domains[0] + " and " + domains[1]
	default:
		return fmt.Sprintf("%s, %s and %s", domains[0], domains[1], phrase.Count(int64(n-2), "other domain"))
	}
}

// assess finds the class of the sender, why its mail fails, and what to do about it.
func (s *assessed) assess() Assessment {
	var a Assessment
	a.Class, a.Evidence, a.asks = s.class()
	if s.network.sender != nil && s.network.sender.Category == senders.Added {
		a.Evidence = append([]string{"Your team named this sender."}, a.Evidence...)
	}
	if team := s.teamClass(); team != "" {
		a.Class, a.Set, a.asks = team, team, false
		a.Evidence = append([]string{"Your team set this class."}, a.Evidence...)
	}
	s.explain(&a)
	return a
}

// finalClass is the class of assess alone.
func (s *assessed) finalClass() dmarcd.Class {
	if team := s.teamClass(); team != "" {
		return team
	}
	class, _, _ := s.class()
	return class
}
