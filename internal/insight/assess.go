package insight

import (
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
	j := m.newJudge(group, &m.about)
	places := make(map[string]slot, len(sources))
	for i, s := range sources {
		places[s.form] = slot(i + 1) //nolint:gosec // not negative
	}
	j.slot = func(key string) slot { return places[key] }
	j.profiles = make([]profile, len(sources)+1)
	if err := m.scan(ctx, m.days, nil, j); err != nil {
		return err
	}
	for i, s := range sources {
		of := m.senderOf(group, s)
		assessment := j.assess(&j.profiles[i+1], of, s.Name, p)
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
func (j *judge) assess(p *profile, of *network, name string, within period) Assessment {
	var sender *senders.Sender
	if of.isKnown() {
		sender = of.sender
	}
	s := suspect{profile: p, name: name, sender: sender, judge: j, period: within}
	return s.assess(j.domain.Classes[of.key])
}

// senderProfiles gathers the profiles of all networks.
func (m *Mail) senderProfiles(ctx context.Context, others ...gatherer) (*judge, error) {
	if err := m.recognise(ctx); err != nil {
		return nil, err
	}
	j := m.newJudge(GroupNetwork, &m.about)
	j.profiles = make([]profile, len(m.whole.networks.list)+1)
	j.slot = m.senderSlot(len(j.profiles))
	if err := m.scan(ctx, m.days, nil, append(others, gatherer(j))...); err != nil {
		return nil, err
	}
	return j, nil
}

// senderSlot returns what finds the slots of networks in a list with so many entries, of
// which the first is of none. Networks of reports that arrive meanwhile have none.
func (m *Mail) senderSlot(length int) func(key string) slot {
	return func(key string) slot {
		if at := slot(m.whole.networks.places[key]) + 1; at < slot(length) { //nolint:gosec // not negative
			return at
		}
		return 0
	}
}
