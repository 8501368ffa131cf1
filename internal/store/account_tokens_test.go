package store_test

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestTokensGrantNoMore creates tokens with tokens.
func TestTokensGrantNoMore(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		ctx, of := t.Context(), w.Team(w.team("a").ID)
		end := w.clock.Now().Add(time.Hour).UTC().Truncate(time.Second)
		networks := func(list ...string) []netip.Prefix { return musttest.Get(dmarcd.ParseTokenNetworks(list))(t) }
		for _, tt := range []struct {
			name       string
			own, wants store.NewToken
			ok         bool
		}{
			{"all of its rights", store.NewToken{Scope: dmarcd.ScopeAdmin}, store.NewToken{Scope: dmarcd.ScopeAdmin}, true},
			{"fewer", store.NewToken{Scope: dmarcd.ScopeAdmin, ExpiresAt: end}, store.NewToken{Scope: dmarcd.ScopeRead, ExpiresAt: end}, true},
			{"a higher scope", store.NewToken{Scope: dmarcd.ScopeWrite}, store.NewToken{Scope: dmarcd.ScopeAdmin}, false},
			{"a scope beside it", store.NewToken{Scope: dmarcd.ScopeAdmin}, store.NewToken{Scope: dmarcd.ScopePublish}, false},
			{"a later end", store.NewToken{Scope: dmarcd.ScopeAdmin, ExpiresAt: end}, store.NewToken{Scope: dmarcd.ScopeRead, ExpiresAt: end.Add(time.Second)}, false},
			{"a part of its networks", store.NewToken{Scope: dmarcd.ScopeAdmin, Networks: networks("192.0.2.0/24")}, store.NewToken{Scope: dmarcd.ScopeRead, Networks: networks("192.0.2.7")}, true},
			{"a larger network", store.NewToken{Scope: dmarcd.ScopeAdmin, Networks: networks("192.0.2.0/24")}, store.NewToken{Scope: dmarcd.ScopeRead, Networks: networks("192.0.0.0/16")}, false},
			{"all networks", store.NewToken{Scope: dmarcd.ScopeAdmin, Networks: networks("192.0.2.0/24")}, store.NewToken{Scope: dmarcd.ScopeRead}, false},
			{"no end", store.NewToken{Scope: dmarcd.ScopeAdmin, ExpiresAt: end}, store.NewToken{Scope: dmarcd.ScopeRead}, false},
		} {
			tt.own.Hash, tt.wants.Hash = w.hash(), w.hash()
			own := musttest.Get(of.CreateToken(ctx, tt.own))(t)
			_, err := w.As(store.Grant{Token: own.ID}).Team(own.Team).CreateToken(ctx, tt.wants)
			if (err == nil) != tt.ok || err != nil && !errors.Is(err, dmarcd.ErrInvalid) {
				t.Errorf("%s: got %v, want it created: %t", tt.name, err, tt.ok)
			}
		}
	})
}

// TestTokensOfAFormerMember wants the creator of each token, and whether they left.
func TestTokensOfAFormerMember(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		ctx, team := t.Context(), w.team("a")
		of := w.Team(team.ID)
		stays, leaves := w.member("stays@example.com", team, dmarcd.RoleOwner), w.member("leaves@example.com", team, dmarcd.RoleOwner)
		for _, user := range []dmarcd.UserID{0, stays.ID, leaves.ID} {
			musttest.Get(of.CreateToken(ctx, store.NewToken{Scope: dmarcd.ScopeRead, Hash: w.hash(), CreatedBy: user}))(t)
			w.clock.advance(time.Second)
		}
		musttest.Do(t, of.RemoveMember(ctx, leaves.ID))
		tokens := musttest.Get(of.Tokens(ctx))(t)
		for i, want := range []struct {
			creator   string
			ownerless bool
		}{{"", false}, {stays.Email, false}, {leaves.Email, true}} {
			if got := tokens[i]; got.CreatedBy != want.creator || got.Ownerless != want.ownerless {
				t.Errorf("token %d: got the creator %q, ownerless %t, want %+v", i, got.CreatedBy, got.Ownerless, want)
			}
		}
	})
}

