package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

func (w *world) roles(team dmarcd.Team) map[string]dmarcd.Role {
	w.t.Helper()
	members := musttest.Get(w.Team(team.ID).Members(w.t.Context()))(w.t)
	roles := map[string]dmarcd.Role{}
	for _, m := range members {
		roles[m.User.Email] = m.Role
	}
	return roles
}

func TestMembers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, w := t.Context(), newWorld(t, db)
		team := w.team("a")
		ann := w.member("ann@example.com", team, dmarcd.RoleOwner)
		bob := w.member("bob@example.com", team, dmarcd.RoleViewer)
		view := w.Team(team.ID)

		for name, change := range map[string]func() error{
			"demote": func() error { return view.SetRole(ctx, ann.ID, dmarcd.RoleEditor) },
			"remove": func() error { return view.RemoveMember(ctx, ann.ID) },
		} {
			var invalid *dmarcd.InvalidError
			if err := change(); !errors.As(err, &invalid) {
				t.Errorf("%s the last owner: got %v, want an InvalidError", name, err)
			}
		}
		w.must(view.SetRole(ctx, ann.ID, dmarcd.RoleOwner)) // no change
		w.must(view.SetRole(ctx, bob.ID, dmarcd.RoleOwner))
		w.must(view.SetRole(ctx, ann.ID, dmarcd.RoleEditor))
		want := map[string]dmarcd.Role{ann.Email: dmarcd.RoleEditor, bob.Email: dmarcd.RoleOwner}
		if diff := cmp.Diff(want, w.roles(team)); diff != "" {
			t.Errorf("roles (-want +got):\n%s", diff)
		}
		w.must(view.RemoveMember(ctx, ann.ID))
		if _, still := w.roles(team)[ann.Email]; still {
			t.Error("a removed member is still there")
		}
		for name, err := range map[string]error{
			"role of an unknown user": view.SetRole(ctx, ann.ID, dmarcd.RoleViewer), "removal of an unknown user": view.RemoveMember(ctx, ann.ID),
		} {
			if !errors.Is(err, dmarcd.ErrNotFound) {
				t.Errorf("%s: got %v, want ErrNotFound", name, err)
			}
		}
	})
}

// TestNoMailToFormerMembers checks that a team stops sending mail to an address when the membership
// ends, and continues for other members.
func TestNoMailToFormerMembers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, w := t.Context(), newWorld(t, db)
		team, other := w.team("a"), w.team("b")
		ann, bob, cyd := w.member("ann@example.com", team, dmarcd.RoleOwner), w.member("bob@example.com", team, dmarcd.RoleViewer), w.member("cyd@example.com", team, dmarcd.RoleViewer)
		for _, of := range []dmarcd.Team{team, other} {
			for _, endpoint := range []string{ann.Email, bob.Email, cyd.Email} {
				musttest.Get(w.Team(of.ID).AddWebhook(ctx, dmarcd.Webhook{URL: "mailto:" + endpoint, Format: dmarcd.FormatEmail, Kinds: []dmarcd.EventKind{dmarcd.DigestDaily}},
					func(dmarcd.Webhook) ([]byte, error) { return []byte("x"), nil }))(t)
			}
		}
		w.must(w.Team(team.ID).RemoveMember(ctx, bob.ID))
		musttest.Get(w.RemoveUser(ctx, cyd.ID))(t)
		for _, of := range []dmarcd.Team{team, other} {
			webhooks := musttest.Get(w.Team(of.ID).Webhooks(ctx))(t)
			for _, hook := range webhooks {
				if want := of.ID == other.ID || hook.Address() == ann.Email; hook.Enabled() != want || !want && hook.DisabledReason == "" {
					t.Errorf("team %s, %s: got enabled %v, reason %q, want %v", of.Name, hook.Address(), hook.Enabled(), hook.DisabledReason, want)
				}
			}
		}
	})
}

