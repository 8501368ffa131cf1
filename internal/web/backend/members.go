package backend

import (
	"context"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web"
)

// members implements web.Members.
type members struct{ desk }

func (m members) Members(ctx context.Context) ([]web.Member, error) {
	found, err := m.team.Members(ctx)
	shown := make([]web.Member, len(found))
	for i, member := range found {
		shown[i] = web.Member{
			ID: member.User.ID.String(), Name: member.User.Name, Email: member.User.Email, Role: string(member.Role),
			JoinedAt: member.JoinedAt, SignedInAt: member.User.SignedInAt,
		}
	}
	return shown, err
}

func (m members) SetRole(ctx context.Context, user, role string) error {
	id, err := dmarcd.ParseUserID(user)
	if err != nil {
		return dmarcd.ErrNotFound
	}
	as, err := dmarcd.ParseRole(role)
	if err != nil {
		return err
	}
	return m.team.SetRole(ctx, id, as)
}

func (m members) RemoveMember(ctx context.Context, user string) error {
	id, err := dmarcd.ParseUserID(user)
	if err != nil {
		return dmarcd.ErrNotFound
	}
	return m.team.RemoveMember(ctx, id)
}
