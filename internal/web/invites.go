package web

import (
	"cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// inviteTable shows the invitations that can still be used, and which of the members
// made them.
func inviteTable(invites []dmarcd.Invite, members []dmarcd.Member) ui.Table {
	t := ui.Table{
		ID: "invitations", Caption: "Open invitations", CSV: Prefix + "/settings/members?csv=invitations",
		Columns: []ui.Column{{Title: "Email", Wide: true}, {Title: "Role"}, {Title: "Invited by"}, {Title: "Until"}, {Title: "Actions"}},
		Empty:   ui.Empty{Title: "No open invitations", Advice: "An invitation is listed here until it is accepted or expires.", Action: ui.Link{}},
	}
	by := map[dmarcd.UserID]string{0: "command line"}
	for _, member := range members {
		by[member.User.ID] = member.User.Email
	}
	for _, invite := range invites {
		// Links of members who have left are void, so this one is an operator's.
		maker := cmp.Or(by[invite.CreatedBy], "operator")
		whom := ui.Code(invite.Email)
		if invite.Email == "" {
			whom = ui.Text("anyone with the link")
		}
		t.Rows = append(t.Rows, []ui.Cell{whom, ui.Text(string(invite.Role)), ui.Text(maker), ui.At(invite.ExpiresAt), ui.Actions(ui.Action{
			Label: "Withdraw", Path: Prefix + "/settings/invitations/withdraw", Name: "email", Value: invite.Email, Danger: true,
			Question: "Withdraw the invitation? Its link stops working.",
		})})
	}
	return t
}

func (s *Web) withdrawInvite(c *call) error {
	written, err := c.form()
	if err != nil {
		return err
	}
	if err := c.team.WithdrawInvite(c.r.Context(), written.Get("email")); err != nil {
		return err
	}
	return c.done(Prefix+"/settings/members", "invite-withdrawn")
}
