package insight

import (
	"context"
	"fmt"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
)

// brief is what a check says about who sends as a domain: enough for classes, but not for causes.
// Its facts may be a hundred times as large.
type brief struct {
	organization string // "" if it is not known
	authorized   authorized
}

// LoadDomains sets the domains of the mail, as SetDomains does, with what their latest checks say
// in brief: it may be called for any number of domains.
func (m *Mail) LoadDomains(ctx context.Context) error {
	found := make(map[dmarcd.CheckID]*brief)
	cache, team := m.service.briefs, m.team.ID()
	known := func(check dmarcd.CheckID) bool {
		b, ok := cache.Get(briefKey{team, check})
		if ok {
			found[check] = b
		}
		return ok
	}
	domains, err := m.team.SenderDomains(ctx, known, func(check dmarcd.CheckID, facts *facts.Facts) {
		found[check] = &brief{organization: facts.DMARC.OrganizationalDomain, authorized: authorizedBy(facts)}
		cache.Put(briefKey{team, check}, found[check], found[check].size())
	})
	if err != nil {
		return fmt.Errorf("read domains: %w", err)
	}
	m.about = make([]Domain, len(domains))
	for i, d := range domains {
		m.about[i] = Domain{ID: d.ID, Name: d.Name, Check: d.Check, Classes: d.Classes, brief: found[d.Check]}
		if m.about[i].brief == nil {
			m.about[i].brief = new(brief)
		}
	}
	return nil
}

// maxBriefs limits what is cached of all teams, in bytes: that of about 20,000 domains.
const maxBriefs = 16 << 20

// briefKey is a check, which does not change once it is stored.
type briefKey struct {
	team  dmarcd.TeamID
	check dmarcd.CheckID
}

// size returns about how many bytes it takes.
func (b *brief) size() int {
	const entry, network, name = 200, 32, 16
	size := entry + network*cap(b.authorized.networks) + name*cap(b.authorized.names) + len(b.organization)
	for _, n := range b.authorized.names {
		size += len(n)
	}
	return size
}
