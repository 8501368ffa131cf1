package store_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// world is a store with a team and users.
type world struct {
	*store.Store
	t     *testing.T
	clock *clock
	links int
}

func newWorld(t *testing.T, db storetest.DB) *world {
	t.Helper()
	clock := newClock()
	return &world{Store: db.Open(t, store.Options{Now: clock.Now}), t: t, clock: clock}
}

func (w *world) must(err error) {
	w.t.Helper()
	musttest.Do(w.t, err)
}

func (w *world) team(name string) dmarcd.Team {
	w.t.Helper()
	return musttest.Get(w.CreateTeam(w.t.Context(), name, true))(w.t)
}

// hash returns a new hash.
func (w *world) hash() [32]byte {
	w.links++
	return sha256.Sum256(fmt.Append(nil, "secret ", w.links))
}

// link stores an invitation that is valid for a week.
func (w *world) link(invitation dmarcd.Invitation) [32]byte {
	w.t.Helper()
	hash := w.hash()
	invitation.ExpiresAt = w.clock.Now().Add(dmarcd.InvitationLife)
	w.must(w.CreateInvitation(w.t.Context(), hash, invitation))
	return hash
}

// member creates a user with a password and a role in the team.
func (w *world) member(email string, team dmarcd.Team, role dmarcd.Role) dmarcd.User {
	w.t.Helper()
	hash := w.link(dmarcd.Invitation{Email: email, Team: team.ID, Role: role})
	return musttest.Get(w.UseInvitation(w.t.Context(), hash, dmarcd.Claim{PasswordHash: "hash of " + email}))(w.t).User
}

// proof returns a user who has just entered the password.
func (w *world) proof(user dmarcd.User) dmarcd.SignIn {
	w.t.Helper()
	id, hash, err := w.Password(w.t.Context(), user.Email)
	w.must(err)
	return dmarcd.SignIn{User: dmarcd.User{ID: id}, PasswordHash: hash}
}

func (w *world) signIn(user dmarcd.User) [32]byte {
	w.t.Helper()
	hash := w.hash()
	w.must(w.CreateSession(w.t.Context(), dmarcd.NewSession{
		Hash: hash, User: user.ID, PasswordHash: w.proof(user).PasswordHash, ExpiresAt: w.clock.Now().Add(dmarcd.SessionLife), UserAgent: "browser", Address: "192.0.2.1",
	}))
	return hash
}

func (w *world) session(hash [32]byte) dmarcd.Session {
	w.t.Helper()
	return musttest.Get(w.Session(w.t.Context(), hash))(w.t)
}

func (w *world) ended(hash [32]byte) bool {
	w.t.Helper()
	_, err := w.Session(w.t.Context(), hash)
	if err != nil && !errors.Is(err, dmarcd.ErrNotFound) {
		w.t.Fatal(err)
	}
	return err != nil
}

// TestSessionsAreLimited signs in more often than a user may have sessions.
func TestSessionsAreLimited(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		const most = 100
		w := newWorld(t, db)
		team := w.team("a")
		user, other := w.member("ann@example.com", team, dmarcd.RoleViewer), w.member("bob@example.com", team, dmarcd.RoleViewer)
		first := w.signIn(other)
		var sessions [][32]byte
		for range most + 2 {
			w.clock.advance(time.Second)
			sessions = append(sessions, w.signIn(user))
		}
		left := musttest.Get(w.Sessions(t.Context(), user.ID))(t)
		if len(left) != most || !w.ended(sessions[1]) || w.ended(sessions[2]) || w.ended(first) {
			t.Errorf("got %d sessions, want the last %d, and those of others", len(left), most)
		}
	})
}

