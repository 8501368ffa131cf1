package service

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/store"
)

const (
	// teamsAtOnce is how many teams of a user are read at once: a user may have hundreds.
	teamsAtOnce = 4
	// minTeamRows and maxTeamRows limit how many rows of a team are read at once.
	minTeamRows, maxTeamRows = 4, 500
)

// Whether someone has to act on a domain, for PostureFilter.
const (
	NextAct     = store.NextAct
	NextNothing = store.NextNothing
)

// TeamDomainFilter selects and sorts the domains of all teams of a user.
type TeamDomainFilter struct {
	// PostureFilter applies to each team; its After and Offset are ignored. The default order is by
	// team and name; "-team" begins with the last team.
	PostureFilter
	// Team is the name of the only team, "" for all.
	Team string
	// After continues after that row.
	After *TeamDomainPosition
}

// TeamDomainPosition is the position of a row. Team decides between rows that are equal otherwise.
type TeamDomainPosition struct {
	PosturePosition
	Team string
}

// TeamDomain is a domain of one of the teams of a user.
type TeamDomain struct {
	Team dmarcd.Team
	PostureRow
	// Alerts is the number of open alerts about the domain.
	Alerts int
}

// Position returns the position of the row.
func (d TeamDomain) Position() TeamDomainPosition {
	return TeamDomainPosition{d.PostureRow.Position, d.Team.Name}
}

// TeamPostureCount counts domains of a team.
type TeamPostureCount struct {
	Team string
	PostureCount
}

// TeamDomains are domains of the teams of a user.
type TeamDomains struct {
	// Teams are the teams that the user is a member of, by name.
	Teams []dmarcd.Team
	// Counts are the domains that match the search and the team, whatever else the filter selects.
	Counts []TeamPostureCount
	Rows   []TeamDomain
}

// Domains returns the domains of all teams that the user is a member of. Each team is read with the
// user's role in it; one that the user leaves meanwhile is left out. So is one that requires a second factor that the
// user does not have.
func (a *Account) Domains(ctx context.Context, filter TeamDomainFilter) (TeamDomains, error) {
	var found TeamDomains
	sources := a.teamDomains(filter)
	err := eachAtOnce(len(sources), func(i int) (err error) {
		sources[i].counts, err = sources[i].view.PostureCounts(ctx, filter.PostureFilter)
		return err
	})
	if err != nil {
		return found, err
	}
	if found.Rows, err = mergeTeams(ctx, sources, filter); err != nil {
		return found, err
	}
	if err := addAlerts(ctx, sources, found.Rows); err != nil {
		return found, err
	}
	still, err := a.service.store.Memberships(ctx, a.User.ID)
	if err != nil {
		return found, err
	}
	member := make(map[string]bool, len(still))
	for _, m := range still {
		if a.needsFactorFor(m.Team) {
			continue
		}
		member[m.Team.Name] = true
		found.Teams = append(found.Teams, m.Team)
	}
	for _, s := range sources {
		for _, c := range s.counts {
			if member[s.team.Name] {
				found.Counts = append(found.Counts, TeamPostureCount{s.team.Name, c})
			}
		}
	}
	found.Rows = slices.DeleteFunc(found.Rows, func(d TeamDomain) bool { return !member[d.Team.Name] })
	return found, nil
}

// teamDomains returns the views of the teams that a filter selects, in their order.
func (a *Account) teamDomains(filter TeamDomainFilter) []*teamSource {
	var sources []*teamSource
	for _, m := range a.memberships {
		if filter.Team != "" && filter.Team != m.Team.Name || a.needsFactorFor(m.Team) {
			continue
		}
		session := a.session
		session.Team, session.Role = m.Team, m.Role
		actor := User(session, a.client.Address)
		sources = append(sources, &teamSource{team: m.Team, view: a.service.Team(m.Team.ID, actor)})
	}
	slices.SortFunc(sources, func(a, b *teamSource) int { return cmp.Compare(a.team.Name, b.team.Name) })
	if filter.Sort == "-team" {
		slices.Reverse(sources)
	}
	return sources
}

// teamSource reads the domains of a team in order, some at a time.
type teamSource struct {
	team   dmarcd.Team
	view   *Team
	counts []PostureCount
	filter PostureFilter
	rows   []PostureRow // read, and not taken
	ended  bool
}

