package web

import "time"

// Invite is somebody who was invited to the team and has not come yet.
type Invite struct {
	// Email is whom the link is for, "" for whoever has it.
	Email, Role string
	// By is who made it: a member's address, or other words.
	By        string
	ExpiresAt time.Time
}

func inviteTable(invites []Invite) Table {
	t := Table{
		ID: "invitations", Caption: "Open invitations", CSV: Prefix + "/settings/members?csv=invitations",
		Columns: []Column{{Title: "E-mail", Wide: true}, {Title: "Role"}, {Title: "Invited by"}, {Title: "Until"}, {Title: "Actions"}},
		Empty:   Empty{"No open invitations", "An invitation is listed here until its link is used or runs out.", Link{}},
	}
	for _, invite := range invites {
		whom := code(invite.Email)
		if invite.Email == "" {
			whom = text("whoever has the link")
		}
		t.Rows = append(t.Rows, []Cell{whom, text(invite.Role), text(invite.By), at(invite.ExpiresAt), actions(Action{
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
	if err := c.team.Invites.WithdrawInvite(c.r.Context(), written.Get("email")); err != nil {
		return err
	}
	return c.done(Prefix+"/settings/members", "invite-withdrawn")
}