// TestSignInAddresses checks the addresses from which users began sessions.
func TestSignInAddresses(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, w := t.Context(), newWorld(t, db)
		user := w.member("ann@example.com", w.team("a"), dmarcd.RoleViewer)
		began := w.clock.Now()
		w.signIn(user)
		w.signIn(user)
		for _, test := range []struct {
			email string
			since time.Time
			want  []string
		}{
			{user.Email, began, []string{"192.0.2.1"}},
			{user.Email, began.Add(time.Second), nil},
			{"bob@example.com", began, nil},
		} {
			if got, err := w.SignInAddresses(ctx, test.email, test.since); err != nil || !slices.Equal(got, test.want) {
				t.Errorf("%s since %v: got %v, %v; want %v", test.email, test.since, got, err, test.want)
			}
		}
	})
}

func TestSessions(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, w := t.Context(), newWorld(t, db)
		second, first := w.team("b"), w.team("a")
		user := w.member("ann@example.com", second, dmarcd.RoleViewer)
		musttest.Get(w.UseInvitation(ctx, w.link(dmarcd.Invitation{Email: user.Email, Team: first.ID, Role: dmarcd.RoleOwner}), dmarcd.Claim{}))(t)
		began := w.clock.Now()
		hash := w.signIn(user)
		user.SignedInAt = began
		want := dmarcd.Session{
			Hash: hash, User: user, Team: first, Role: dmarcd.RoleOwner, CreatedAt: began, SeenAt: began,
			ExpiresAt: began.Add(dmarcd.SessionLife), UserAgent: "browser", Address: "192.0.2.1",
		}
		if diff := cmp.Diff(want, w.session(hash)); diff != "" {
			t.Errorf("a new session (-want +got):\n%s", diff)
		}

		later := w.clock.advance(time.Hour)
		w.must(w.TouchSession(ctx, hash, later))
		w.must(w.TouchSession(ctx, hash, began))
		if got := w.session(hash).SeenAt; !got.Equal(later) {
			t.Errorf("last use %v, want %v", got, later)
		}

		w.must(w.SelectTeam(ctx, hash, second.ID))
		if got := w.session(hash); got.Team != second || got.Role != dmarcd.RoleViewer {
			t.Errorf("after the switch: got %+v, want a viewer of b", got)
		}
		w.must(w.Team(second.ID).RemoveMember(ctx, user.ID))
		if got := w.session(hash); got.Team != (dmarcd.Team{}) || got.Role != "" {
			t.Errorf("a removed member still sees %+v as %q", got.Team, got.Role)
		}
		for name, team := range map[string]dmarcd.TeamID{"another's": second.ID, "missing": 12345} {
			if err := w.SelectTeam(ctx, hash, team); !errors.Is(err, dmarcd.ErrNotFound) {
				t.Errorf("switch to a team, %s: got %v, want ErrNotFound", name, err)
			}
		}

		replacing := w.hash()
		w.must(w.CreateSession(ctx, dmarcd.NewSession{Hash: replacing, User: user.ID, PasswordHash: w.proof(user).PasswordHash, Replaces: hash, ExpiresAt: began.Add(dmarcd.SessionLife)}))
		if !w.ended(hash) || w.ended(replacing) {
			t.Error("a sign-in did not end the session that the browser had before")
		}
		other := w.signIn(user)
		sessions, err := w.Sessions(ctx, user.ID)
		if err != nil || len(sessions) != 2 {
			t.Errorf("got %d sessions, %v; want 2", len(sessions), err)
		}
		w.must(w.SetPassword(ctx, w.proof(user), "another", other))
		if !w.ended(replacing) || w.ended(other) {
			t.Error("another password did not end the other sessions, or ended this one")
		}
		w.must(w.EndSession(ctx, other))
		if !w.ended(other) {
			t.Error("an ended session goes on")
		}
		if err := w.CreateSession(ctx, dmarcd.NewSession{Hash: w.hash(), User: 12345}); !errors.Is(err, dmarcd.ErrUnauthorized) {
			t.Errorf("an unknown user: got %v, want ErrUnauthorized", err)
		}
	})
}

