package api

import (
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// namedMember returns the user id of the path.
func namedMember(c *call) (dmarcd.UserID, error) {
	id, err := dmarcd.ParseUserID(c.params.Get("id"))
	if err != nil {
		return 0, errNoSuchMember
	}
	return id, nil
}

func readRole(body *object) dmarcd.Role {
	role, err := dmarcd.ParseRole(body.text("role"))
	body.accept("role", err)
	return role
}

func (a *API) setRole(c *call) error {
	body := readObject(c, "role", `{"role": "editor"}`)
	role := readRole(body)
	if body.err != nil {
		return body.err
	}
	id, err := namedMember(c)
	if err != nil {
		return err
	}
	if err := c.service.SetRole(c.r.Context(), id, role); err != nil {
		return missing(err, errNoSuchMember)
	}
	members, err := c.service.Members(c.r.Context())
	if err != nil {
		return err
	}
	for _, member := range members {
		if member.User.ID == id {
			return c.writeJSON(http.StatusOK, wire.NewMember(member))
		}
	}
	return errNoSuchMember // any more
}

func (a *API) removeMember(c *call) error {
	id, err := namedMember(c)
	if err != nil {
		return err
	}
	return c.deleted(c.service.RemoveMember(c.r.Context(), id), errNoSuchMember)
}

// inviteMember answers with the link of the invitation where no mail is sent: it is a secret.
func (a *API) inviteMember(c *call) error {
	body := readObject(c, "email", `{"email": "ann@example.com", "role": "editor"}`)
	email, role := body.text("email"), readRole(body)
	if body.err != nil {
		return body.err
	}
	answer := a.bodyRead(c.w)
	sent, err := c.service.InviteMember(c.r.Context(), email, role)
	answer()
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusCreated, wire.NewSentInvitation(sent.Mailed, sent.Link))
}

func (a *API) withdrawInvitation(c *call) error {
	email, err := dmarcd.ParseEmail(c.params.Get("email"))
	if err != nil {
		return errNoSuchInvitation
	}
	return c.deleted(c.service.WithdrawInvitation(c.r.Context(), email), errNoSuchInvitation)
}
