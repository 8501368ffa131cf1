package auth_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

const rightPassword = "correct horse battery"

// fixture is a real store with one user and all ways to sign in.
type fixture struct {
	clock       *hand
	db          storetest.DB
	store       *store.Store
	user        dmarcd.SignIn
	team        dmarcd.Team
	sessions    *auth.Sessions
	signIn      *auth.PasswordSignIn
	invitations *auth.Invitations
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	h := &fixture{clock: newHand(), db: storetest.SQLite(t)}
	h.store = h.db.Open(t, store.Options{Now: h.clock.now})
	passwords := auth.NewPasswords()
	h.sessions = auth.NewSessions(h.store, h.clock.now, slog.New(slog.DiscardHandler))
	h.signIn = &auth.PasswordSignIn{Store: h.store, Passwords: passwords, Throttle: auth.NewThrottle(h.clock.now)}
	h.invitations = &auth.Invitations{Store: h.store, Passwords: passwords, Now: h.clock.now}
	var err error
	if h.team, err = h.store.CreateTeam(t.Context(), "a", true); err != nil {
		t.Fatal(err)
	}
	secret := h.invite(t, "ann@example.com")
	claim := dmarcd.Claim{Name: "Ann", PasswordHash: weakHash(rightPassword)}
	if h.user, err = h.store.UseInvitation(t.Context(), sha256.Sum256([]byte(secret)), claim); err != nil {
		t.Fatal(err)
	}
	return h
}

// invite creates an invitation and returns its secret.
func (h *fixture) invite(t *testing.T, email string) string {
	t.Helper()
	secret, hash := auth.NewInvitation()
	err := h.store.CreateInvitation(t.Context(), hash, dmarcd.Invitation{
		Email: email, Team: h.team.ID, Role: dmarcd.RoleOwner, ExpiresAt: h.clock.now().Add(dmarcd.InvitationLife),
	})
	musttest.Do(t, err)
	return secret
}

func (h *fixture) begin(t *testing.T, before string) string {
	t.Helper()
	return musttest.Get(h.sessions.Begin(t.Context(), h.user, auth.Client{Address: "192.0.2.1", UserAgent: "browser"}, before))(t)
}

func TestSignInByPassword(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	for _, test := range []struct {
		name, email, password string
		want                  error
	}{
		{"right", "ann@example.com", rightPassword, nil},
		{"right, in another case", " Ann@EXAMPLE.com ", rightPassword, nil},
		{"wrong password", "ann@example.com", "another password", dmarcd.ErrUnauthorized},
		{"unknown user", "bob@example.com", rightPassword, dmarcd.ErrUnauthorized},
		{"no address", "ann", rightPassword, dmarcd.ErrUnauthorized},
	} {
		user, err := h.signIn.User(t.Context(), test.email, test.password, "192.0.2.1")
		if !errors.Is(err, test.want) || (user.ID == h.user.ID) != (test.want == nil) {
			t.Errorf("%s: got %v, %v; want %v", test.name, user, err, test.want)
		}
	}
}

func TestGuessingIsSlowedDown(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	for range 5 {
		if _, err := h.signIn.User(t.Context(), h.user.Email, "another password", "192.0.2.1"); !errors.Is(err, dmarcd.ErrUnauthorized) {
			t.Fatalf("got %v, want ErrUnauthorized", err)
		}
	}
	if _, err := h.signIn.User(t.Context(), h.user.Email, rightPassword, "192.0.2.2"); !errors.Is(err, dmarcd.ErrLimit) {
		t.Errorf("got %v, want ErrLimit", err)
	}
	h.clock.at = h.clock.at.Add(time.Second)
	if _, err := h.signIn.User(t.Context(), h.user.Email, rightPassword, "192.0.2.2"); err != nil {
		t.Errorf("after the wait: %v", err)
	}
}