func TestOperatorsSeeEveryTeam(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, w := t.Context(), newWorld(t, db)
		team := w.team("a")
		user, err := w.UseInvitation(ctx, w.link(dmarcd.Invitation{Email: "op@example.com", Operator: true}), dmarcd.Claim{PasswordHash: "x"})
		if err != nil || !user.Operator {
			t.Fatalf("got %+v, %v; want an operator", user, err)
		}
		hash := w.signIn(user.User)
		if got := w.session(hash); got.Team.ID != 0 || got.Role != "" {
			t.Errorf("before a choice: got %+v", got)
		}
		w.must(w.SelectTeam(ctx, hash, team.ID))
		if got := w.session(hash); got.Team != team || got.Role != dmarcd.RoleOwner {
			t.Errorf("got %+v as %q, want the team as owner", got.Team, got.Role)
		}
	})
}

func TestInvitations(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		team := w.team("a")
		owner := w.member("owner@example.com", team, dmarcd.RoleOwner)
		known := w.member("known@example.com", team, dmarcd.RoleEditor)
		expired := w.link(dmarcd.Invitation{Email: "late@example.com", Team: team.ID, Role: dmarcd.RoleViewer})
		w.clock.advance(dmarcd.InvitationLife)
		withPassword := dmarcd.Claim{PasswordHash: "x"}
		for _, test := range []struct {
			name       string
			invitation dmarcd.Invitation
			claim      dmarcd.Claim
			want       error
			user       string      // the invited user
			role       dmarcd.Role // their role afterwards
		}{
			{
				name: "a new person", invitation: dmarcd.Invitation{Email: "New@Example.com", Role: dmarcd.RoleViewer},
				claim: withPassword, user: "new@example.com", role: dmarcd.RoleViewer,
			},
			{
				name:       "a new person without a password",
				invitation: dmarcd.Invitation{Email: "bare@example.com", Role: dmarcd.RoleViewer}, want: dmarcd.ErrInvalid,
			},
			{
				name:       "a known person keeps the greater role",
				invitation: dmarcd.Invitation{Email: known.Email, Role: dmarcd.RoleViewer}, user: known.Email, role: dmarcd.RoleEditor,
			},
			{
				name:       "a known person gets the greater role",
				invitation: dmarcd.Invitation{Email: known.Email, Role: dmarcd.RoleOwner}, user: known.Email, role: dmarcd.RoleOwner,
			},
			{
				name:       "a member's link does not open another's account",
				invitation: dmarcd.Invitation{Email: known.Email, Role: dmarcd.RoleOwner, CreatedBy: owner.ID}, claim: withPassword, want: dmarcd.ErrConflict,
			},
			{
				name:       "a member's link for who is signed in",
				invitation: dmarcd.Invitation{Email: known.Email, Role: dmarcd.RoleOwner, CreatedBy: owner.ID}, claim: dmarcd.Claim{User: known.ID},
				user: known.Email, role: dmarcd.RoleOwner,
			},
			{
				name:       "a link for another user",
				invitation: dmarcd.Invitation{Email: "else@example.com", Role: dmarcd.RoleOwner}, claim: dmarcd.Claim{User: known.ID}, want: dmarcd.ErrForbidden,
			},
			{
				name:       "a link for anybody",
				invitation: dmarcd.Invitation{Role: dmarcd.RoleOwner}, claim: dmarcd.Claim{Email: " Any@example.com", Name: "Any Body", PasswordHash: "x"},
				user: "any@example.com", role: dmarcd.RoleOwner,
			},
			{
				name:       "a link for anybody does not open an account",
				invitation: dmarcd.Invitation{Role: dmarcd.RoleOwner}, claim: dmarcd.Claim{Email: known.Email, PasswordHash: "x"}, want: dmarcd.ErrConflict,
			},
			{
				name:       "a link for anybody who tells no address",
				invitation: dmarcd.Invitation{Role: dmarcd.RoleOwner}, claim: dmarcd.Claim{Email: "no address", PasswordHash: "x"}, want: dmarcd.ErrInvalid,
			},
		} {
			test.invitation.Team = team.ID
			hash := w.link(test.invitation)
			user, err := w.UseInvitation(t.Context(), hash, test.claim)
			if !errors.Is(err, test.want) {
				t.Errorf("%s: got %v, want %v", test.name, err, test.want)
			}
			invitation, err := w.Invitation(t.Context(), hash)
			if err != nil || invitation.Valid(w.clock.Now()) != (test.want != nil) {
				t.Errorf("%s: the invitation is %+v afterwards, %v", test.name, invitation, err)
			}
			if test.want != nil {
				continue
			}
			if user.Email != test.user {
				t.Errorf("%s: let in %q, want %q", test.name, user.Email, test.user)
			}
			memberships, err := w.Memberships(t.Context(), user.ID)
			if diff := cmp.Diff([]dmarcd.Membership{{Team: team, Role: test.role}}, memberships); err != nil || diff != "" {
				t.Errorf("%s: %v, memberships (-want +got):\n%s", test.name, err, diff)
			}
			if _, err := w.UseInvitation(t.Context(), hash, withPassword); !errors.Is(err, dmarcd.ErrNotFound) {
				t.Errorf("%s, again: got %v, want ErrNotFound", test.name, err)
			}
		}
		for name, hash := range map[string][32]byte{"expired": expired, "unknown": w.hash()} {
			if _, err := w.UseInvitation(t.Context(), hash, withPassword); !errors.Is(err, dmarcd.ErrNotFound) {
				t.Errorf("%s: got %v, want ErrNotFound", name, err)
			}
		}
	})
}

