package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// attempts limits how often a goroutine repeats a change until it is refused.
const attempts = 1000

// awaitSome waits for a few changes.
func awaitSome(t *testing.T, made <-chan struct{}) {
	t.Helper()
	for range 3 {
		select {
		case <-made:
		case <-time.After(time.Minute):
			t.Error("no change was made")
		}
	}
}

// TestNoChangeAfterRevocation revokes rights while their holders make changes. No change becomes
// visible after the revocation has returned.
func TestNoChangeAfterRevocation(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		ctx, team := t.Context(), w.team("a")
		of := w.Team(team.ID)
		w.member("owner@example.com", team, dmarcd.RoleOwner)
		revocations := map[string]func(user dmarcd.User, grant store.Grant) error{
			"revoke": func(_ dmarcd.User, grant store.Grant) error { return of.RevokeToken(ctx, grant.Token) },
			"deny":   func(dmarcd.User, store.Grant) error { return w.SetAPI(ctx, team.Name, false) },
			"remove": func(user dmarcd.User, _ store.Grant) error { return of.RemoveMember(ctx, user.ID) },
			"demote": func(user dmarcd.User, _ store.Grant) error { return of.SetRole(ctx, user.ID, dmarcd.RoleViewer) },
			"end":    func(_ dmarcd.User, grant store.Grant) error { return w.EndSession(ctx, grant.Session) },
			"delete": func(user dmarcd.User, _ store.Grant) error { _, err := w.RemoveUser(ctx, user.ID); return err },
			"password": func(user dmarcd.User, _ store.Grant) error {
				return w.SetPassword(ctx, w.proof(user), "another", [32]byte{})
			},
		}
		for round := range 4 {
			for name, revoke := range revocations {
				w.must(w.SetAPI(ctx, team.Name, true))
				user := w.member(fmt.Sprintf("%s%d@example.com", name, round), team, dmarcd.RoleEditor)
				grant := store.Grant{Session: w.signIn(user), Role: dmarcd.RoleEditor}
				if name == "revoke" || name == "deny" {
					token := musttest.Get(of.CreateToken(ctx, store.NewToken{Scope: dmarcd.ScopeWrite, Hash: w.hash()}))(t)
					grant = store.Grant{Token: token.ID}
				}
				acting := w.As(grant).Team(team.ID)
				made := make(chan struct{}, 4*attempts)
				var writers sync.WaitGroup
				for writer := range 4 {
					writers.Go(func() {
						for i := range attempts {
							_, err := acting.AddDomain(context.WithoutCancel(ctx), fmt.Sprintf("%s-%d-%d-%d.example", name, round, writer, i), time.Time{})
							switch {
							case errors.Is(err, dmarcd.ErrUnauthorized), errors.Is(err, dmarcd.ErrForbidden):
								return
							case err != nil && !errors.Is(err, dmarcd.ErrTemporary):
								t.Errorf("%s: %v", name, err)
								return
							}
							made <- struct{}{}
						}
						t.Errorf("%s: all changes were made", name)
					})
				}
				awaitSome(t, made)
				err := revoke(user, grant)
				before, _, _, listed := of.ActiveDomains(ctx)
				writers.Wait()
				after, _, _, again := of.ActiveDomains(ctx)
				if err := errors.Join(err, listed, again); err != nil || before != after {
					t.Errorf("%s: got %d changes after it returned, %v", name, after-before, err)
				}
			}
		}
	})
}

// TestNoSessionAfterPasswordChange changes the password while others sign in with the old one.
func TestNoSessionAfterPasswordChange(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		ctx := t.Context()
		user := w.member("ann@example.com", w.team("a"), dmarcd.RoleOwner)
		proof := w.proof(user)
		begun := make(chan struct{}, 4*attempts)
		var browsers sync.WaitGroup
		for browser := range 4 {
			browsers.Go(func() {
				for i := range attempts {
					err := w.CreateSession(context.WithoutCancel(ctx), dmarcd.NewSession{
						Hash: [32]byte{1, byte(browser), byte(i), byte(i >> 8)}, User: user.ID, PasswordHash: proof.PasswordHash, ExpiresAt: w.clock.Now().Add(dmarcd.SessionLife),
					})
					if errors.Is(err, dmarcd.ErrUnauthorized) {
						return
					}
					if err != nil && !errors.Is(err, dmarcd.ErrTemporary) {
						t.Error(err)
						return
					}
					begun <- struct{}{}
				}
				t.Error("all sessions began")
			})
		}
		awaitSome(t, begun)
		err := w.SetPassword(ctx, proof, "another", [32]byte{})
		browsers.Wait()
		if sessions, again := w.Sessions(ctx, user.ID); errors.Join(err, again) != nil || len(sessions) != 0 {
			t.Errorf("got %d sessions with the old password, %v", len(sessions), errors.Join(err, again))
		}
	})
}