func TestOneOwnerStays(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		team := w.team("a")
		owners := []dmarcd.User{
			w.member("a@example.com", team, dmarcd.RoleOwner),
			w.member("b@example.com", team, dmarcd.RoleOwner),
			w.member("c@example.com", team, dmarcd.RoleOwner),
		}
		var group sync.WaitGroup
		for _, owner := range owners {
			group.Go(func() {
				err := w.Team(team.ID).RemoveMember(context.Background(), owner.ID)
				if err != nil && !errors.Is(err, dmarcd.ErrInvalid) {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if roles := w.roles(team); len(roles) != 1 {
			t.Errorf("all owners were removed at once: got %v, want one left", roles)
		}
	})
}

func TestTeamInvitations(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, w := t.Context(), newWorld(t, db)
		team := w.team("a")
		ann := w.member("ann@example.com", team, dmarcd.RoleOwner)
		bob := w.member("bob@example.com", team, dmarcd.RoleOwner)
		view := w.Team(team.ID)
		invitation := dmarcd.Invitation{Email: "new@example.com", Role: dmarcd.RoleEditor, CreatedBy: ann.ID, ExpiresAt: w.clock.Now().Add(time.Hour)}
		open := func() []dmarcd.Invitation {
			t.Helper()
			return musttest.Get(view.Invitations(ctx))(t)
		}
		for name, spoil := range map[string]func(*dmarcd.Invitation){
			"an operator": func(i *dmarcd.Invitation) { i.Operator = true },
			"anybody":     func(i *dmarcd.Invitation) { i.Email = "" },
			"by no user":  func(i *dmarcd.Invitation) { i.CreatedBy = 0 },
		} {
			bad := invitation
			spoil(&bad)
			if err := view.Invite(ctx, w.hash(), bad); !errors.Is(err, dmarcd.ErrForbidden) {
				t.Errorf("a member invites %s: got %v, want ErrForbidden", name, err)
			}
		}
		w.must(view.Invite(ctx, w.hash(), invitation))
		invitation.Team = team.ID
		if diff := cmp.Diff([]dmarcd.Invitation{invitation}, open()); diff != "" {
			t.Errorf("invites (-want +got):\n%s", diff)
		}
		w.must(view.WithdrawInvitation(ctx, invitation.Email))
		if err := view.WithdrawInvitation(ctx, invitation.Email); !errors.Is(err, dmarcd.ErrNotFound) || len(open()) != 0 {
			t.Errorf("cancelled twice: got %v and %v", err, open())
		}

		w.must(view.Invite(ctx, w.hash(), invitation))
		w.must(view.SetRole(ctx, ann.ID, dmarcd.RoleViewer))
		if left := open(); len(left) != 0 {
			t.Errorf("what a former owner invited to holds: %v", left)
		}
		invitation.CreatedBy, invitation.Email = bob.ID, ann.Email
		w.must(view.Invite(ctx, w.hash(), invitation))
		w.must(view.RemoveMember(ctx, ann.ID))
		if left := open(); len(left) != 0 {
			t.Errorf("a removed member can come back: %v", left)
		}
		invitation.Email = "late@example.com"
		w.must(view.Invite(ctx, w.hash(), invitation))
		w.clock.advance(time.Hour)
		if left := open(); len(left) != 0 {
			t.Errorf("an expired invitation is listed: %v", left)
		}
	})
}