// fill reads rows, unless some are left or there are no more.
func (s *teamSource) fill(ctx context.Context) (err error) {
	if len(s.rows) > 0 || s.ended {
		return nil
	}
	s.rows, err = s.view.Postures(ctx, s.filter)
	s.ended = len(s.rows) < s.filter.Limit
	if len(s.rows) > 0 {
		last := s.rows[len(s.rows)-1].Position
		s.filter.After = &last
	}
	return err
}

// teamDomainOrders are the orders of PostureFilter in which teams are mixed.
var teamDomainOrders = []string{"name", "grade", "policy", "stage", "messages", "passing"}

// mergeTeams returns the rows of a page.
func mergeTeams(ctx context.Context, all []*teamSource, filter TeamDomainFilter) ([]TeamDomain, error) {
	word, descending := strings.CutPrefix(filter.Sort, "-")
	byTeam := !slices.Contains(teamDomainOrders, word)
	var sources []*teamSource
	for _, s := range all {
		if !slices.ContainsFunc(s.counts, filter.Matches) {
			continue
		}
		s.filter = filter.PostureFilter
		s.filter.Offset, s.filter.After = 0, nil
		if byTeam {
			s.filter.Sort = ""
		}
		if after := filter.After; after != nil {
			order := cmp.Compare(s.team.Name, after.Team)
			if byTeam && descending {
				order = -order
			}
			position := after.PosturePosition
			position.Inclusive = order > 0
			switch {
			case !byTeam || order == 0:
				s.filter.After = &position
			case order < 0:
				continue
			}
		}
		sources = append(sources, s)
	}
	for _, s := range sources {
		s.filter.Limit = min(max(2*filter.Limit/len(sources), minTeamRows), maxTeamRows, filter.Limit)
		if byTeam {
			s.filter.Limit = min(filter.Limit, maxTeamRows)
		}
	}
	if !byTeam {
		if err := eachAtOnce(len(sources), func(i int) error { return sources[i].fill(ctx) }); err != nil {
			return nil, err
		}
	}
	precedes := func(a, b PosturePosition) bool {
		if a.Key != b.Key {
			return a.Key < b.Key
		}
		if word == "name" && descending {
			return a.Name > b.Name
		}
		return a.Name < b.Name
	}
	var rows []TeamDomain
	for len(rows) < filter.Limit {
		var first *teamSource
		for _, s := range sources {
			if err := s.fill(ctx); err != nil {
				return nil, err
			}
			if len(s.rows) > 0 && (first == nil || precedes(s.rows[0].Position, first.rows[0].Position)) {
				first = s
			}
			if first != nil && byTeam {
				break
			}
		}
		if first == nil {
			break
		}
		rows = append(rows, TeamDomain{Team: first.team, PostureRow: first.rows[0]})
		first.rows = first.rows[1:]
	}
	return rows, nil
}

// addAlerts sets the numbers of open alerts.
func addAlerts(ctx context.Context, sources []*teamSource, rows []TeamDomain) error {
	ids := make(map[dmarcd.TeamID][]dmarcd.DomainID)
	for _, row := range rows {
		ids[row.Team.ID] = append(ids[row.Team.ID], row.ID)
	}
	views := make(map[dmarcd.TeamID]*Team, len(sources))
	for _, s := range sources {
		views[s.team.ID] = s.view
	}
	teams := slices.Collect(maps.Keys(ids))
	open := make([]map[dmarcd.DomainID]int, len(teams))
	err := eachAtOnce(len(teams), func(i int) (err error) {
		open[i], err = views[teams[i]].team.OpenAlertsOf(ctx, ids[teams[i]])
		return err
	})
	for i := range rows {
		rows[i].Alerts = open[slices.Index(teams, rows[i].Team.ID)][rows[i].ID]
	}
	return err
}

// eachAtOnce calls f with the numbers below n, a few at once, until one fails.
func eachAtOnce(n int, f func(i int) error) error {
	var group recovered.Group
	var next atomic.Int64
	errs := make([]error, min(n, teamsAtOnce))
	for worker := range errs {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[worker] == nil; i = int(next.Add(1)) - 1 {
				errs[worker] = f(i)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