func TestChangePassword(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	mine, other := h.begin(t, ""), h.begin(t, "")
	session := musttest.Get(h.sessions.Resolve(t.Context(), mine))(t)
	for _, test := range []struct {
		name, current, next string
		want                error
	}{
		{"the present one is wrong", "another password", "a new password", dmarcd.ErrUnauthorized},
		{"the new one is too short", rightPassword, "short", dmarcd.ErrInvalid},
		{"right", rightPassword, "a new password", nil},
	} {
		of, hash, err := h.signIn.Next(t.Context(), session.User, test.current, test.next, "192.0.2.1")
		if err == nil {
			err = h.store.SetPassword(t.Context(), of, hash, session.Hash)
		}
		if !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, err, test.want)
		}
	}
	// With a stolen session of a user who signs in with an identity provider, an attacker
	// must not be able to set a password.
	session.User.Password = false
	if _, _, err := h.signIn.Next(t.Context(), session.User, "", "another new password", "192.0.2.1"); !errors.Is(err, dmarcd.ErrForbidden) {
		t.Errorf("without a password: got %v, want ErrForbidden", err)
	}
	if _, err := h.signIn.User(t.Context(), h.user.Email, "a new password", "192.0.2.1"); err != nil {
		t.Errorf("the new password: %v", err)
	}
	if _, err := h.sessions.Resolve(t.Context(), mine); err != nil {
		t.Errorf("the session that changed it: %v", err)
	}
	if _, err := h.sessions.Resolve(t.Context(), other); !errors.Is(err, dmarcd.ErrUnauthorized) {
		t.Errorf("another session: got %v, want ErrUnauthorized", err)
	}
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		pass func(h *fixture, use func() error) error // advances the clock and uses the session
		want error
	}{
		{"used within the idle time", func(h *fixture, use func() error) error {
			for range 20 {
				h.clock.at = h.clock.at.Add(dmarcd.SessionIdle - time.Minute)
				if err := use(); err != nil {
					return err
				}
			}
			return nil
		}, nil},
		{"idle", func(h *fixture, use func() error) error {
			h.clock.at = h.clock.at.Add(dmarcd.SessionIdle)
			return use()
		}, dmarcd.ErrUnauthorized},
		{"as old as any may get", func(h *fixture, use func() error) error {
			for end := h.clock.at.Add(dmarcd.SessionLife - time.Hour); h.clock.at.Before(end); {
				h.clock.at = h.clock.at.Add(time.Hour)
				if err := use(); err != nil {
					return errors.New("too early")
				}
			}
			h.clock.at = h.clock.at.Add(time.Hour)
			return use()
		}, dmarcd.ErrUnauthorized},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newFixture(t)
			secret := h.begin(t, "")
			err := test.pass(h, func() error { _, err := h.sessions.Resolve(t.Context(), secret); return err })
			if !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

// fakeSessions has one session and counts what is asked of it.
type fakeSessions struct {
	auth.SessionStore
	session         dmarcd.Session
	err             error
	looked, touched int
}

func (f *fakeSessions) Session(context.Context, [32]byte) (dmarcd.Session, error) {
	f.looked++
	return f.session, f.err
}

func (f *fakeSessions) TouchSession(context.Context, [32]byte, time.Time) error {
	f.touched++
	return errors.New("broken") // which the page does not need to know
}

func TestResolveSession(t *testing.T) {
	t.Parallel()
	clock := newHand()
	good, broken := strings.Repeat("A", 26), errors.New("broken")
	for _, test := range []struct {
		name, secret    string
		seen            time.Duration // ago
		err, want       error
		looked, touched int
	}{
		{name: "just seen", secret: good, seen: time.Minute - time.Second, looked: 1},
		{name: "seen a minute ago", secret: good, seen: time.Minute, looked: 1, touched: 1},
		{name: "too short", secret: good[1:], want: dmarcd.ErrUnauthorized},
		{name: "too long", secret: good + "A", want: dmarcd.ErrUnauthorized},
		{name: "another alphabet", secret: good[1:] + "1", want: dmarcd.ErrUnauthorized},
		{name: "unknown", secret: good, err: dmarcd.ErrNotFound, want: dmarcd.ErrUnauthorized, looked: 1},
		{name: "no database", secret: good, err: broken, want: broken, looked: 1},
	} {
		now := clock.now()
		fake := &fakeSessions{err: test.err, session: dmarcd.Session{SeenAt: now.Add(-test.seen), ExpiresAt: now.Add(time.Hour)}}
		_, err := auth.NewSessions(fake, clock.now, slog.New(slog.DiscardHandler)).Resolve(t.Context(), test.secret)
		if !errors.Is(err, test.want) || fake.looked != test.looked || fake.touched != test.touched {
			t.Errorf("%s: got %v after %d lookups and %d writes, want %v after %d and %d",
				test.name, err, fake.looked, fake.touched, test.want, test.looked, test.touched)
		}
	}
}

func TestSignInRotatesTheSession(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	// A session secret that an attacker set before the sign-in must not work after it.
	planted := strings.Repeat("A", 26)
	secret := h.begin(t, planted)
	if secret == planted {
		t.Error("the planted secret became the session's")
	}
	again := h.begin(t, secret)
	for name, old := range map[string]string{"planted": planted, "replaced": secret, "malformed": "x", "empty": ""} {
		if _, err := h.sessions.Resolve(t.Context(), old); !errors.Is(err, dmarcd.ErrUnauthorized) {
			t.Errorf("%s: got %v, want ErrUnauthorized", name, err)
		}
	}
	session, err := h.sessions.Resolve(t.Context(), again)
	if err != nil || session.User.ID != h.user.ID || session.Team != h.team || session.Role != dmarcd.RoleOwner {
		t.Errorf("got %+v, %v", session, err)
	}
	if strings.Contains(h.db.Dump(t), again) {
		t.Error("the secret itself is stored")
	}
	musttest.Do(t, h.store.EndSession(t.Context(), sha256.Sum256([]byte(again))))
	if _, err := h.sessions.Resolve(t.Context(), again); !errors.Is(err, dmarcd.ErrUnauthorized) {
		t.Errorf("after signing out: got %v, want ErrUnauthorized", err)
	}
}

func TestInvitation(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	secret := h.invite(t, "bob@example.com")
	link, err := auth.InvitationLink("https://dmarc.example:8443/some/api", secret)
	if want := "https://dmarc.example:8443/app/invitation/" + secret; err != nil || link != want {
		t.Errorf("got %q, %v; want %q", link, err, want)
	}
	for range 2 { // reading it does not use it
		if invitation, err := h.invitations.Find(t.Context(), secret); err != nil || invitation.Email != "bob@example.com" {
			t.Errorf("got %+v, %v", invitation, err)
		}
	}
	for _, test := range []struct {
		name, secret string
		answer       auth.Answer
		want         error
	}{
		{"malformed", "../../etc", auth.Answer{Password: rightPassword}, dmarcd.ErrNotFound},
		{"malformed, as long", strings.Repeat("a", 26), auth.Answer{Password: rightPassword}, dmarcd.ErrNotFound},
		{"too short", strings.Repeat("A", 25), auth.Answer{Password: rightPassword}, dmarcd.ErrNotFound},
		{"unknown", strings.Repeat("A", 26), auth.Answer{Password: rightPassword}, dmarcd.ErrNotFound},
		{"a short password", secret, auth.Answer{Password: "short"}, dmarcd.ErrInvalid},
		{"no password", secret, auth.Answer{}, dmarcd.ErrInvalid},
		{"signed in as another", secret, auth.Answer{SignedIn: h.user.ID}, dmarcd.ErrForbidden},
		{"right", secret, auth.Answer{Name: "Bob", Password: "the password of bob"}, nil},
		{"again", secret, auth.Answer{Password: rightPassword}, dmarcd.ErrNotFound},
	} {
		if _, err := h.invitations.Accept(t.Context(), test.secret, test.answer); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, err, test.want)
		}
	}
	if _, err := h.invitations.Find(t.Context(), secret); !errors.Is(err, dmarcd.ErrNotFound) {
		t.Errorf("a used link: got %v, want ErrNotFound", err)
	}
	if _, err := h.signIn.User(t.Context(), "bob@example.com", "the password of bob", "192.0.2.1"); err != nil {
		t.Errorf("the new user: %v", err)
	}
	late := h.invite(t, "late@example.com")
	h.clock.at = h.clock.at.Add(dmarcd.InvitationLife)
	if _, err := h.invitations.Accept(t.Context(), late, auth.Answer{Password: rightPassword}); !errors.Is(err, dmarcd.ErrNotFound) {
		t.Errorf("too late: got %v, want ErrNotFound", err)
	}
}

