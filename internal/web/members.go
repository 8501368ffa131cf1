package web

import (
	"cmp"
	"net/http"
	"net/url"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

type membersView struct {
	Tabs  []ui.Tab
	Table ui.Table
	// Invitations are shown only to owners.
	Invitations ui.Table
	Form        ui.Form
	// Require requires a second factor.
	Require ui.Action
	// Approval requires approval of managed records.
	Approval ui.Action
	// Invitation is a new invitation, whose link is shown only once; nil for none.
	Invitation *service.SentInvitation
}

func invitationForm() ui.Form {
	return ui.Form{Path: Prefix + "/settings/members", Method: "post", Submit: "Create invitation", Fields: []ui.Field{
		{Name: "email", Label: "Email", Type: "email", Required: true, Autocomplete: "off"},
		{Name: "role", Label: "Role", Type: "select", Value: "viewer", Choices: []ui.Choice{
			{Value: "viewer", Label: "viewer: sees everything"},
			{Value: "editor", Label: "editor: also changes domains, uploads reports"},
			{Value: "owner", Label: "owner: also deletes domains, manages members and settings"},
		}},
	}}
}

func (s *Web) members(c *site.Call) error {
	return s.showMembers(c, http.StatusOK, invitationForm(), nil)
}

func (s *Web) showMembers(c *site.Call, status int, form ui.Form, invitation *service.SentInvitation) error {
	members, err := c.Team.Members(c.R.Context())
	if err != nil {
		return err
	}
	view := membersView{Tabs: settingsTabs(c.Viewer, "Members"), Form: form, Require: requireAction(c.Viewer.Team.SecondFactor, "members", Prefix+"/settings/members/factor"), Approval: approvalAction(c.Viewer.Team.Approval), Invitation: invitation, Table: memberTable(members, c.Viewer)}
	if c.Viewer.MayOwn() {
		invitations, err := c.Team.Invitations(c.R.Context())
		if err != nil {
			return err
		}
		view.Invitations = invitationTable(invitations, members)
	}
	return c.Render(status, settingsFrame("members", "Members"), view, view.Table, view.Invitations)
}

// approvalAction is the button that requires approval of managed records, or no longer does.
func approvalAction(required bool) ui.Action {
	action := ui.Action{Label: "Require it", Path: Prefix + "/settings/members/approval", Name: "required", Value: "yes", Question: "Require the approval of another user for each change of a managed record?"}
	if required {
		action.Label, action.Value, action.Question = "Make it optional", "no", "Publish changes of managed records without approval?"
	}
	return action
}

func memberTable(members []dmarcd.Member, viewer site.Viewer) ui.Table {
	t := ui.Table{
		ID: "members", Caption: "Members", CSV: Prefix + "/settings/members?csv=members",
		Columns: []ui.Column{{Title: "Name", Wide: true}, {Title: "Email"}, {Title: "Role"}, {Title: "Second factor"}, {Title: "Joined"}, {Title: "Last signed in"}, {Title: "Actions", Wide: true}},
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
				Label: "Remove", Path: path + "/remove", Danger: true, Question: "Remove the member? Their tokens with the scope admin are revoked. Everything else that they created stays.",
			})
		}
		t.Rows = append(t.Rows, []ui.Cell{ui.Text(m.User.Name), ui.Code(m.User.Email), ui.Text(string(m.Role)), factorCell(m.User), ui.OnDay(dmarcd.DayOf(m.JoinedAt)), ui.At(m.User.SignedInAt), last})
	}
	return t
}

// inviteMember shows the link in its response, unless it was mailed, because it is not stored.
func (s *Web) inviteMember(c *site.Call, written url.Values) error {
	var invitation service.SentInvitation
	role, err := dmarcd.ParseRole(written.Get("role"))
	if err == nil {
		invitation, err = c.Team.InviteMember(c.R.Context(), written.Get("email"), role)
	}
	if err != nil {
		return site.Again(invitationForm(), written, err, func(form ui.Form) error {
			return s.showMembers(c, http.StatusUnprocessableEntity, form, nil)
		})
	}
	return s.showMembers(c, http.StatusOK, invitationForm(), &invitation)
}

func (s *Web) setRole(c *site.Call, user dmarcd.UserID, written url.Values) error {
	role, err := dmarcd.ParseRole(written.Get("role"))
	if err != nil {
		return err
	}
	return c.Finish(c.Team.SetRole(c.R.Context(), user, role), Prefix+"/settings/members", "role-set")
}

// removeMember shows the tokens next if the member leaves some behind.
func (s *Web) removeMember(c *site.Call, user dmarcd.UserID, _ url.Values) error {
	next, done := "/settings/members", "member-removed"
	err := c.Team.RemoveMember(c.R.Context(), user)
	if err == nil {
		var tokens []dmarcd.Token
		if tokens, err = c.Team.Tokens(c.R.Context()); leftover(tokens, s.options.Now()) {
			next, done = "/settings/tokens", "member-tokens"
		}
	}
	return c.Finish(err, Prefix+next, done)
}

// invitationTable shows the open invitations and who created them.
func invitationTable(invitations []dmarcd.Invitation, members []dmarcd.Member) ui.Table {
	t := ui.Table{
		ID: "invitations", Caption: "Open invitations", CSV: Prefix + "/settings/members?csv=invitations",
		Columns: []ui.Column{{Title: "Email", Wide: true}, {Title: "Role"}, {Title: "Invited by"}, {Title: "Until"}, {Title: "Actions"}},
		Empty:   ui.Empty{Title: "No open invitations", Advice: "An invitation is listed here until it is accepted or expires.", Action: ui.Link{}},
	}
	by := map[dmarcd.UserID]string{0: "command line"}
	for _, member := range members {
		by[member.User.ID] = member.User.Email
	}
	for _, invitation := range invitations {
		// Invitations of former members are void, so this one is from an operator.
		maker := cmp.Or(by[invitation.CreatedBy], "operator")
		if invitation.Token != 0 {
			maker = "token " + invitation.Token.String()
		}
		whom := ui.Code(invitation.Email)
		if invitation.Email == "" {
			whom = ui.Text("anyone with the link")
		}
		t.Rows = append(t.Rows, []ui.Cell{whom, ui.Text(string(invitation.Role)), ui.Text(maker), ui.At(invitation.ExpiresAt), ui.Actions(ui.Action{
			Label: "Withdraw", Path: Prefix + "/settings/invitations/withdraw", Name: "email", Value: invitation.Email, Danger: true,
			Question: "Withdraw the invitation? Its link stops working.",
		})})
	}
	return t
}

func (s *Web) withdrawInvitation(c *site.Call, written url.Values) error {
	return c.Finish(c.Team.WithdrawInvitation(c.R.Context(), written.Get("email")), Prefix+"/settings/members", "invitation-withdrawn")
}
