package web

import (
	"net/http"
	"net/url"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

type membersView struct {
	Tabs  []ui.Tab
	Table ui.Table
	// Invitations are shown only to owners.
	Invitations ui.Table
	Form        ui.Form
	// Invitation is a new invitation, whose link is shown only once; nil for none.
	Invitation *service.SentInvitation
}

func invitationForm() ui.Form {
	return ui.Form{Path: Prefix + "/settings/members", Method: "post", Submit: "Create invitation", Fields: []ui.Field{
		{Name: "email", Label: "Email", Type: "email", Required: true, Autocomplete: "off"},
		{Name: "role", Label: "Role", Type: "select", Value: "viewer", Choices: []ui.Choice{
			{Value: "viewer", Label: "viewer: can see everything"},
			{Value: "editor", Label: "editor: can also change domains and upload reports"},
			{Value: "owner", Label: "owner: can also delete domains, and manage members, tokens, mailboxes, webhooks, alerts and retention"},
		}},
	}}
}

func (s *Web) members(c *call) error { return s.showMembers(c, http.StatusOK, invitationForm(), nil) }

func (s *Web) showMembers(c *call, status int, form ui.Form, invitation *service.SentInvitation) error {
	members, err := c.team.Members(c.r.Context())
	if err != nil {
		return err
	}
	view := membersView{Tabs: settingsTabs(c.viewer, "Members"), Form: form, Invitation: invitation, Table: memberTable(members, c.viewer)}
	if c.viewer.MayOwn() {
		invitations, err := c.team.Invitations(c.r.Context())
		if err != nil {
			return err
		}
		view.Invitations = invitationTable(invitations, members)
	}
	return c.render(status, settingsFrame("members", "Members"), view, view.Table, view.Invitations)
}

func memberTable(members []dmarcd.Member, viewer Viewer) ui.Table {
	t := ui.Table{
		ID: "members", Caption: "Members", CSV: Prefix + "/settings/members?csv=members",
		Columns: []ui.Column{{Title: "Name", Wide: true}, {Title: "Email"}, {Title: "Role"}, {Title: "Joined"}, {Title: "Last signed in"}, {Title: "Actions", Wide: true}},
	}
	for _, m := range members {
		last := ui.Actions()
		if viewer.MayOwn() {
			path := Prefix + "/settings/members/" + m.User.ID.String()
			for _, role := range []dmarcd.Role{dmarcd.RoleViewer, dmarcd.RoleEditor, dmarcd.RoleOwner} {
				if role != m.Role {
					last.Actions = append(last.Actions, ui.Action{Label: "Make " + string(role), Path: path + "/role", Name: "role", Value: string(role)})
				}
			}
			last.Actions = append(last.Actions, ui.Action{
				Label: "Remove", Path: path + "/remove", Danger: true, Question: "Remove the member? Everything they created stays.",
			})
		}
		t.Rows = append(t.Rows, []ui.Cell{ui.Text(m.User.Name), ui.Code(m.User.Email), ui.Text(string(m.Role)), ui.At(m.JoinedAt), ui.At(m.User.SignedInAt), last})
	}
	return t
}

// inviteMember shows the link in its response, unless it was mailed, because it is not stored.
func (s *Web) inviteMember(c *call, written url.Values) error {
	var invitation service.SentInvitation
	role, err := dmarcd.ParseRole(written.Get("role"))
	if err == nil {
		invitation, err = c.team.InviteMember(c.r.Context(), written.Get("email"), role)
	}
	if err != nil {
		return again(invitationForm(), written, err, func(form ui.Form) error {
			return s.showMembers(c, http.StatusUnprocessableEntity, form, nil)
		})
	}
	return s.showMembers(c, http.StatusOK, invitationForm(), &invitation)
}

func (s *Web) setRole(c *call, user dmarcd.UserID, written url.Values) error {
	role, err := dmarcd.ParseRole(written.Get("role"))
	if err != nil {
		return err
	}
	return c.finish(c.team.SetRole(c.r.Context(), user, role), Prefix+"/settings/members", "role-set")
}
