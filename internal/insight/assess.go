package insight

import (
	"cmp"
	"context"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/senders"
)

// About tells what is known of the domain of the mail, which assessments are made with.
func (m *Mail) About(domain Domain) { m.about = domain }

// assess assesses some sources of a group.
func (m *Mail) assess(ctx context.Context, group Group, p period, sources []*source) error {
	if group != GroupNetwork && group != GroupAddress {
		for _, s := range sources {
			s.Assessment = &Assessment{Class: dmarcd.ClassUnknown}
		}
		return nil
	}
	if err := m.recognise(ctx); err != nil {
		return err
	}
	places := make(map[string]slot, len(sources))
	for i, s := range sources {
		places[s.form] = slot(i + 1)
	}
	j := m.newJudge(group)
	j.slot = func(key string) slot { return places[key] }
	j.all = j.newDocket(&m.about)
	if err := m.scan(ctx, m.days, nil, j); err != nil {
		return err
	}
	for i, s := range sources {
		assessment := j.all.assess(j.all.profile(slot(i+1)), m.senderOf(group, s), s.Name, p)
		s.Assessment = &assessment
	}
	return nil
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