// TestTokensOfAFormerOwner ends the rights of an owner in every way while a token of the owner
// creates others: none of them with the scope admin stays valid.
func TestTokensOfAFormerOwner(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		ctx, team := t.Context(), w.team("a")
		of := w.Team(team.ID)
		other := w.member("other@example.com", team, dmarcd.RoleOwner)
		stays := musttest.Get(of.CreateToken(ctx, store.NewToken{Name: "stays", Scope: dmarcd.ScopeAdmin, Hash: w.hash(), CreatedBy: other.ID}))(t)
		for name, end := range map[string]func(dmarcd.UserID) error{
			"remove": func(id dmarcd.UserID) error { return of.RemoveMember(ctx, id) },
			"demote": func(id dmarcd.UserID) error { return of.SetRole(ctx, id, dmarcd.RoleEditor) },
			"delete": func(id dmarcd.UserID) error { _, err := w.RemoveUser(ctx, id); return err },
		} {
			user := w.member(name+"@example.com", team, dmarcd.RoleOwner)
			writes := musttest.Get(of.CreateToken(ctx, store.NewToken{Name: name, Scope: dmarcd.ScopeWrite, Hash: w.hash(), CreatedBy: user.ID}))(t)
			publishes := musttest.Get(of.CreateToken(ctx, store.NewToken{Name: name, Scope: dmarcd.ScopePublish, Hash: w.hash(), CreatedBy: user.ID}))(t)
			first := musttest.Get(of.CreateToken(ctx, store.NewToken{Name: name, Scope: dmarcd.ScopeAdmin, Hash: w.hash(), CreatedBy: user.ID}))(t)
			acting := w.As(store.Grant{Token: first.ID}).Team(team.ID)
			made := make(chan struct{}, 4*attempts)
			var creators sync.WaitGroup
			for creator := range 4 {
				creators.Go(func() {
					for i := range 20 {
						hash := [32]byte{0xfe, byte(creator), byte(i)}
						copy(hash[3:], name)
						_, err := acting.CreateToken(ctx, store.NewToken{Name: fmt.Sprint(creator, i), Scope: dmarcd.ScopeAdmin, Hash: hash})
						if errors.Is(err, dmarcd.ErrUnauthorized) {
							return
						}
						if err != nil && !errors.Is(err, dmarcd.ErrTemporary) {
							t.Errorf("%s: %v", name, err)
							return
						}
						made <- struct{}{}
					}
				})
			}
			awaitSome(t, made)
			w.must(end(user.ID))
			valid := map[dmarcd.TokenID]bool{}
			for _, token := range musttest.Get(of.Tokens(ctx))(t) {
				valid[token.ID] = token.Valid(w.clock.Now())
				if token.ID != stays.ID && token.Scope == dmarcd.ScopeAdmin && valid[token.ID] {
					t.Errorf("%s: the token %q is still valid", name, token.Name)
				}
			}
			if !valid[stays.ID] || !valid[writes.ID] || valid[publishes.ID] {
				t.Errorf("%s: got %v, want a token of another owner and one that writes, and none that publishes", name, valid)
			}
			creators.Wait()
		}
	})
}

