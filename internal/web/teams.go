package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
	"github.com/dmarcd/dmarcd/internal/wire"
)

const teamsPath = Prefix + "/teams"

// maxTeamCounts is the number of teams up to which the domains of each are counted above the list.
const maxTeamCounts = 12

// teamDomainsView is the list of the domains of all teams of a user.
type teamDomainsView struct {
	// Title says how many domains need the user.
	Title string
	domainsView
}

// teamDomains lists the domains of all teams that the user is a member of.
func (s *Web) teamDomains(c *site.Call) error {
	query := withoutDone(c.R.URL.Query())
	order := ui.NewSorting(teamsPath, query, "team", "name", "grade", "policy", "stage")
	asked := service.TeamDomainFilter{Team: query.Get("team")}
	asked.PostureFilter, _ = domainsQuery(query)
	asked.Sort, asked.Limit = order.By, domainsPerPage+1
	if c.WantsCSV("domains") {
		asked.Limit = maxCSVRows
	} else if after := query.Get("after"); after != "" {
		position, err := parseTeamPosition(after)
		if err != nil {
			return err
		}
		asked.After = &position
	}
	found, err := c.Account.Domains(c.R.Context(), asked)
	if err != nil {
		return err
	}
	view := teamDomainsView{domainsView: domainsView{Path: teamsPath, Search: asked.Search}}
	if len(found.Rows) > domainsPerPage && !c.WantsCSV("domains") {
		found.Rows = found.Rows[:domainsPerPage]
		view.Pager.Next = formatTeamPosition(found.Rows[domainsPerPage-1].Position())
	}
	view.Pager = ui.CursorPager(teamsPath, query, view.Pager.Next)
	view.Hidden = ui.HiddenFields(query, append([]string{"team"}, filterNames...)...)
	view.countTeams(asked, found, query)
	view.Table = teamDomainsTable(c, found.Rows, order)
	if query.Has("team") || slices.ContainsFunc(filterNames, query.Has) {
		view.Clear = ui.WithQuery(teamsPath, query, "search", "", "policy", "", "grade", "", "stage", "", "next", "", "team", "", "after", "")
	}
	frame := site.Page{Template: "teams", Title: "Domains of your teams"}
	if c.WantsFragment() {
		return c.Fragment(frame, "domainlist", view.domainsView)
	}
	return c.Render(http.StatusOK, frame, view, view.Table)
}

// countTeams fills the counts and the title.
func (v *teamDomainsView) countTeams(asked service.TeamDomainFilter, found service.TeamDomains, query url.Values) {
	counts := make([]service.PostureCount, len(found.Counts))
	of := map[string]int{}
	for i, c := range found.Counts {
		counts[i] = c.PostureCount
		if asked.Matches(c.PostureCount) {
			of[c.Team] += c.Domains
		}
	}
	v.count(asked.PostureFilter, counts, query)
	team := domainsFilter{Name: "team", Label: "Team", Value: asked.Team, Choices: []ui.Choice{{Label: "any team"}}}
	for _, t := range found.Teams {
		team.Choices = append(team.Choices, ui.Choice{Value: t.Name, Label: t.Name})
		if len(found.Teams) > maxTeamCounts || of[t.Name] == 0 {
			continue
		}
		choose := t.Name
		if choose == asked.Team { // once more removes the filter
			choose = ""
		}
		team.Counts = append(team.Counts, domainsCount{
			Label: t.Name, Domains: of[t.Name], Current: choose == "", Href: ui.WithQuery(teamsPath, query, "team", choose, "after", ""),
		})
	}
	v.Filters = slices.Insert(v.Filters, 0, team)
	needing := countDomains(counts, service.PostureFilter{Next: service.NextAct}.Matches)
	where := "in " + phrase.Count(int64(len(found.Teams)), "team")
	if asked.Team != "" {
		where = "of " + asked.Team
	}
	verb := "need"
	if needing == 1 {
		verb = "needs"
	}
	v.Title = phrase.Number(int64(needing)) + " of " + phrase.Count(int64(v.All), "domain") + " " + where + " " + verb + " you."
	if v.All == 0 {
		v.Title = "Domains of your teams"
	}
}

// teamDomainsTable lists domains with their teams. The pages of a domain are those of the selected team: a
// domain of another one is a button that switches to its team first.
func teamDomainsTable(c *site.Call, rows []service.TeamDomain, order ui.Sorting) ui.Table {
	t := ui.Table{
		ID: "domains", Caption: "Domains of your teams", CSV: ui.WithQuery(teamsPath, c.R.URL.Query(), "csv", "domains", "after", ""),
		Columns: []ui.Column{
			order.Column("Domain", "name", false), order.Column("Team", "team", false), order.Column("Grade", "grade", false),
			order.Column("Policy", "policy", false), order.Column("Stage", "stage", false),
			{Title: "Next", Wide: true},
			{Title: "Alerts", Numeric: true},
		},
		Empty: ui.Empty{Title: "No domain matches", Advice: "Change or clear the filter above.", Action: ui.Link{Text: "Show all domains", Href: teamsPath}},
	}
	t.Columns[0].Wide = true
	for _, row := range rows {
		name := ui.LinkTo(row.Name, domainPath(row.Name))
		if row.Team.ID != c.Viewer.Team.ID {
			name = ui.Open(row.Name, ui.Action{Path: ui.WithQuery(Prefix+"/team", url.Values{"next": {domainPath(row.Name)}}), Name: "team", Value: row.Team.ID.String()})
		}
		t.Rows = append(t.Rows, []ui.Cell{
			name, ui.Text(row.Team.Name), ui.Grade(row.Grade), DomainHead{Domain: row.Domain, Applied: row.EffectivePolicy()}.PolicyBadge(),
			postureBadge(row.Posture), nextStep(row.Posture), ui.Count(int64(row.Alerts)),
		})
	}
	return t
}

// formatTeamPosition encodes a position in the list.
func formatTeamPosition(p service.TeamDomainPosition) string {
	return wire.FormatPosition(p.Key, p.Name+" "+p.Team)
}

// parseTeamPosition is the inverse of formatTeamPosition; other texts are wire.ErrAfter.
func parseTeamPosition(text string) (p service.TeamDomainPosition, err error) {
	key, rest, err := wire.ParsePosition(text)
	name, team, ok := strings.Cut(rest, " ")
	if err == nil && !ok {
		err = wire.ErrAfter
	}
	p.Key, p.Name, p.Team = key, name, team
	return p, err
}

// chooseTeam switches to another team, and shows one of our pages.
func (s *Web) chooseTeam(c *site.Call, form url.Values) error {
	team, err := dmarcd.ParseTeamID(form.Get("team"))
	if err != nil {
		return dmarcd.ErrNotFound
	}
	next, _, _ := strings.Cut(site.OwnPath(c.R.URL.Query().Get("next")), "?")
	return c.Finish(c.Account.SelectTeam(c.R.Context(), team), next, teamSwitched)
}
