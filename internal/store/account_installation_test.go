package store_test

import (
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestViewOfTheInstallation has two teams, and one who is a member of both.
func TestViewOfTheInstallation(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		ctx := in.Context()
		in.add(ours)
		in.wantReceived("stored", report("1", ours, storetest.Passed(ours, 5)))
		other := musttest.Get(in.store.CreateTeam(ctx, "b", false))(in)
		token := musttest.Get(in.store.Team(other.ID).CreateToken(ctx, store.NewToken{Name: "ci", Scope: dmarcd.ScopeRead, Hash: [32]byte{1}}))(in)
		var user dmarcd.SignIn
		for i, team := range []dmarcd.TeamID{in.team.ID(), other.ID} {
			hash := [32]byte{2, byte(i)}
			in.must(in.store.CreateInvitation(ctx, hash, dmarcd.Invitation{Team: team, Role: dmarcd.RoleEditor, ExpiresAt: in.clock.Now().Add(dmarcd.InvitationLife)}))
			user = musttest.Get(in.store.UseInvitation(ctx, hash, dmarcd.Claim{User: user.ID, Email: "a@example.com", PasswordHash: "x"}))(in)
		}

		sizes := musttest.Get(in.store.TeamSizes(ctx, dmarcd.Days{}))(in)
		if len(sizes) != 2 || sizes[0].Domains != 1 || sizes[0].Members != 1 || sizes[0].Messages != 5 || sizes[0].Stored <= 0 ||
			sizes[1].Domains != 0 || sizes[1].Members != 1 || sizes[1].Messages != 0 || sizes[1].Stored != 0 {
			in.Errorf("the sizes of the teams are %+v", sizes)
		}
		stored := musttest.Get(in.store.StoredBytes(ctx))(in)
		if stored != sizes[0].Stored {
			in.Errorf("all teams have stored %d bytes, want %d", stored, sizes[0].Stored)
		}
		memberships := musttest.Get(in.store.AllMemberships(ctx))(in)
		if of := memberships[user.ID]; len(of) != 2 || of[0].Team.Name != "a" || of[1].Team.Name != "b" {
			in.Errorf("the user is a member of %+v", of)
		}
		if found, err := in.store.TeamByID(ctx, other.ID); err != nil || found != other {
			in.Errorf("got %+v, %v, want %+v", found, err, other)
		}
		if found, err := in.store.TeamOfToken(ctx, token.ID); err != nil || found != other.ID {
			in.Errorf("the token is of %s, %v, want %s", found, err, other.ID)
		}
		if _, recorded, err := in.store.ReportDomain(ctx); err != nil || recorded {
			in.Errorf("a report domain is recorded: %t, %v", recorded, err)
		}
		for _, domain := range []string{"reports.example", "other.example"} {
			in.must(in.store.SetReportDomain(ctx, domain))
			if got, recorded, err := in.store.ReportDomain(ctx); err != nil || !recorded || got != domain {
				in.Errorf("got %q, %t, %v, want %s", got, recorded, err, domain)
			}
		}
	})
}
