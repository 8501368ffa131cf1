package web

import (
	"cmp"

	"github.com/dmarcd/dmarcd"
)

// inviteTable shows the invitations that can still be used, and which of the members
// made them.
func inviteTable(invites []dmarcd.Invite, members []dmarcd.Member) Table {
	t := Table{
		ID: "invitations", Caption: "Open invitations", CSV: Prefix + "/settings/members?csv=invitations",
		Columns: []Column{{Title: "E-mail", Wide: true}, {Title: "Role"}, {Title: "Invited by"}, {Title: "Until"}, {Title: "Actions"}},
		Empty:   Empty{"No open invitations", "An invitation is listed here until its link is used or runs out.", Link{}},
	}
	by := map[dmarcd.UserID]string{0: "command line"}
	for _, member := range members {
		by[member.User.ID] = member.User.Email
	}
	for _, invite := range invites {
		// Links of members who have left are void, so this one is an operator's.
		maker := cmp.Or(by[invite.CreatedBy], "operator")
		whom := code(invite.Email)
		if invite.Email == "" {
			whom = text("whoever has the link")
		}
		t.Rows = append(t.Rows, []Cell{whom, text(string(invite.Role)), text(maker), at(invite.ExpiresAt), actions(Action{
			Label: "Withdraw", Path: Prefix + "/settings/invitations/withdraw", Name: "email", Value: invite.Email, Danger: true,
			Question: "Withdraw the invitation? Links that were made for this address open nothing any more.",
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
