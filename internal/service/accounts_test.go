package service_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
	"golang.org/x/crypto/argon2"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

const (
	oldPassword = "a few words in a row"
	newPassword = "another few words in a row"
)

// invitation invites a user to the team.
func (w *world) invitation(email string) (secret string, hash [32]byte) {
	w.Helper()
	secret, hash = auth.NewInvitation()
	w.must(w.store.CreateInvitation(w.Context(), hash, dmarcd.Invitation{
		Email: email, Team: w.team.ID, Role: dmarcd.RoleEditor, Mailed: true, ExpiresAt: time.Now().Add(time.Hour),
	}))
	return secret, hash
}

// signIn has a new user join the team and sign in on two browsers. It returns the secrets
// of the sessions.
func (w *world) signIn(email string) (first, second service.Client) {
	w.Helper()
	_, hash := w.invitation(email)
	musttest.Get(w.store.UseInvitation(w.Context(), hash, dmarcd.Claim{Name: "Cy", PasswordHash: cheapHash(oldPassword)}))(w)
	first, second = service.Client{Address: "192.0.2.7"}, service.Client{Address: "192.0.2.8"}
	for _, client := range []*service.Client{&first, &second} {
		client.Session = musttest.Get(w.service.SignIn(w.Context(), email, oldPassword, *client))(w)
	}
	return first, second
}

// cheapHash returns a hash that takes little time to verify.
func cheapHash(password string) string {
	salt, encode := make([]byte, 16), base64.RawStdEncoding.EncodeToString
	return "$argon2id$v=19$m=8,t=1,p=1$" + encode(salt) + "$" + encode(argon2.IDKey([]byte(password), salt, 1, 8, 1, 32))
}