// TestTokensOfARevokedToken revokes a token while one that it created creates others: none of them stays
// valid, in contrast to a token of a user. A token can revoke the one that created it, and so itself.
func TestTokensOfARevokedToken(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		ctx, of := t.Context(), w.Team(w.team("a").ID)
		create := func(creator *store.Team, scope dmarcd.Scope) dmarcd.Token {
			return musttest.Get(creator.CreateToken(ctx, store.NewToken{Scope: scope, Hash: w.hash()}))(t)
		}
		by := func(token dmarcd.Token) *store.Team { return w.As(store.Grant{Token: token.ID}).Team(token.Team) }
		stays := create(of, dmarcd.ScopeAdmin)
		for _, revokes := range []func(first, second dmarcd.Token) error{
			func(first, _ dmarcd.Token) error { return of.RevokeToken(ctx, first.ID) },
			func(first, _ dmarcd.Token) error { return by(stays).RevokeToken(ctx, first.ID) },
			func(first, second dmarcd.Token) error { return by(second).RevokeToken(ctx, first.ID) },
		} {
			first := create(of, dmarcd.ScopeAdmin)
			create(by(first), dmarcd.ScopeRead)
			second := create(by(first), dmarcd.ScopeAdmin)
			made := make(chan struct{}, attempts)
			hashes := make([][32]byte, 100)
			for i := range hashes {
				hashes[i] = w.hash()
			}
			var creator sync.WaitGroup
			creator.Go(func() {
				for _, hash := range hashes {
					_, err := by(second).CreateToken(ctx, store.NewToken{Scope: dmarcd.ScopeWrite, Hash: hash})
					if errors.Is(err, dmarcd.ErrUnauthorized) {
						return
					}
					if err != nil && !errors.Is(err, dmarcd.ErrTemporary) {
						t.Error(err)
						return
					}
					made <- struct{}{}
				}
			})
			awaitSome(t, made)
			w.must(revokes(first, second))
			for _, token := range musttest.Get(of.Tokens(ctx))(t) {
				if token.Valid(w.clock.Now()) != (token.ID == stays.ID) {
					t.Errorf("the token %v with the scope %s: got valid %t", token.ID, token.Scope, token.Valid(w.clock.Now()))
				}
			}
			creator.Wait()
		}
	})
}

// TestTokensRevokeEachOther has two tokens revoke each other: one of them is refused. A token may
// revoke itself.
func TestTokensRevokeEachOther(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		ctx, of := t.Context(), w.Team(w.team("a").ID)
		create := func() dmarcd.Token {
			return musttest.Get(of.CreateToken(ctx, store.NewToken{Scope: dmarcd.ScopeAdmin, Hash: w.hash()}))(t)
		}
		for range 5 {
			pair := [2]dmarcd.Token{create(), create()}
			errs := make([]error, 2)
			var both sync.WaitGroup
			for i, token := range pair {
				both.Go(func() {
					errs[i] = w.As(store.Grant{Token: token.ID}).Team(token.Team).RevokeToken(ctx, pair[1-i].ID)
				})
			}
			both.Wait()
			if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(errors.Join(errs...), dmarcd.ErrUnauthorized) {
				t.Errorf("got %v and %v, want one to be refused", errs[0], errs[1])
			}
		}
		itself := create()
		w.must(w.As(store.Grant{Token: itself.ID}).Team(itself.Team).RevokeToken(ctx, itself.ID))
	})
}

// TestInvitationsOfTokens invites with a token: the link gives no access to an existing account, and
// stops working with the token.
func TestInvitationsOfTokens(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		ctx, of := t.Context(), w.Team(w.team("a").ID)
		known := w.member("known@example.com", w.team("b"), dmarcd.RoleOwner)
		token := musttest.Get(of.CreateToken(ctx, store.NewToken{Scope: dmarcd.ScopeAdmin, Hash: w.hash()}))(t)
		acting := w.As(store.Grant{Token: token.ID}).Team(token.Team)
		invite := func(email string) [32]byte {
			hash := w.hash()
			w.must(acting.Invite(ctx, hash, dmarcd.Invitation{Email: email, Role: dmarcd.RoleViewer, Token: token.ID, ExpiresAt: w.clock.Now().Add(time.Hour)}))
			return hash
		}
		if _, err := w.UseInvitation(ctx, invite(known.Email), dmarcd.Claim{PasswordHash: "stolen"}); !errors.Is(err, dmarcd.ErrConflict) {
			t.Errorf("an existing user: got %v, want ErrConflict", err)
		}
		if _, err := w.UseInvitation(ctx, invite("new@example.com"), dmarcd.Claim{PasswordHash: "x"}); err != nil {
			t.Errorf("a new user: %v", err)
		}
		late := invite("late@example.com")
		w.must(of.RevokeToken(ctx, token.ID))
		if _, err := w.UseInvitation(ctx, late, dmarcd.Claim{PasswordHash: "x"}); !errors.Is(err, dmarcd.ErrNotFound) {
			t.Errorf("after the token was revoked: got %v, want ErrNotFound", err)
		}
	})
}
