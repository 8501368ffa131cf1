package service_test

import (
	"errors"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// enrolled has a user set up an authenticator app.
func (w *world) enrolled(a *service.Account, now time.Time) (secret string, recovery []string) {
	w.Helper()
	secret = musttest.Get(a.NewAuthenticator(""))(w).Secret
	return secret, musttest.Get(a.SetAuthenticator(ctx, secret, musttest.Get(totp.GenerateCode(secret, now))(w)))(w)
}

// step begins a sign-in, which must need a second step.
func (w *world) step(email string) string {
	w.Helper()
	var step *service.SecondStep
	if session, err := w.service.SignIn(ctx, email, oldPassword, service.Client{Address: "192.0.2.9"}); session != "" || !errors.As(err, &step) {
		w.Fatalf("got the session %q and %v, want a second step", session, err)
	}
	return step.State
}

// TestSecondFactor signs in with codes of an authenticator app and recovery codes, at a given time.
func TestSecondFactor(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		now := time.Now().Truncate(30 * time.Second)
		w.options.Now = func() time.Time { return now }
		w.service = service.New(w.store, w.options)
		client, other := w.signIn("cy@example.com")
		account := musttest.Get(w.service.Account(ctx, client))(t)
		underWay := dmarcd.NewSession{Hash: [32]byte{7}, User: account.User.ID, ExpiresAt: now.Add(time.Hour)}
		_, underWay.PasswordHash, _ = w.store.Password(ctx, "cy@example.com")
		secret, recovery := w.enrolled(account, now)
		if _, err := w.service.Account(ctx, other); !errors.Is(err, dmarcd.ErrUnauthorized) {
			t.Errorf("another session: got %v, want it ended", err)
		}
		if err := w.store.CreateSession(ctx, underWay); !errors.Is(err, dmarcd.ErrUnauthorized) {
			t.Errorf("a sign-in under way: got %v, want it ended", err)
		}
		if factors := musttest.Get(account.Factors(ctx))(t); !factors.SecondFactor || factors.RecoveryCodes != 10 || len(recovery) != 10 {
			t.Errorf("got %+v", factors)
		}
		code := func(ago int) string {
			return musttest.Get(totp.GenerateCode(secret, now.Add(time.Duration(-30*ago)*time.Second)))(t)
		}
		state := w.step("cy@example.com")
		finish := func(what, state, code string, want error) {
			t.Helper()
			session, err := w.service.FinishSignIn(ctx, state, service.Proof{Code: code}, service.Client{Address: "192.0.2.9"})
			if !errors.Is(err, want) || (session != "") != (want == nil) {
				t.Errorf("%s: got the session %q and %v, want %v", what, session, err, want)
			}
		}
		finish("the code that set the app up", state, code(0), dmarcd.ErrUnauthorized)
		now = now.Add(5 * time.Minute)
		finish("the password", state, oldPassword, dmarcd.ErrUnauthorized)
		finish("an old code", state, code(2), dmarcd.ErrUnauthorized)
		finish("the code of the period before", state, code(1), nil)
		finish("the same code", state, code(1), dmarcd.ErrUnauthorized)
		finish("a later code", state, code(0), nil)
		finish("a recovery code", state, recovery[3], nil)
		finish("the same recovery code", state, recovery[3], dmarcd.ErrUnauthorized)
		finish("a state of another maker", "AAAA", code(-1), dmarcd.ErrNotFound)
		failed := func(e dmarcd.AuditEntry) bool {
			return e.Action == "user.login_failed" && e.Target == "cy@example.com" && e.Detail == "second factor"
		}
		if entries := w.entries(); !slices.ContainsFunc(entries, failed) {
			t.Errorf("got the entries %+v, want one of a failed sign-in", entries)
		}
		limited := false
		for range 6 {
			w.step("cy@example.com") // the right password clears no attempts of codes
			_, err := w.service.FinishSignIn(ctx, state, service.Proof{Code: "000000"}, service.Client{Address: "192.0.2.77"})
			limited = limited || errors.Is(err, dmarcd.ErrLimit)
		}
		if !limited {
			t.Error("got six guesses, want them throttled")
		}
		now = now.Add(6 * time.Minute)
		finish("an expired state", state, code(0), dmarcd.ErrNotFound)
		state = w.step("cy@example.com")
		account = musttest.Get(w.service.Account(ctx, client))(t)
		w.must(account.SetPassword(ctx, oldPassword, newPassword))
		finish("after another password", state, code(0), dmarcd.ErrNotFound)
		renewed := musttest.Get(account.RenewRecoveryCodes(ctx))(t)
		w.must(account.SetPassword(ctx, newPassword, oldPassword))
		state = w.step("cy@example.com")
		finish("a replaced recovery code", state, recovery[4], dmarcd.ErrUnauthorized)
		finish("a renewed recovery code", state, renewed[0], nil)

		rotated := musttest.Get(w.store.ReplaceSecrets(ctx, func(sealed []byte, context string) []byte {
			if context != account.User.ID.TOTPContext() {
				return nil
			}
			return sealed
		}, dmarcd.AuditEntry{}))(t)
		if rotated != 1 {
			t.Errorf("got %d secrets of apps encrypted with another key, want one", rotated)
		}
		w.must(w.service.System(service.CommandLine()).ResetSecondFactor(ctx, account.User))
		finish("after the reset", state, renewed[1], dmarcd.ErrNotFound)
		if _, err := w.service.Account(ctx, client); !errors.Is(err, dmarcd.ErrUnauthorized) {
			t.Errorf("after the reset: got %v, want all sessions ended", err)
		}
		client.Session = musttest.Get(w.service.SignIn(ctx, "cy@example.com", oldPassword, client))(t)
		account = musttest.Get(w.service.Account(ctx, client))(t)
		if factors := musttest.Get(account.Factors(ctx))(t); factors.SecondFactor || factors.RecoveryCodes != 0 || len(factors.TOTP) != 0 {
			t.Errorf("after the reset: got %+v, want no factor", factors)
		}
	})
}

