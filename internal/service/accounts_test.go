package service_test

import (
	"errors"
	"path"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

const (
	oldPassword = "a few words in a row"
	newPassword = "another few words in a row"
)

// signIn has a new user join the team and sign in on two browsers. It returns the secrets
// of the sessions.
func (w *world) signIn(email string) (first, second service.Client) {
	w.Helper()
	secret, hash := auth.NewInvitation()
	w.must(w.store.CreateInvitation(w.Context(), hash, dmarcd.Invitation{
		Email: email, Team: w.team.ID, Role: dmarcd.RoleEditor, ExpiresAt: time.Now().Add(time.Hour),
	}))
	first, second = service.Client{Address: "192.0.2.7"}, service.Client{Address: "192.0.2.8"}
	var err error
	first.Session, err = w.service.AcceptInvitation(w.Context(), secret, service.NewAccount{Name: "Cy", Password: oldPassword}, first)
	w.must(err)
	second.Session, err = w.service.SignIn(w.Context(), email, oldPassword, second)
	w.must(err)
	return first, second
}

// accountUses has a row for each method of an account.
var accountUses = map[string]struct {
	call func(w *world, a *service.Account) error
	// fails makes a call that fails with wants, nil where none can.
	fails func(w *world, a *service.Account) error
	wants error
	// action is that of the audit entry, "" for what is no change of data.
	action string
}{
	"InTeam": {call: func(_ *world, a *service.Account) error { _, err := a.InTeam().Domains(ctx, "", 10); return err }},
	"System": {
		call:  func(*world, *service.Account) error { return nil },
		fails: func(_ *world, a *service.Account) error { _, err := a.System().Teams(ctx); return err }, wants: dmarcd.ErrForbidden,
	},
	"ChooseTeam": {
		call:  func(w *world, a *service.Account) error { return a.ChooseTeam(ctx, w.team.ID) },
		fails: func(w *world, a *service.Account) error { return a.ChooseTeam(ctx, w.team.ID+1) }, wants: dmarcd.ErrNotFound,
	},
	"Sessions": {call: func(_ *world, a *service.Account) error {
		sessions, err := a.Sessions(ctx)
		if err == nil && (len(sessions) != 2 || sessions[0].Here == sessions[1].Here) {
			err = errors.New("want two sessions, one of them here")
		}
		return err
	}},
	"SetName": {
		call:  func(_ *world, a *service.Account) error { return a.SetName(ctx, "Cy Example") },
		fails: func(_ *world, a *service.Account) error { return a.SetName(ctx, "Cy\x00") }, wants: dmarcd.ErrInvalid,
		action: "user.name",
	},
	"SetPassword": {
		call:  func(_ *world, a *service.Account) error { return a.SetPassword(ctx, oldPassword, newPassword) },
		fails: func(_ *world, a *service.Account) error { return a.SetPassword(ctx, "not that one", newPassword) }, wants: dmarcd.ErrUnauthorized,
		action: "user.password",
	},
	"EndSession": {
		call: func(_ *world, a *service.Account) error {
			sessions, err := a.Sessions(ctx)
			for _, session := range sessions {
				if !session.Here {
					err = errors.Join(err, a.EndSession(ctx, session.ID))
				}
			}
			return err
		},
		fails: func(_ *world, a *service.Account) error { return a.EndSession(ctx, "00") }, wants: dmarcd.ErrNotFound,
		action: "session.end",
	},
	"EndOtherSessions": {call: func(_ *world, a *service.Account) error { return a.EndOtherSessions(ctx) }, action: "session.end"},
}

// TestAccounts calls every method of an account: a change leaves one audit entry with who
// made it, and one that fails leaves none.
func TestAccounts(t *testing.T) {
	t.Parallel()
	of := reflect.TypeFor[*service.Account]()
	for i := range of.NumMethod() {
		name := of.Method(i).Name
		u, ok := accountUses[name]
		if !ok {
			t.Errorf("%s has no row in accountUses", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db storetest.DB) {
				w := newWorld(t, db)
				client, other := w.signIn("cy@example.com")
				account, err := w.service.Account(ctx, client)
				w.must(err)
				before := len(w.entries())
				if u.fails != nil {
					if err := u.fails(w, account); !errors.Is(err, u.wants) {
						t.Errorf("got %v, want %v", err, u.wants)
					}
				}
				if made := len(w.entries()) - before; made != 0 {
					t.Errorf("it failed: got %d entries, want none", made)
				}
				w.must(u.call(w, account))
				entries := w.entries()[:len(w.entries())-before]
				switch {
				case u.action == "" && len(entries) != 0:
					t.Errorf("got the entries %+v, want none", entries)
				case u.action != "" && (len(entries) != 1 || entries[0].Action != u.action || entries[0].Actor != "cy@example.com" || entries[0].Address != client.Address):
					t.Errorf("got the entries %+v, want one of %s", entries, u.action)
				}
				_, err = w.service.Account(ctx, other)
				if ended := u.action != "" && name != "SetName"; ended != errors.Is(err, dmarcd.ErrUnauthorized) {
					t.Errorf("the other session: got %v, want it ended: %t", err, ended)
				}
			})
		})
	}
}