func TestNewPasswordByLinkEndsSessions(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		user := w.member("ann@example.com", w.team("a"), dmarcd.RoleOwner)
		session := w.signIn(user)
		musttest.Get(w.UseInvitation(t.Context(), w.link(dmarcd.Invitation{Email: user.Email}), dmarcd.Claim{PasswordHash: "new"}))(t)
		id, hash, err := w.Password(t.Context(), user.Email)
		if err != nil || id != user.ID || hash != "new" {
			t.Errorf("got %v %q, %v; want the new password", id, hash, err)
		}
		if !w.ended(session) {
			t.Error("who knew the old password is still in")
		}
	})
}

func TestInvitationIsUsedOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		team := w.team("a")
		hash := w.link(dmarcd.Invitation{Team: team.ID, Role: dmarcd.RoleOwner})
		var used atomic.Int32
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				claim := dmarcd.Claim{Email: fmt.Sprintf("user%d@example.com", i), PasswordHash: "x"}
				_, err := w.UseInvitation(context.Background(), hash, claim)
				switch {
				case err == nil:
					used.Add(1)
				case !errors.Is(err, dmarcd.ErrNotFound):
					t.Error(err)
				}
			})
		}
		group.Wait()
		users, err := w.Users(t.Context())
		if err != nil || used.Load() != 1 || len(users) != 1 {
			t.Errorf("used %d times by %d users, %v; want 1", used.Load(), len(users), err)
		}
	})
}

func TestFirstInvitationHappensOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, w := t.Context(), newWorld(t, db)
		musttest.Get(w.FirstStart(ctx, w.hash()))(t)
		var made atomic.Int32
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				ok, err := w.FirstInvitation(context.Background(), sha256.Sum256([]byte{byte(i)}))
				if err != nil {
					t.Error(err)
				}
				if ok {
					made.Add(1)
				}
			})
		}
		group.Wait()
		if made.Load() != 1 {
			t.Fatalf("made %d times, want 1", made.Load())
		}
		again := func() bool {
			return musttest.Get(w.FirstInvitation(ctx, w.hash()))(t)
		}
		w.clock.advance(dmarcd.InvitationLife)
		if !again() {
			t.Error("the link expired unused, and there is no other")
		}
		hash := w.hash()
		w.clock.advance(dmarcd.InvitationLife)
		if ok, err := w.FirstInvitation(ctx, hash); err != nil || !ok {
			t.Fatalf("got %t, %v", ok, err)
		}
		user, err := w.UseInvitation(ctx, hash, dmarcd.Claim{Email: "first@example.com", PasswordHash: "x"})
		if err != nil || !user.Operator {
			t.Errorf("the first user is %+v, %v; want an operator", user, err)
		}
		memberships, err := w.Memberships(ctx, user.ID)
		if err != nil || len(memberships) != 1 || memberships[0].Team.Name != dmarcd.DefaultTeam || memberships[0].Role != dmarcd.RoleOwner {
			t.Errorf("got %+v, %v; want an owner of %q", memberships, err, dmarcd.DefaultTeam)
		}
		w.clock.advance(2 * dmarcd.InvitationLife)
		if again() {
			t.Error("there is a user, and another first link")
		}
	})
}