func TestIdentities(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, w := t.Context(), newWorld(t, db)
		team := w.team("a")
		known := w.member("known@example.com", team, dmarcd.RoleOwner)
		session := w.signIn(known)
		w.link(dmarcd.Invitation{Email: "invited@example.com", Team: team.ID, Role: dmarcd.RoleEditor})
		person := func(subject, email string) dmarcd.Identity {
			return dmarcd.Identity{Issuer: "https://id.example", Subject: subject, Email: email}
		}
		admitted := person("4", "admitted@example.com")
		admitted.Admit = true
		for _, test := range []struct {
			name     string
			identity dmarcd.Identity
			want     error
			email    string
		}{
			{"no verified address", person("1", ""), dmarcd.ErrForbidden, ""},
			{"no invitation", person("2", "outsider@example.com"), dmarcd.ErrNotFound, ""},
			{"a user", person("1", known.Email), nil, known.Email},
			{"invited", person("3", "invited@example.com"), nil, "invited@example.com"},
			{"admitted", admitted, nil, "admitted@example.com"},
			{"known by the identity alone", person("1", ""), nil, known.Email},
			{"with another address now", person("1", "admitted@example.com"), nil, known.Email},
			{"the same subject of another issuer", dmarcd.Identity{Issuer: "https://other.example", Subject: "1"}, dmarcd.ErrForbidden, ""},
		} {
			user, err := w.SignInIdentity(ctx, test.identity)
			if !errors.Is(err, test.want) || err == nil && user.Email != test.email {
				t.Errorf("%s: got %q, %v; want %q, %v", test.name, user.Email, err, test.email, test.want)
			}
		}
		want := map[string]dmarcd.Role{known.Email: dmarcd.RoleOwner, "invited@example.com": dmarcd.RoleEditor}
		if diff := cmp.Diff(want, w.roles(team)); diff != "" {
			t.Errorf("roles (-want +got):\n%s", diff)
		}
		if _, hash, err := w.Password(ctx, known.Email); err != nil || hash != "" || !w.ended(session) {
			t.Errorf("the user who took an address of another stays signed in: %q, %v", hash, err)
		}
	})
}

// TestFactorsBeforeAnIdentity has users with second factors sign in at the identity provider for the first time. Those
// of a user who did not confirm the address may be of someone else, and would open an account that now has roles.
func TestFactorsBeforeAnIdentity(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, w := t.Context(), newWorld(t, db)
		team := w.team("a")
		for email, confirmed := range map[string]bool{"taken@example.com": false, "confirmed@example.com": true} {
			link := w.link(dmarcd.Invitation{Email: email, Team: team.ID, Role: dmarcd.RoleViewer, Mailed: confirmed})
			user := musttest.Get(w.UseInvitation(ctx, link, dmarcd.Claim{PasswordHash: "x"}))(t)
			w.must(w.SetTOTP(ctx, user.ID, []byte("sealed"), 1, [][32]byte{{1}}, [32]byte{}))
			_, err := w.AddPasskey(ctx, user.ID, dmarcd.Passkey{Credential: []byte(email), Name: "Phone", Record: []byte("{}")}, w.clock.Now(), nil, [32]byte{})
			w.must(err)
			for range 2 { // only the first one matters
				signIn := musttest.Get(w.SignInIdentity(ctx, dmarcd.Identity{Issuer: "https://id.example", Subject: email, Email: email}))(t)
				f := musttest.Get(w.Factors(ctx, user.ID))(t)
				if signIn.SecondFactor != confirmed || f.SecondFactor != confirmed || (len(f.Passkeys) == 1) != confirmed || (len(f.TOTP) > 0) != confirmed || (f.RecoveryCodes == 1) != confirmed {
					t.Errorf("%s: got %+v, want the factors kept: %t", email, f, confirmed)
				}
			}
			entries := musttest.Get(w.Audit(ctx, store.AuditFilter{Actor: email, Action: "user.factor_reset"}, store.Cursor{}, 10))(t)
			if (len(entries) == 1) == confirmed {
				t.Errorf("%s: got the entries %+v", email, entries)
			}
		}
	})
}

func TestTheSamePersonComesTwiceAtOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		var group sync.WaitGroup
		for range 6 {
			group.Go(func() {
				_, err := w.SignInIdentity(context.Background(), dmarcd.Identity{Issuer: "i", Subject: "s", Email: "new@example.com", Admit: true})
				if err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if users, err := w.Users(t.Context()); err != nil || len(users) != 1 {
			t.Errorf("got %d users, %v; want 1", len(users), err)
		}
	})
}