// TestJoining follows a link: the entry in the audit log is that of the new user.
func TestJoining(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	w.signIn("cy@example.com")
	entry := w.entries()[0]
	if entry.Action != "member.join" || entry.Actor != "cy@example.com" || entry.Target != "cy@example.com" || entry.Team != w.team.ID || entry.Address != "192.0.2.7" {
		t.Errorf("got %+v, want that the user joined the team", entry)
	}
}

// TestPasswordGuessesAreSlowedDown guesses the password of an account that is signed in.
func TestPasswordGuessesAreSlowedDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	client, _ := w.signIn("cy@example.com")
	now := time.Now()
	// Without the time that the guesses take: on a busy machine, the next would be allowed.
	stopped := service.New(w.store, service.Options{Now: func() time.Time { return now }})
	account, err := stopped.Account(ctx, client)
	w.must(err)
	for range 5 {
		if err := account.SetPassword(ctx, "not that one", newPassword); !errors.Is(err, dmarcd.ErrUnauthorized) {
			t.Fatalf("got %v, want dmarcd.ErrUnauthorized", err)
		}
	}
	if err := account.SetPassword(ctx, oldPassword, newPassword); !errors.Is(err, dmarcd.ErrLimit) {
		t.Errorf("got %v, want dmarcd.ErrLimit", err)
	}
}

// TestNoAccount asks without a session.
func TestNoAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	for _, session := range []string{"", "x", strings.Repeat("A", 26)} {
		if _, err := w.service.Account(ctx, service.Client{Session: session}); !errors.Is(err, dmarcd.ErrUnauthorized) {
			t.Errorf("%q: got %v, want dmarcd.ErrUnauthorized", session, err)
		}
	}
}

// TestSignInAndOut signs in with right and wrong passwords, and out.
func TestSignInAndOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	client, _ := w.signIn("cy@example.com")
	if secret, err := w.service.SignIn(ctx, "cy@example.com", newPassword, client); secret != "" || !errors.Is(err, dmarcd.ErrUnauthorized) {
		t.Errorf("got %q, %v; want %v", secret, err, dmarcd.ErrUnauthorized)
	}
	w.must(w.service.SignOut(ctx, client.Session))
	if _, err := w.service.Account(ctx, client); !errors.Is(err, dmarcd.ErrUnauthorized) {
		t.Errorf("after signing out: got %v, want %v", err, dmarcd.ErrUnauthorized)
	}
	// An operator of an installation without teams sees none.
	empty := service.New(storetest.SQLite(t).Open(t, store.Options{}), w.options)
	invited, err := empty.System(service.CommandLine()).Invite(ctx, dmarcd.Invitation{Operator: true})
	w.must(err)
	session, err := empty.AcceptInvitation(ctx, path.Base(invited.Link), service.NewAccount{Email: "root@example.com", Password: oldPassword}, service.Client{})
	w.must(err)
	account, err := empty.Account(ctx, service.Client{Session: session})
	if err != nil || account.Team.ID != 0 || len(account.Teams) != 0 {
		t.Errorf("got %+v, %v; want no team", account, err)
	}
}