// accountUses has a row for each method of an account.
var accountUses = map[string]struct {
	// prepare makes the call possible; nil where it is.
	prepare func(w *world, a *service.Account)
	call    func(w *world, a *service.Account) error
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
	"SelectTeam": {
		call:  func(w *world, a *service.Account) error { return a.SelectTeam(ctx, w.team.ID) },
		fails: func(w *world, a *service.Account) error { return a.SelectTeam(ctx, w.team.ID+1) }, wants: dmarcd.ErrNotFound,
	},
	"Domains": {call: func(w *world, a *service.Account) error {
		found, err := a.Domains(ctx, service.TeamDomainFilter{PostureFilter: service.PostureFilter{Limit: 10}})
		return finds(found.Rows, err)
	}},
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
	"Fresh": {call: func(_ *world, a *service.Account) error { _ = a.Fresh(); return nil }},
	"Prove": {
		call:   func(_ *world, a *service.Account) error { return a.Prove(ctx, service.Proof{Password: oldPassword}) },
		action: "user.proved",
	},
	"NeedsFactor": {call: func(_ *world, a *service.Account) error { _ = a.NeedsFactor(); return nil }},
	"Factors":     {call: func(_ *world, a *service.Account) error { return finds(a.Factors(ctx)) }},
	"NewAuthenticator": {
		call: func(_ *world, a *service.Account) error { return finds(a.NewAuthenticator("")) },
	},
	"SetAuthenticator": {
		call: func(_ *world, a *service.Account) error {
			const secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
			code, err := totp.GenerateCode(secret, time.Now())
			return errors.Join(err, errorOf(a.SetAuthenticator(ctx, secret, code)))
		},
		fails: func(_ *world, a *service.Account) error { return errorOf(a.SetAuthenticator(ctx, "", "000000")) }, wants: dmarcd.ErrInvalid,
		action: "user.authenticator",
	},
	"RemoveAuthenticator": {
		prepare: func(w *world, a *service.Account) { w.enrolled(a, time.Now()) },
		call:    func(_ *world, a *service.Account) error { return a.RemoveAuthenticator(ctx) },
		action:  "user.authenticator",
	},
	"RenewRecoveryCodes": {
		prepare: func(w *world, a *service.Account) { w.enrolled(a, time.Now()) },
		call:    func(_ *world, a *service.Account) error { return finds(a.RenewRecoveryCodes(ctx)) },
		action:  "user.recovery_codes",
	},
	"AskPasskey": {call: func(_ *world, a *service.Account) error { return errorOf(a.AskPasskey(dmarcd.Factors{})) }},
	"NewPasskey": {call: func(_ *world, a *service.Account) error { return finds(a.NewPasskey(ctx)) }},
	"AddPasskey": {
		call: func(w *world, a *service.Account) error {
			challenge, err := a.NewPasskey(ctx)
			if err != nil {
				return err
			}
			return errorOf(a.AddPasskey(ctx, "Phone", newAuthenticator(w).create(challenge)))
		},
		fails: func(_ *world, a *service.Account) error {
			return errorOf(a.AddPasskey(ctx, "", service.PasskeyAnswer{}))
		}, wants: dmarcd.ErrInvalid,
		action: "user.passkey",
	},
	"RemovePasskey": {
		prepare: func(w *world, a *service.Account) { w.withPasskey(a) },
		call: func(_ *world, a *service.Account) error {
			factors, err := a.Factors(ctx)
			return errors.Join(err, a.RemovePasskey(ctx, factors.Passkeys[0].ID))
		},
		fails: func(_ *world, a *service.Account) error { return a.RemovePasskey(ctx, 1) }, wants: dmarcd.ErrNotFound,
		action: "user.passkey",
	},
	"SetEmail": {
		call:  func(_ *world, a *service.Account) error { return a.SetEmail(ctx, "cy@other.example") },
		fails: func(_ *world, a *service.Account) error { return a.SetEmail(ctx, "no address") }, wants: dmarcd.ErrInvalid,
		action: "user.address_asked",
	},
	"ConfirmableAddress": {call: func(w *world, a *service.Account) error { return finds(a.ConfirmableAddress(ctx, w.addressLink(a))) }},
	"ConfirmAddress": {
		prepare: func(w *world, a *service.Account) { w.addressLink(a) },
		call:    func(_ *world, a *service.Account) error { return a.ConfirmAddress(ctx, addressSecret) },
		fails:   func(_ *world, a *service.Account) error { return a.ConfirmAddress(ctx, "x") }, wants: dmarcd.ErrNotFound,
		action: "user.address",
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
				account := musttest.Get(w.service.Account(ctx, client))(t)
				if u.prepare != nil {
					u.prepare(w, account)
				}
				before := len(w.entries())
				if u.fails != nil {
					if err := u.fails(w, account); !errors.Is(err, u.wants) {
						t.Errorf("got %v, want %v", err, u.wants)
					}
				}
				failed := w.entries()[:len(w.entries())-before]
				if guessed := name == "SetPassword"; len(failed) > 1 || (len(failed) == 1) != guessed || guessed && failed[0].Action != "user.login_failed" {
					t.Errorf("it failed: got the entries %+v, want one only for a wrong password", failed)
				}
				before = len(w.entries())
				w.must(u.call(w, account))
				entries := w.entries()[:len(w.entries())-before]
				switch {
				case u.action == "" && len(entries) != 0:
					t.Errorf("got the entries %+v, want none", entries)
				case u.action != "" && (len(entries) != 1 || entries[0].Action != u.action || entries[0].Actor != "cy@example.com" || entries[0].Address != client.Address):
					t.Errorf("got the entries %+v, want one of %s", entries, u.action)
				}
				_, err := w.service.Account(ctx, other)
				if ended := u.action != "" && name != "SetName" && name != "SetEmail" && name != "Prove"; ended != errors.Is(err, dmarcd.ErrUnauthorized) {
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
	secret, _ := w.invitation("cy@example.com")
	musttest.Get(w.service.AcceptInvitation(ctx, secret, service.NewAccount{Name: "Cy", Password: oldPassword}, service.Client{Address: "192.0.2.7"}))(t)
	entry := w.entries()[1] // then the user is signed in
	if entry.Action != "member.join" || entry.Actor != "cy@example.com" || entry.Target != "cy@example.com" || entry.Team != w.team.ID || entry.Address != "192.0.2.7" {
		t.Errorf("got %+v, want that the user joined the team", entry)
	}
}

// TestPasswordGuessesAreSlowedDown guesses the password of an account with a stolen session.
func TestPasswordGuessesAreSlowedDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	client, _ := w.signIn("cy@example.com")
	client.Address = "203.0.113.9"
	now := time.Now()
	// Without the time that the guesses take: on a busy machine, the next would be allowed.
	stopped := service.New(w.store, service.Options{Now: func() time.Time { return now }})
	account := musttest.Get(stopped.Account(ctx, client))(t)
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
	if got := w.entries()[0]; got.Action != "user.login_failed" || got.Target != "cy@example.com" || got.Address != client.Address {
		t.Errorf("got the audit entry %+v, want one about the failed sign-in", got)
	}
	w.must(w.service.SignOut(ctx, client))
	for i, want := range []string{"user.logout", "user.login_failed", "user.login"} {
		if got := w.entries()[i]; got.Action != want || got.Target != "cy@example.com" || got.Address == "" {
			t.Errorf("got the audit entry %+v, want %s", got, want)
		}
	}
	if _, err := w.service.Account(ctx, client); !errors.Is(err, dmarcd.ErrUnauthorized) {
		t.Errorf("after signing out: got %v, want %v", err, dmarcd.ErrUnauthorized)
	}
	// An operator of an installation without teams sees none.
	empty := service.New(storetest.SQLite(t).Open(t, store.Options{}), w.options)
	invited := musttest.Get(empty.System(service.CommandLine()).Invite(ctx, dmarcd.Invitation{Operator: true}))(t)
	session := musttest.Get(empty.AcceptInvitation(ctx, path.Base(invited.Link), service.NewAccount{Email: "root@example.com", Password: oldPassword}, service.Client{}))(t)
	account, err := empty.Account(ctx, service.Client{Session: session})
	if err != nil || account.Team.ID != 0 || len(account.Teams) != 0 {
		t.Errorf("got %+v, %v; want no team", account, err)
	}
}

// TestFailedSignIns guesses passwords of many accounts from many addresses: the audit log has
// only the first of them, and none of what looks like a password.
func TestFailedSignIns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	now := time.Now()
	w.options.Now = func() time.Time { return now }
	s := service.New(w.store, w.options)
	const accounts = 14 // of five guesses each
	for i := range accounts {
		user := w.user(byte(10+i), dmarcd.Invitation{Email: fmt.Sprintf("u%d@example.com", i), Operator: true})
		w.must(w.store.SetPassword(ctx, dmarcd.SignIn{User: user, PasswordHash: "x"}, cheapHash(oldPassword), [32]byte{}))
	}
	before := len(w.entries())
	for i := range 5 * accounts {
		email := fmt.Sprintf("u%d@example.com", i%accounts)
		if i == 0 {
			email = "my secret"
		}
		if _, err := s.SignIn(ctx, email, "x", service.Client{Address: fmt.Sprintf("192.0.2.%d", i)}); !errors.Is(err, dmarcd.ErrUnauthorized) {
			t.Fatal(err)
		}
	}
	entries := w.entries()
	entries = entries[:len(entries)-before]
	if len(entries) != 1 || entries[0].Target != "" {
		t.Fatalf("got the entries %+v; want one about no account", entries)
	}
	now = now.Add(time.Second)
	if _, err := s.SignIn(ctx, "u1@example.com", "x", service.Client{Address: "192.0.2.1"}); err == nil {
		t.Fatal("got no error, want one")
	}
	if got := len(w.entries()) - before; got != 2 {
		t.Errorf("a second later: got %d entries, want 2", got)
	}
}
