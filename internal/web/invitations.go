package web

import (
	"cmp"
	"net/url"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

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

func (s *Web) withdrawInvitation(c *call, written url.Values) error {
	return c.finish(c.team.WithdrawInvitation(c.r.Context(), written.Get("email")), Prefix+"/settings/members", "invitation-withdrawn")
}
