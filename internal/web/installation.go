package web

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

func installationTabs(current string) []ui.Tab {
	return []ui.Tab{
		{Link: ui.Link{Text: "Teams", Href: Prefix + "/installation/teams"}, Current: current == "Teams"},
		{Link: ui.Link{Text: "Users", Href: Prefix + "/installation/users"}, Current: current == "Users"},
		{Link: ui.Link{Text: "Audit log", Href: Prefix + "/installation/audit"}, Current: current == "Audit log"},
	}
}

func installationFrame(template, title string) site.Page {
	return site.Page{Template: template, Title: title, Section: "Installation"}
}

// recentDays is the period of the message counts of teams, in days.
const recentDays = 30

func teamForm() ui.Form {
	return ui.Form{Path: Prefix + "/installation/teams", Method: "post", Submit: "Create team", Fields: []ui.Field{
		{Name: "name", Label: "Name", Type: "text", Required: true, Autocomplete: "off"},
		{Name: "api", Label: "Allow API access", Type: "checkbox"},
	}}
}

func (s *Web) teams(c *site.Call) error { return s.showTeams(c, http.StatusOK, teamForm()) }

func (s *Web) showTeams(c *site.Call, status int, form ui.Form) error {
	today := dmarcd.DayOf(s.options.Now())
	teams, err := c.System.TeamSizes(c.R.Context(), ui.Period{From: today - recentDays + 1, To: today}.Days())
	if err != nil {
		return err
	}
	t := ui.Table{
		ID: "teams", Caption: "Teams", CSV: Prefix + "/installation/teams?csv=teams",
		Columns: []ui.Column{
			{Title: "Team", Wide: true, Note: "Created"},
			{Title: "Domains", Numeric: true, Note: "Members"},
			{Title: "Stages", Wide: true},
			{Title: "Grades", Wide: true},
			{Title: "Messages, 30 days", Numeric: true},
			{Title: "Yours passing", Numeric: true},
			{Title: "Quota used", Numeric: true, Note: "Quota"},
			{Title: "API"},
			{Title: "Actions"},
		},
	}
	for _, team := range teams {
		path := Prefix + "/installation/teams/" + team.ID.String() + "/api"
		state, change := "blocked", ui.Action{Label: "Allow API access", Path: path, Name: "api", Value: "yes"}
		if team.API {
			state = "allowed"
			change = ui.Action{Label: "Block API access", Path: path, Name: "api", Value: "no", Danger: true, Question: "Block API access? Programs that use a token of this team stop working at once."}
		}
		t.Rows = append(t.Rows, []ui.Cell{
			ui.Text(team.Name).Noted("created " + ui.Date(dmarcd.DayOf(team.CreatedAt))), ui.Count(team.Usage[dmarcd.QuotaDomains]).Noted(phrase.Count(int64(team.Members), "member")),
			ui.Text(countedWords("stage", team.Stages)), ui.Text(countedWords("grade", team.Grades)),
			ui.Count(team.Messages), ui.Percent(team.Mail.YoursPassing, team.Mail.Yours), quotaCell(team), ui.Text(state),
			ui.Actions(ui.Action{Label: "Open", Path: Prefix + "/team", Name: "team", Value: team.ID.String()}, change),
		})
	}
	return c.Render(status, installationFrame("installation_teams", "Teams"), listView{Tabs: installationTabs("Teams"), Table: t, Form: form}, t)
}

// countedWords lists the numbers of domains by the values of a filter, in its order.
func countedWords(filter string, domains map[string]int) string {
	var parts []string
	for _, f := range domainsFilters {
		for _, choice := range f.Choices {
			if n := domains[choice.Value]; f.Name == filter && n > 0 {
				parts = append(parts, phrase.Number(int64(n))+" "+choice.Label)
			}
		}
	}
	if len(parts) == 0 {
		return "–"
	}
	return strings.Join(parts, ", ")
}