func TestUserNames(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		user := w.member("ann@example.com", w.team("a"), dmarcd.RoleOwner)
		other := w.member("bob@example.com", w.team("b"), dmarcd.RoleOwner)
		for _, test := range []struct {
			name string
			user dmarcd.UserID
			to   string
			want error
		}{
			{"a name", user.ID, " Ann Example ", nil},
			{"too long a name", user.ID, strings.Repeat("a", 101), dmarcd.ErrInvalid},
			{"a name that cannot be printed", user.ID, "a\x00b", dmarcd.ErrInvalid},
			{"unknown user", 1, "Ann", dmarcd.ErrNotFound},
		} {
			if err := w.SetUserName(t.Context(), test.user, test.to); !errors.Is(err, test.want) {
				t.Errorf("%s: got %v, want %v", test.name, err, test.want)
			}
		}
		for email, want := range map[string]string{user.Email: "Ann Example", other.Email: other.Name} {
			if got, err := w.UserByEmail(t.Context(), email); err != nil || got.Name != want {
				t.Errorf("%s: got the name %q and %v, want %q", email, got.Name, err, want)
			}
		}
		w.must(w.SetUserName(t.Context(), user.ID, ""))
		if got, err := w.UserByEmail(t.Context(), user.Email); err != nil || got.Name != "" {
			t.Errorf("no name: got %q and %v, want none", got.Name, err)
		}
	})
}

func TestRemoveUser(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, w := t.Context(), newWorld(t, db)
		alone, shared := w.team("alone"), w.team("shared")
		ann := w.member("ann@example.com", alone, dmarcd.RoleOwner)
		w.member("bob@example.com", shared, dmarcd.RoleOwner)
		musttest.Get(w.UseInvitation(ctx, w.link(dmarcd.Invitation{Email: ann.Email, Team: shared.ID, Role: dmarcd.RoleOwner}), dmarcd.Claim{}))(t)
		session := w.signIn(ann)
		musttest.Get(w.SignInIdentity(ctx, dmarcd.Identity{Issuer: "i", Subject: "s", Email: ann.Email}))(t)
		back := w.link(dmarcd.Invitation{Email: ann.Email, Team: shared.ID, Role: dmarcd.RoleOwner})

		ownerless, err := w.RemoveUser(ctx, ann.ID)
		if err != nil || len(ownerless) != 1 || ownerless[0] != "alone" {
			t.Errorf("got %v, %v; want the team alone without an owner", ownerless, err)
		}
		if !w.ended(session) {
			t.Error("the session goes on")
		}
		for what, err := range map[string]error{
			"user":    func() error { _, err := w.UserByEmail(ctx, ann.Email); return err }(),
			"link":    func() error { _, err := w.UseInvitation(ctx, back, dmarcd.Claim{PasswordHash: "x"}); return err }(),
			"removal": func() error { _, err := w.RemoveUser(ctx, ann.ID); return err }(),
		} {
			if !errors.Is(err, dmarcd.ErrNotFound) {
				t.Errorf("%s afterwards: got %v, want ErrNotFound", what, err)
			}
		}
		for row := range strings.Lines(db.Dump(t)) {
			if strings.Contains(row, ann.Email) && !strings.HasPrefix(row, "audit:") {
				t.Errorf("the user is left in %s", row)
			}
		}
	})
}