func TestProviderThatIsAway(t *testing.T) {
	t.Parallel()
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	h := newFixture(t)
	options := auth.OIDCOptions{Issuer: away.URL, ClientID: "id", ClientSecret: "secret", BaseURL: "http://localhost/api", Now: h.clock.now}
	signIn, err := auth.NewOIDC(options, h.store)
	if err != nil {
		t.Fatalf("a provider that is away keeps dmarcd from starting: %v", err)
	}
	if _, _, err := signIn.Begin(t.Context(), "/app/"); !errors.Is(err, dmarcd.ErrTemporary) {
		t.Errorf("got %v, want ErrTemporary", err)
	}
	options.ClientSecret = ""
	if _, err := auth.NewOIDC(options, h.store); err == nil {
		t.Error("a client without a secret was taken")
	}
}

// TestOwnersAreNotLockedOutByRestarts has an attacker try first, after a restart. The owner of the
// account still has a session from another address.
func TestOwnersAreNotLockedOutByRestarts(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.begin(t, "")
	try := func(address, password string) error {
		_, err := h.signIn.User(t.Context(), "ann@example.com", password, address)
		return err
	}
	for range 5 {
		if err := try("198.51.100.9", "a wrong guess"); !errors.Is(err, dmarcd.ErrUnauthorized) {
			t.Fatalf("got %v, want dmarcd.ErrUnauthorized", err)
		}
	}
	if err := try("198.51.100.10", rightPassword); !errors.Is(err, dmarcd.ErrLimit) {
		t.Errorf("from an unknown address: got %v, want dmarcd.ErrLimit", err)
	}
	if err := try("192.0.2.1", rightPassword); err != nil {
		t.Errorf("from the address of a session: %v", err)
	}
}