// quotaCell is the quota of which a team uses the largest share.
func quotaCell(team service.TeamSize) ui.Cell {
	name, _ := team.Quota.Fullest(team.Usage)
	if name == "" {
		return ui.Text("no quota").Noted(ui.Size(team.Usage[dmarcd.QuotaStored]) + " stored")
	}
	used, most := team.Usage[name], team.Quota[name]
	format := phrase.Number
	if name.InBytes() {
		format = ui.Size
	}
	return ui.Percent(used, most).Noted(string(name) + ": " + format(used) + " of " + format(most))
}

func (s *Web) createTeam(c *site.Call, written url.Values) error {
	_, err := c.System.CreateTeam(c.R.Context(), written.Get("name"), written.Get("api") != "")
	if errors.Is(err, dmarcd.ErrConflict) {
		err = &dmarcd.InvalidError{Field: "name", Message: "A team with this name already exists. Choose another name."}
	}
	if err != nil {
		return site.Again(teamForm(), written, err, func(form ui.Form) error { return s.showTeams(c, http.StatusUnprocessableEntity, form) })
	}
	return c.Done(Prefix+"/installation/teams", "team-created")
}

func (s *Web) setAPI(c *site.Call, id dmarcd.TeamID, written url.Values) error {
	team, err := c.System.TeamByID(c.R.Context(), id)
	if err != nil {
		return err
	}
	return c.Finish(c.System.SetAPI(c.R.Context(), team.Name, written.Get("api") == "yes"), Prefix+"/installation/teams", "whitelist-changed")
}

type usersView struct {
	Tabs  []ui.Tab
	Table ui.Table
	// Required means that all users need a second factor; Require changes it.
	Required bool
	Require  ui.Action
}

func factorCell(user dmarcd.User) ui.Cell {
	if user.SecondFactor {
		return ui.Text("yes")
	}
	return ui.Text("no")
}

func (s *Web) users(c *site.Call) error {
	users, err := c.System.Users(c.R.Context())
	if err != nil {
		return err
	}
	teams, err := c.System.AllMemberships(c.R.Context())
	if err != nil {
		return err
	}
	required, err := c.System.SecondFactorRequired(c.R.Context())
	if err != nil {
		return err
	}
	t := ui.Table{
		ID: "users", Caption: "Users", CSV: Prefix + "/installation/users?csv=users",
		Columns: []ui.Column{
			{Title: "Name", Wide: true},
			{Title: "Email"},
			{Title: "Operator"},
			{Title: "Second factor"},
			{Title: "Teams", Wide: true},
			{Title: "Created"},
			{Title: "Last signed in"},
			{Title: "Actions"},
		},
	}
	for _, u := range users {
		operator := "no"
		if u.Operator {
			operator = "yes"
		}
		var roles []string
		for _, m := range teams[u.ID] {
			roles = append(roles, m.Team.Name+" ("+string(m.Role)+")")
		}
		t.Rows = append(t.Rows, []ui.Cell{
			ui.Text(u.Name), ui.Code(u.Email), ui.Text(operator), factorCell(u), ui.Text(strings.Join(roles, ", ")), ui.OnDay(dmarcd.DayOf(u.CreatedAt)), ui.At(u.SignedInAt),
			ui.Actions(ui.Action{
				Label: "Remove", Path: Prefix + "/installation/users/" + u.ID.String() + "/remove", Danger: true,
				Question: "Remove the user from every team? They are signed out everywhere.",
			}),
		})
	}
	return c.Render(http.StatusOK, installationFrame("installation_users", "Users"), usersView{installationTabs("Users"), t, required, requireAction(required, "users", Prefix+"/installation/users/factor")}, t)
}

func (s *Web) removeUser(c *site.Call, user dmarcd.UserID) error {
	_, err := c.System.RemoveUser(c.R.Context(), user)
	return c.Finish(err, Prefix+"/installation/users", "user-removed")
}