func TestAudit(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, w := t.Context(), newWorld(t, db)
		a, b := w.team("a"), w.team("b")
		for range 3 {
			w.must(w.Team(a.ID).Note(ctx, dmarcd.AuditEntry{Actor: "ann@example.com", Action: "domain.add", Target: "example.com", Team: b.ID}))
		}
		w.clock.advance(time.Minute)
		at := w.clock.Now()
		w.must(w.Team(a.ID).Note(ctx, dmarcd.AuditEntry{
			User: 7, Actor: "bob@example.com", Action: "token.create", Target: "tok_1", Detail: "ci", Address: "192.0.2.1",
		}))
		w.must(w.Team(b.ID).Note(ctx, dmarcd.AuditEntry{Actor: "eve@example.com", Action: "domain.add"}))
		w.must(w.Note(ctx, dmarcd.AuditEntry{Actor: "command line", Action: "user.remove"}))

		list := func(filter store.AuditFilter) (actions []string) {
			t.Helper()
			var cursor store.Cursor
			for {
				page := musttest.Get(w.Team(a.ID).Audit(ctx, filter, cursor, 1))(t)
				if len(page) == 0 {
					return actions
				}
				actions = append(actions, page[0].Action)
				cursor = store.Cursor{At: page[0].At, ID: int64(page[0].ID)}
			}
		}
		for _, test := range []struct {
			name   string
			filter store.AuditFilter
			want   string
		}{
			{"all, newest first", store.AuditFilter{}, "token.create domain.add domain.add domain.add"},
			{"by actor", store.AuditFilter{Actor: "bob@example.com"}, "token.create"},
			{"by action", store.AuditFilter{Action: "domain.add"}, "domain.add domain.add domain.add"},
			{"by target", store.AuditFilter{Target: "tok_1"}, "token.create"},
			{"by time", store.AuditFilter{Times: store.Times{From: at, Until: at.Add(time.Second)}}, "token.create"},
			{"before", store.AuditFilter{Times: store.Times{Until: at}}, "domain.add domain.add domain.add"},
			{"nothing", store.AuditFilter{Actor: "eve@example.com"}, ""},
		} {
			if got := strings.Join(list(test.filter), " "); got != test.want {
				t.Errorf("%s: got %q, want %q", test.name, got, test.want)
			}
		}
		all, err := w.Audit(ctx, store.AuditFilter{}, store.Cursor{}, 100)
		if err != nil || len(all) != 6 || all[0].Team != 0 || all[1].Team != b.ID {
			t.Fatalf("the installation's log: got %+v, %v", all, err)
		}
		want := dmarcd.AuditEntry{
			ID: all[2].ID, At: at, Team: a.ID, User: 7, Actor: "bob@example.com", Action: "token.create", Target: "tok_1", Detail: "ci", Address: "192.0.2.1",
		}
		if diff := cmp.Diff(want, all[2]); diff != "" {
			t.Errorf("an entry (-want +got):\n%s", diff)
		}
	})
}

func TestPurgeSignIns(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, w := t.Context(), newWorld(t, db)
		user := w.member("ann@example.com", w.team("a"), dmarcd.RoleOwner)
		for range 510 { // more than one step removes
			w.link(dmarcd.Invitation{Email: "old@example.com"})
		}
		old := w.signIn(user)
		_, _, err := w.Team(w.team("b").ID).ClaimKey(ctx, [32]byte{1})
		w.must(err)
		w.clock.advance(40 * 24 * time.Hour)
		present, link := w.signIn(user), w.link(dmarcd.Invitation{Email: "new@example.com"})
		if steps := storetest.All(t, w.PurgeSignIns); steps != 2 {
			t.Errorf("took %d steps, want 2", steps)
		}
		if !w.ended(old) || w.ended(present) {
			t.Error("the old session is there, or the present one is not")
		}
		if _, err := w.Invitation(ctx, link); err != nil {
			t.Errorf("the invitation: %v", err)
		}
		var left int
		if err := db.SQL(t).QueryRowContext(ctx, `SELECT (SELECT count(*) FROM invites) + (SELECT count(*) FROM idempotency_keys)`).Scan(&left); err != nil || left != 1 {
			t.Errorf("%d invites and keys are left, %v; want 1", left, err)
		}
	})
}

// TestInvitationsAreLimited invites more users than a team may.
func TestInvitationsAreLimited(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		const most = 500
		ctx, w := t.Context(), newWorld(t, db)
		team := w.team("a")
		ann := w.member("ann@example.com", team, dmarcd.RoleOwner)
		view := w.Team(team.ID)
		invite := func(i int) error {
			return view.Invite(ctx, w.hash(), dmarcd.Invitation{Email: fmt.Sprintf("u%d@example.com", i), Role: dmarcd.RoleViewer, CreatedBy: ann.ID, ExpiresAt: w.clock.Now().Add(time.Hour)})
		}
		for i := range most {
			w.must(invite(i))
		}
		var invalid *dmarcd.InvalidError
		if err := invite(most); !errors.As(err, &invalid) {
			t.Errorf("got %v, want an InvalidError", err)
		}
		w.must(view.WithdrawInvitation(ctx, "u7@example.com"))
		w.must(invite(most))
	})
}
