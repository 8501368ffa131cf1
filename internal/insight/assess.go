package insight

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/senders"
)

// SetDomains sets the facts of the domain of the mail, or of all its domains, by which senders
// are assessed.
func (m *Mail) SetDomains(domains ...Domain) { m.about = domains }

// KnowsDomains reports whether SetDomains was called. Without that, senders are assessed by all
// mail together.
func (m *Mail) KnowsDomains() bool { return len(m.about) > 0 }

// assess assesses some sources of a group.
func (m *Mail) assess(ctx context.Context, group Group, p period, sources []*source) error {
	if group != GroupNetwork && group != GroupAddress {
		for _, s := range sources {
			s.Assessment = &Assessment{Class: dmarcd.ClassUnknown}
		}
		return nil
	}
	if err := m.recognize(ctx); err != nil {
		return err
	}
	places := make(map[string]slot, len(sources))
	for i, s := range sources {
		places[s.form] = slot(i + 1)
	}
	j := m.newJudge(group)
	j.slot = func(key string) slot { return places[key] }
	switch len(m.about) {
	case 0:
		j.all = j.newDocket(&Domain{Name: m.domain})
	case 1:
		j.all = j.newDocket(&m.about[0])
	default:
		j.dockets = make(map[dmarcd.DomainID]*docket, len(m.about))
		for i := range m.about {
			j.dockets[m.about[i].ID] = j.newDocket(&m.about[i])
		}
	}
	if err := m.scan(ctx, m.days, nil, j); err != nil {
		return err
	}
	for i, s := range sources {
		assessment := m.assessOne(j, slot(i+1), m.senderOf(group, s), s.Name, p)
		s.Assessment = &assessment
	}
	return nil
}

// assessOne assesses the sender at a slot.
func (m *Mail) assessOne(j *judge, at slot, of *network, name string, within period) Assessment {
	if j.all != nil {
		return j.all.assess(j.all.profile(at), of, name, within)
	}
	var verdicts []verdict
	for i := range m.about {
		d := j.dockets[m.about[i].ID]
		if place, sends := d.places[at]; sends {
			p := &d.profiles[place]
			verdicts = append(verdicts, verdict{d.assess(p, of, name, within), d.domain.Name, p.total(), p.total() - p.counts().Compliant})
		}
	}
	return together(verdicts)
}

// verdict is what a sender is to one of several domains, with its messages and those that fail.
type verdict struct {
	Assessment
	domain            string
	messages, failing int64
}

// together is what a sender is to several domains: the class of the most messages, the domains of
// each class as evidence, and the cause and fix of the domain with the most messages that fail.
func together(verdicts []verdict) Assessment {
	if len(verdicts) == 0 {
		return Assessment{Class: dmarcd.ClassUnknown}
	}
	if len(verdicts) == 1 {
		return verdicts[0].Assessment
	}
	messages, domains := make(map[dmarcd.Class]int64), make(map[dmarcd.Class][]string)
	slices.SortStableFunc(verdicts, func(a, b verdict) int { return cmp.Compare(b.messages, a.messages) })
	for _, v := range verdicts {
		messages[v.Class] += v.messages
		domains[v.Class] = append(domains[v.Class], v.domain)
	}
	classes := slices.SortedFunc(maps.Keys(messages), func(a, b dmarcd.Class) int {
		return cmp.Or(cmp.Compare(messages[b], messages[a]), strings.Compare(string(a), string(b)))
	})
	parts := make([]string, len(classes))
	for i, class := range classes {
		parts[i] = relation(class) + " " + some(domains[class])
	}
	of := slices.MaxFunc(verdicts, func(a, b verdict) int { return cmp.Compare(a.failing, b.failing) }).Assessment
	of.Class, of.Evidence = classes[0], []string{sentence(strings.Join(parts, "; "))}
	return of
}

// relation says what a sender of a class is to the domains that follow.
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
		return fmt.Sprintf("%s, %s and %s", domains[0], domains[1], count(int64(n-2), "other domain"))
	}
}

// senderOf returns the network of a source.
func (m *Mail) senderOf(group Group, s *source) *network {
	list := m.whole.networks.list
	if group == GroupNetwork {
		return &list[m.whole.networks.places[s.form]]
	}
	return &list[m.whole.networks.of(m.whole.home(s.form), noNetwork)]
}

// assess assesses a sender with a profile.
func (d *docket) assess(p *profile, of *network, name string, within period) Assessment {
	s := suspect{profile: p, name: name, sender: of.sender, docket: d, period: within}
	added := of.sender != nil && of.sender.Category == senders.Added
	if added {
		s.sender = nil // the catalogue does not have it
	}
	assessment := s.assess(cmp.Or(d.domain.Classes[of.key], d.classes[of.key]))
	if added {
		assessment.Evidence = append([]string{"Your team named this sender."}, assessment.Evidence...)
	}
	return assessment
}
