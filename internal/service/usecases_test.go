package service_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// An access is what an actor needs for a use case.
type access int

const (
	see     access = iota // any member, or any token
	change                // an editor, or a token that may write
	remove                // an owner, or a token that may write
	manage                // an owner
	own                   // an owner who is no token
	publish               // an editor, or a token for it
	approve               // an editor who is a user
	operate               // an operator
)

// A use is a call that succeeds, and one that fails for those who may make it.
type use struct {
	needs access
	// action is that of the audit entry, target what it is about; "" is none and any.
	action, target string
	// prepare makes the call possible; nil where it is.
	prepare func(w *world)
	team    func(w *world, t *service.Team) error
	system  func(w *world, s *service.System) error
	fails   func(w *world, t *service.Team, s *service.System) error
	// wants is the kind of the error.
	wants error
	// last is true if nothing works after the call that succeeds.
	last bool
}

var ctx = context.Background()

// reads is a use that changes nothing, and finds something.
func reads[T any](read func(w *world, t *service.Team) (T, error)) use {
	return use{needs: see, team: func(w *world, t *service.Team) error { return finds(read(w, t)) }}
}

// downloads is reads for what leaves the installation, which is in the audit log.
func downloads[T any](action, target string, read func(w *world, t *service.Team) (T, error)) use {
	u := reads(read)
	u.action, u.target = action, target
	return u
}

// unaudited are the use cases that change something and leave no entry, with the tables that they
// change.
var unaudited = map[string][]string{
	// Checks and advice are no decision of a user.
	"Verify": {"domains", "checks", "events", "event_counters"}, "CheckSoon": {"domains"}, "Watch": {"domains", "checks"}, "Examine": {"domains", "checks"},
	"Advice": {"domains", "postures"}, "AllAdvice": {"domains", "postures"}, "TopAdvice": {"domains", "postures"},
	"Digest": {"domains", "postures"}, "ManagerSummary": {"domains", "postures"},
	"ClaimKey": {"idempotency_keys"}, "SaveAnswer": {"idempotency_keys"}, "ReleaseKey": {"idempotency_keys"}, // their request has one
	"TestAddress": {"test_addresses"}, // for an hour
}

// finds returns an error if a call succeeds but returns nothing.
func finds[T any](found T, err error) error {
	if v := reflect.ValueOf(found); err == nil && (v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0) {
		return errors.New("nothing was returned")
	}
	return err
}

// errorOf returns the error of a call.
func errorOf[T any](_ T, err error) error { return err }

// asks is a use that changes nothing, and finds nothing in a world.
func asks[T any](ask func(w *world, t *service.Team) (T, error)) use {
	return use{needs: see, team: func(w *world, t *service.Team) error { return errorOf(ask(w, t)) }}
}

// call makes the successful call.
func (u use) call(w *world, actor service.Actor) error {
	if u.prepare != nil {
		u.prepare(w)
	}
	return u.make(w, actor)
}

// make is call without the preparation.
func (u use) make(w *world, actor service.Actor) error {
	if u.system != nil {
		return u.system(w, w.service.System(actor))
	}
	return u.team(w, w.service.Team(w.team.ID, actor))
}

// TestEveryUseCaseIsTried fails for a method that has no row in uses.
func TestEveryUseCaseIsTried(t *testing.T) {
	t.Parallel()
	for _, of := range []reflect.Type{reflect.TypeFor[*service.Team](), reflect.TypeFor[*service.System]()} {
		for i := range of.NumMethod() {
			name := of.Method(i).Name
			u, ok := uses[of.Elem().Name()+"."+name]
			if !ok {
				u, ok = uses[name]
			}
			if !ok || (u.system != nil) != (of.Elem().Name() == "System") {
				t.Errorf("%s of %s has no row in uses", name, of)
			}
		}
	}
}

// TestEveryChangeIsAudited wants exactly one entry for a change or a download that succeeds, with
// who made it, and none for one that fails. A use case without an entry must change no row.
func TestEveryChangeIsAudited(t *testing.T) {
	t.Parallel()
	for name, u := range uses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if u.needs == see || name == "Backup" { // which is for SQLite
				db := storetest.SQLite(t)
				newWorld(t, db).audits(db, name, u)
				return
			}
			storetest.Each(t, func(t *testing.T, db storetest.DB) { newWorld(t, db).audits(db, name, u) })
		})
	}
}