// askedStore counts how often it is asked for the addresses of a user.
type askedStore struct {
	auth.PasswordStore
	asked int
}

func (s *askedStore) SignInAddresses(ctx context.Context, email string, since time.Time) ([]string, error) {
	s.asked++
	return s.PasswordStore.SignInAddresses(ctx, email, since)
}

// TestThrottledAttemptsAskOnce makes many throttled attempts, which a client can make as fast as it
// likes. The time of a query differs between users and others.
func TestThrottledAttemptsAskOnce(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	asked := &askedStore{PasswordStore: h.store}
	h.signIn.Store = asked
	for attempt := range 25 {
		_, err := h.signIn.User(t.Context(), h.user.Email, "a wrong guess", "198.51.100.9")
		if want := attempt >= 5; errors.Is(err, dmarcd.ErrLimit) != want {
			t.Fatalf("attempt %d: got %v, want it throttled: %t", attempt, err, want)
		}
	}
	if asked.asked != 1 {
		t.Errorf("got %d queries for the throttled attempts of a minute, want 1", asked.asked)
	}
	for guess := range 20 { // the network address is throttled too
		_, _ = h.signIn.User(t.Context(), fmt.Sprintf("user%d@example.com", guess), "a wrong guess", "198.51.100.9") // the count is what matters
	}
	h.clock.at = h.clock.at.Add(time.Second / 2)
	asked.asked = 0
	if _, err := h.signIn.User(t.Context(), "bob@example.com", "a wrong guess", "198.51.100.9"); !errors.Is(err, dmarcd.ErrLimit) || asked.asked != 0 {
		t.Errorf("from a throttled address: got %v after %d queries, want dmarcd.ErrLimit after none", err, asked.asked)
	}
}
