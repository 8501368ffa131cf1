package service_test

import (
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// userLosses are the ways in which a user loses a right after the request was authenticated, as
// while its body arrives.
var userLosses = map[string]func(w *world, session dmarcd.Session){
	"signed out": func(w *world, session dmarcd.Session) { w.must(w.store.EndSession(ctx, session.Hash)) },
	"password changed": func(w *world, session dmarcd.Session) {
		w.must(w.store.SetPassword(ctx, dmarcd.SignIn{User: session.User, PasswordHash: "x"}, "y", [32]byte{}))
	},
	"user removed": func(w *world, session dmarcd.Session) { musttest.Get(w.store.RemoveUser(ctx, session.User.ID))(w) },
	"member removed": func(w *world, session dmarcd.Session) {
		w.must(w.store.Team(w.team.ID).RemoveMember(ctx, session.User.ID))
	},
	"demoted": func(w *world, session dmarcd.Session) {
		w.must(w.store.Team(w.team.ID).SetRole(ctx, session.User.ID, dmarcd.RoleViewer))
	},
}

// tokenLosses are those of a token.
var tokenLosses = map[string]func(w *world, id dmarcd.TokenID){
	"revoked": func(w *world, id dmarcd.TokenID) { w.must(w.store.Team(w.team.ID).RevokeToken(ctx, id)) },
	"denied":  func(w *world, _ dmarcd.TokenID) { w.must(w.store.SetAPI(ctx, w.team.Name, false)) },
	"expired": func(*world, dmarcd.TokenID) {}, // it is from the start
}

// expectDenied calls a change of an actor who has just lost a right: it must fail, and change nothing.
func (w *world) expectDenied(db storetest.DB, name string, call func() error) {
	w.Helper()
	w.service = service.New(w.store, w.options) // nothing is throttled
	entries, before := w.entries(), ""
	dumps := db.Engine == "sqlite" // on the other engine it takes long
	if dumps {
		before = db.Dump(w)
	}
	err := call()
	// A digest is only for members, which is an ErrInvalid.
	if !errors.Is(err, dmarcd.ErrUnauthorized) && !errors.Is(err, dmarcd.ErrForbidden) && !errors.Is(err, dmarcd.ErrInvalid) {
		w.Errorf("%s: got %v, want ErrUnauthorized or ErrForbidden", name, err)
	}
	if after := w.entries(); len(after) > len(entries) && after[0].Action != "user.login_failed" {
		w.Errorf("%s: got the entry %+v, want none", name, after[0])
	}
	if !dumps {
		return
	}
	if after := db.Dump(w); unnoted(after) != unnoted(before) {
		w.Errorf("%s: got the rows %s, want no change", name, difference(before, after))
	}
}

// unnoted returns a dump without entries of failed sign-ins, and without the end of the log that has them.
func unnoted(dump string) string {
	lines := strings.Split(dump, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool {
		return strings.Contains(line, "user.login_failed") || strings.HasPrefix(line, "audit_chains: [0 ")
	}), "\n")
}

// difference returns the rows of a dump that are not in another.
func difference(before, after string) string {
	known := strings.Split(before, "\n")
	return strings.Join(slices.DeleteFunc(strings.Split(after, "\n"), func(line string) bool { return slices.Contains(known, line) }), "\n")
}

// TestLostRights makes every change in every way to lose the right for it meanwhile.
func TestLostRights(t *testing.T) {
	t.Parallel()
	for name, u := range uses {
		if u.action == "" && name != "Verify" { // it changes the domain
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db storetest.DB) {
				w := newWorld(t, db)
				if u.prepare != nil {
					u.prepare(w)
				}
				w.losesUser(db, u)
				switch u.needs {
				case change, remove:
					w.losesToken(db, u, dmarcd.ScopeWrite)
				case manage:
					w.losesToken(db, u, dmarcd.ScopeAdmin)
				}
			})
		})
	}
}