func (w *world) audits(db storetest.DB, name string, u use) {
	w.Helper()
	if u.needs == operate {
		w.operates(w.owner)
	}
	actor := w.as(w.owner)
	before := len(w.entries())
	if u.fails != nil {
		if err := u.fails(w, w.service.Team(w.team.ID, actor), w.service.System(actor)); !errors.Is(err, u.wants) {
			w.Errorf("got %v, want %v", err, u.wants)
		}
	}
	if after := w.entries(); len(after) != before {
		w.Errorf("it failed: got the entry %+v, want none", after[0])
	}
	if u.prepare != nil {
		u.prepare(w)
	}
	rows := ""
	if db.Engine == "sqlite" { // on the other engine it takes long
		rows = db.Dump(w)
	}
	w.must(u.make(w, actor))
	if rows != "" && u.action == "" {
		w.wantUnchanged(name, difference(rows, db.Dump(w)))
	}
	entries := w.entries()
	want := 1
	if u.action == "" {
		want = 0
	}
	if got := len(entries) - before; got != want {
		w.Fatalf("got %d entries, want %d", got, want)
	}
	if want == 0 {
		return
	}
	if got := entries[0]; got.Action != u.action || u.target != "" && got.Target != u.target ||
		got.Actor != w.owner.Email || got.User != w.owner.ID || got.Address != "192.0.2.7" {
		w.Errorf("got %+v, want %s of %q by the owner", got, u.action, u.target)
	}
}

// wantUnchanged fails for a use case without an entry that has changed rows, except those in
// unaudited.
func (w *world) wantUnchanged(name, changed string) {
	w.Helper()
	for line := range strings.SplitSeq(changed, "\n") {
		if table, _, ok := strings.Cut(line, ":"); ok && !slices.Contains(unaudited[name], table) {
			w.Errorf("%s leaves no entry in the audit log, and changes %s", name, line)
		}
	}
}

// operates makes a user an operator.
func (w *world) operates(user dmarcd.User) {
	w.Helper()
	_, hash := auth.NewInvitation()
	w.must(w.store.CreateInvitation(w.Context(), hash, dmarcd.Invitation{Operator: true, ExpiresAt: time.Now().Add(time.Hour)}))
	musttest.Get(w.store.UseInvitation(w.Context(), hash, dmarcd.Claim{User: user.ID}))(w)
}

// TestWhoMayDoWhat calls every use case as everyone.
func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	// Users and tokens that no use case changes.
	as := func(n byte, role dmarcd.Role) service.Actor {
		return w.as(w.user(n, dmarcd.Invitation{Email: string(role) + "@example.com", Team: w.team.ID, Role: role}))
	}
	token := musttest.Get(w.store.Team(w.team.ID).CreateToken(t.Context(), store.NewToken{Scope: dmarcd.ScopeWrite, Hash: [32]byte{1}}))(t).ID
	operator := w.session(w.operator)
	operator.Role = ""
	actors := []struct {
		name  string
		actor service.Actor
		may   []access
	}{
		{"anonymous", service.Actor{}, nil},
		{"viewer", as(11, dmarcd.RoleViewer), []access{see}},
		{"editor", as(12, dmarcd.RoleEditor), []access{see, change, publish, approve}},
		{"owner", as(13, dmarcd.RoleOwner), []access{see, change, remove, manage, own, publish, approve}},
		{"operator in no team", service.User(operator, ""), []access{operate}},
		{"command line", service.CommandLine(), []access{see, change, remove, manage, own, publish, operate}},
		{"token that reads", service.Token(token, dmarcd.ScopeRead, ""), []access{see}},
		{"token that writes", service.Token(token, dmarcd.ScopeWrite, ""), []access{see, change, remove}},
		{"token that manages", service.Token(token, dmarcd.ScopeAdmin, ""), []access{see, change, remove, manage}},
		{"token that publishes", service.Token(token, dmarcd.ScopePublish, ""), []access{see, publish}},
	}
	for name, u := range uses {
		for _, a := range actors {
			w.must(w.store.SetAPI(t.Context(), w.team.Name, true)) // a use case denies it
			// What an allowed call does is left to TestEveryChangeIsAudited: here it may
			// fail because of what another did.
			var err error
			if u.last {
				err = u.fails(w, w.service.Team(w.team.ID, a.actor), w.service.System(a.actor))
			} else {
				err = u.call(w, a.actor)
			}
			if may := slices.Contains(a.may, u.needs); may && errors.Is(err, dmarcd.ErrForbidden) && name != "InviteMember" || !may && !errors.Is(err, dmarcd.ErrForbidden) {
				t.Errorf("%s as %s: got %v, allowed: %v", name, a.name, err, may)
			}
		}
	}
}