// TestSessionsEndEachOther has two sessions of a user end each other: one of them is refused.
func TestSessionsEndEachOther(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		user := w.member("ann@example.com", w.team("a"), dmarcd.RoleOwner)
		for range 5 {
			hashes := [2][32]byte{w.signIn(user), w.signIn(user)}
			errs := make([]error, 2)
			var both sync.WaitGroup
			for i := range hashes {
				both.Go(func() {
					errs[i] = w.As(store.Grant{Session: hashes[i]}).EndSession(context.WithoutCancel(t.Context()), hashes[1-i])
				})
			}
			both.Wait()
			if ended := w.ended(hashes[0]); ended == w.ended(hashes[1]) || !errors.Is(errors.Join(errs...), dmarcd.ErrUnauthorized) {
				t.Errorf("got %v and %v, want one to be refused", errs[0], errs[1])
			}
		}
	})
}

// BenchmarkRights measures the median time of a change by the program itself, which has no rights
// to check, by a token and by a user.
func BenchmarkRights(b *testing.B) {
	for _, db := range []func(testing.TB) storetest.DB{storetest.SQLite, storetest.Postgres} {
		db := db(b)
		s := db.Open(b, store.Options{})
		created := musttest.Get(s.CreateTeam(b.Context(), "a", true))(b)
		token := musttest.Get(s.Team(created.ID).CreateToken(b.Context(), store.NewToken{Scope: dmarcd.ScopeWrite}))(b)
		link, session := [32]byte{1}, [32]byte{2}
		musttest.Do(b, s.CreateInvitation(b.Context(), link, dmarcd.Invitation{Email: "a@example.com", Team: created.ID, Role: dmarcd.RoleEditor, ExpiresAt: time.Now().Add(time.Hour)}))
		user := musttest.Get(s.UseInvitation(b.Context(), link, dmarcd.Claim{PasswordHash: "x"}))(b)
		musttest.Do(b, s.CreateSession(b.Context(), dmarcd.NewSession{Hash: session, User: user.ID, PasswordHash: "x", ExpiresAt: time.Now().Add(time.Hour)}))
		actors := map[string]*store.Team{
			"program": s.Team(created.ID),
			"token":   s.As(store.Grant{Token: token.ID}).Team(created.ID),
			"user":    s.As(store.Grant{Session: session, Role: dmarcd.RoleEditor}).Team(created.ID),
		}
		n := 0
		for name, change := range map[string]func(team *store.Team){
			"domain": func(team *store.Team) {
				musttest.Get(team.AddDomain(b.Context(), fmt.Sprintf("d%d.example", n), time.Time{}))(b)
			},
			"report": func(team *store.Team) {
				report := storetest.Aggregate(strconv.Itoa(n), "example.com", dmarcd.DayOf(time.Now())-1, storetest.Passed("example.com", 7))
				musttest.Get(team.Receive(b.Context(), []*dmarcd.Delivery{storetest.Delivery(report)}))(b)
			},
		} {
			b.Run(db.Engine+"/"+name, func(b *testing.B) {
				took := map[string][]time.Duration{}
				for b.Loop() {
					for actor, team := range actors { // alternating, so that other load slows all of them
						n++
						began := time.Now()
						change(team)
						took[actor] = append(took[actor], time.Since(began))
					}
				}
				for actor, times := range took {
					slices.Sort(times)
					b.ReportMetric(float64(times[len(times)/2].Microseconds()), actor+"-µs")
				}
			})
		}
	}
}