// TestProviderLogout ends the sessions that a logout at the identity provider is about, once.
func TestProviderLogout(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		const issuer = "https://id.example"
		n := byte(0)
		begin := func(of dmarcd.SignIn, session string) [32]byte {
			t.Helper()
			n++
			musttest.Do(t, s.CreateSession(t.Context(), dmarcd.NewSession{
				Hash: [32]byte{n}, User: of.ID, ProviderSession: session, ExpiresAt: time.Now().Add(time.Hour),
			}))
			return [32]byte{n}
		}
		ended := func(hash [32]byte) bool {
			t.Helper()
			_, err := s.Session(t.Context(), hash)
			if err != nil && !errors.Is(err, dmarcd.ErrNotFound) {
				t.Fatal(err)
			}
			return err != nil
		}
		user := func(subject string) dmarcd.SignIn {
			t.Helper()
			return musttest.Get(s.SignInIdentity(t.Context(), dmarcd.Identity{Issuer: issuer, Subject: subject, Email: subject + "@example.com", Admit: true}))(t)
		}
		ann, bob := user("ann"), user("bob")
		for _, row := range []struct {
			name   string
			logout dmarcd.ProviderLogout
			want   [4]bool // which of the sessions end
			err    error
		}{
			{"a session", dmarcd.ProviderLogout{Issuer: issuer, Session: "a1", Hash: [32]byte{1}}, [4]bool{true}, nil},
			{"the same message", dmarcd.ProviderLogout{Issuer: issuer, Session: "a1", Hash: [32]byte{1}}, [4]bool{}, dmarcd.ErrConflict},
			{"a session of a user", dmarcd.ProviderLogout{Issuer: issuer, Subject: "ann", Session: "a2", Hash: [32]byte{2}}, [4]bool{false, true}, nil},
			{"a session of another user", dmarcd.ProviderLogout{Issuer: issuer, Subject: "bob", Session: "a2", Hash: [32]byte{3}}, [4]bool{}, nil},
			{"a user", dmarcd.ProviderLogout{Issuer: issuer, Subject: "ann", Hash: [32]byte{4}}, [4]bool{true, true, true}, nil},
			{"an unknown user", dmarcd.ProviderLogout{Issuer: issuer, Subject: "cy", Hash: [32]byte{5}}, [4]bool{}, nil},
			{"another issuer", dmarcd.ProviderLogout{Issuer: "https://other.example", Subject: "ann", Hash: [32]byte{6}}, [4]bool{}, nil},
		} {
			sessions := [4][32]byte{begin(ann, "a1"), begin(ann, "a2"), begin(ann, ""), begin(bob, "b1")}
			row.logout.ExpiresAt = time.Now().Add(time.Minute)
			if err := s.EndProviderSessions(t.Context(), row.logout, dmarcd.AuditEntry{Action: "session.end"}); !errors.Is(err, row.err) {
				t.Errorf("%s: got %v, want %v", row.name, err, row.err)
			}
			for i, hash := range sessions {
				if got := ended(hash); got != row.want[i] {
					t.Errorf("%s: got session %d ended: %t, want %t", row.name, i, got, row.want[i])
				}
			}
			entries := musttest.Get(s.Audit(t.Context(), store.AuditFilter{Action: "session.end"}, store.Cursor{}, 10))(t)
			if row.name == "a session" && (len(entries) != 1 || entries[0].Actor != "ann@example.com") {
				t.Errorf("got the entries %+v, want one of ann", entries)
			}
			for _, of := range []dmarcd.SignIn{ann, bob} {
				musttest.Do(t, s.EndSessions(t.Context(), of.ID, [32]byte{}))
			}
		}
	})
}
