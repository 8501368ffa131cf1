package insight

import (
	"context"

	"github.com/dmarcd/dmarcd"
)

// DomainClasses returns the mail of each domain by the class that its sender has for it. The mail of a
// single domain is under its id in SetDomains. The caller must not change the map.
func (m *Mail) DomainClasses(ctx context.Context) (map[dmarcd.DomainID]ClassCounts, error) {
	return answered(m, "classes by domain", Query{}, func() (map[dmarcd.DomainID]ClassCounts, error) {
		if err := m.recognize(ctx); err != nil {
			return nil, err
		}
		about := m.about
		if len(about) == 0 {
			about = []Domain{{Name: m.domain}}
		}
		a := m.newAssessor(about)
		if err := m.scan(ctx, m.days, nil, a); err != nil {
			return nil, err
		}
		classes := make(map[dmarcd.DomainID]ClassCounts, len(a.domains))
		m.inTurn(ctx, func() {
			for id, d := range a.domains {
				classes[id] = m.classCounts(d)
			}
		})
		return classes, nil
	})
}

// classCounts adds up the mail of the senders of a domain by class.
func (m *Mail) classCounts(d *domainMail) ClassCounts {
	var sums classSums
	for at, p := range d.profiles {
		of := m.assessed(d, senderIndex(at)) //nolint:gosec // it was one
		sums[columnOf(of.finalClass())].merge(&p.sum)
	}
	return ClassCounts{
		Yours: sums[columnYours].counts(), Forwarded: sums[columnForwarded].counts(), Spoofed: sums[columnSpoofed].counts(), Unknown: sums[columnUnknown].counts(),
	}
}