// TestLinkNeedsSecondFactor resets a password by a link, which does not replace the second factor.
func TestLinkNeedsSecondFactor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	client, _ := w.signIn("cy@example.com")
	w.enrolled(musttest.Get(w.service.Account(ctx, client))(t), time.Now())
	sent := musttest.Get(w.service.System(service.CommandLine()).Invite(ctx, dmarcd.Invitation{Email: "cy@example.com"}))(t)
	var step *service.SecondStep
	if session, err := w.service.AcceptInvitation(ctx, path.Base(sent.Link), service.NewAccount{Password: newPassword}, service.Client{}); session != "" || !errors.As(err, &step) {
		t.Errorf("a link: got the session %q and %v, want a second step", session, err)
	}
}

// TestFactorIsRequired checks who has to set up a second factor.
func TestFactorIsRequired(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		client, _ := w.signIn("cy@example.com")
		needs := func(what string, want bool) {
			t.Helper()
			if got := musttest.Get(w.service.Account(ctx, client))(t).NeedsFactor(); got != want {
				t.Errorf("%s: got %t, want %t", what, got, want)
			}
		}
		system, team := w.service.System(service.CommandLine()), w.service.Team(w.team.ID, service.CommandLine())
		other := musttest.Get(w.store.CreateTeam(ctx, "other", true))(t)
		w.must(w.service.Team(other.ID, service.CommandLine()).RequireSecondFactor(ctx, true))
		needs("another team requires it", false)
		w.must(team.RequireSecondFactor(ctx, true))
		needs("the team requires it", true)
		w.must(team.RequireSecondFactor(ctx, false))
		needs("the team no longer requires it", false)
		w.must(system.RequireSecondFactor(ctx, true))
		needs("the installation requires it", true)
		w.enrolled(musttest.Get(w.service.Account(ctx, client))(t), time.Now())
		needs("it is set up", false)
		w.must(musttest.Get(w.service.Account(ctx, client))(t).RemoveAuthenticator(ctx))
		needs("it is removed", true)
		w.must(system.RequireSecondFactor(ctx, false))
		needs("the installation no longer requires it", false)
		if _, err := w.store.Factors(ctx, 1); !errors.Is(err, dmarcd.ErrNotFound) {
			t.Errorf("no user: got %v, want ErrNotFound", err)
		}
	})
}

// factorUses are the use cases about second factors.
var factorUses = map[string]use{
	"Team.RequireSecondFactor": {
		needs: manage, action: "team.second_factor",
		team: func(_ *world, t *service.Team) error { return t.RequireSecondFactor(ctx, true) },
	},
	"System.RequireSecondFactor": {
		needs: operate, action: "users.second_factor",
		system: func(_ *world, s *service.System) error { return s.RequireSecondFactor(ctx, true) },
	},
	"SecondFactorRequired": {
		needs:  operate,
		system: func(_ *world, s *service.System) error { _, err := s.SecondFactorRequired(ctx); return err },
	},
	"ResetSecondFactor": {
		needs: operate, action: "user.factor_reset", target: "bob@example.com", wants: dmarcd.ErrNotFound,
		prepare: func(w *world) {
			_ = w.store.SetTOTP(ctx, w.member.ID, []byte("x"), 1, nil, [32]byte{}) // another use case removes the member
		},
		system: func(w *world, s *service.System) error { return s.ResetSecondFactor(ctx, w.member) },
		fails:  func(w *world, _ *service.Team, s *service.System) error { return s.ResetSecondFactor(ctx, w.operator) },
	},
}