func (w *world) losesUser(db storetest.DB, u use) {
	w.Helper()
	for name, lose := range userLosses {
		invitation := dmarcd.Invitation{Email: "lost@example.com", Team: w.team.ID, Role: dmarcd.RoleOwner}
		if u.needs == operate {
			if name == "member removed" || name == "demoted" {
				continue // operators have no role
			}
			invitation = dmarcd.Invitation{Email: "lost@example.com", Operator: true}
		}
		user := w.user(20, invitation)
		session := w.session(user)
		lose(w, session)
		w.expectDenied(db, name, func() error { return u.make(w, service.User(session, "")) })
		_, err := w.store.RemoveUser(ctx, user.ID)
		if err != nil && name != "user removed" {
			w.Fatal(err)
		}
		w.forgetLink(db)
	}
}

// forgetLink removes the used link of the user that is lost.
func (w *world) forgetLink(db storetest.DB) {
	w.Helper()
	_, err := db.SQL(w).ExecContext(ctx, `DELETE FROM invites WHERE email = 'lost@example.com'`)
	w.must(err)
}

func (w *world) losesToken(db storetest.DB, u use, scope dmarcd.Scope) {
	w.Helper()
	for name, lose := range tokenLosses {
		wanted := store.NewToken{Name: "lost", Scope: scope, Hash: sha256.Sum256([]byte(name))}
		if name == "expired" {
			wanted.ExpiresAt = time.Now().Add(-time.Second)
		}
		id := musttest.Get(w.store.Team(w.team.ID).CreateToken(ctx, wanted))(w).ID
		lose(w, id)
		w.expectDenied(db, "token "+name, func() error { return u.make(w, service.Token(id, scope, "")) })
		w.must(w.store.SetAPI(ctx, w.team.Name, true))
	}
}

// TestLostAccount makes every change of an account after its session has ended.
func TestLostAccount(t *testing.T) {
	t.Parallel()
	for name, u := range accountUses {
		if u.action == "" && name != "SelectTeam" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db storetest.DB) {
				w := newWorld(t, db)
				client, _ := w.signIn("cy@example.com")
				account := musttest.Get(w.service.Account(ctx, client))(t)
				if u.prepare != nil {
					u.prepare(w, account)
				}
				w.must(w.service.SignOut(ctx, client))
				w.expectDenied(db, name, func() error { return u.call(w, account) })
			})
		})
	}
}

// TestSignInsUnderWay changes the password between the check of the old one and the session.
func TestSignInsUnderWay(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		user := w.user(30, dmarcd.Invitation{Email: "cy@example.com", Team: w.team.ID, Role: dmarcd.RoleEditor})
		proof := dmarcd.SignIn{User: user, PasswordHash: "x"}
		w.must(w.store.SetPassword(ctx, proof, "y", [32]byte{}))
		w.expectDenied(db, "session", func() error {
			return w.store.CreateSession(ctx, dmarcd.NewSession{Hash: [32]byte{1}, User: user.ID, PasswordHash: "x", ExpiresAt: time.Now().Add(time.Hour)})
		})
		w.expectDenied(db, "another password", func() error { return w.store.SetPassword(ctx, proof, "z", [32]byte{}) })
		identity := dmarcd.Identity{Issuer: "i", Subject: "s", Email: user.Email}
		single := musttest.Get(w.store.SignInIdentity(ctx, identity))(t)
		secret, hash := w.invitation(user.Email)
		_ = secret
		musttest.Get(w.store.UseInvitation(ctx, hash, dmarcd.Claim{PasswordHash: "z"}))(t)
		w.expectDenied(db, "session of an identity", func() error {
			return w.store.CreateSession(ctx, dmarcd.NewSession{Hash: [32]byte{2}, User: user.ID, PasswordHash: single.PasswordHash, ExpiresAt: time.Now().Add(time.Hour)})
		})
	})
}

// TestInvitationOfAnEndedSession accepts an invitation as a user whose session ends meanwhile.
func TestInvitationOfAnEndedSession(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		session := w.session(w.member)
		_, hash := w.invitation(w.member.Email)
		w.must(w.store.EndSession(ctx, session.Hash))
		w.expectDenied(db, "join", func() error {
			_, err := w.store.As(store.Grant{Session: session.Hash}).UseInvitation(ctx, hash, dmarcd.Claim{User: w.member.ID})
			return err
		})
	})
}
