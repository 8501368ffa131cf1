package backend_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/internal/web"
)

// enter signs somebody in on one more browser.
func (s *service) enter(t *testing.T, email, userAgent, address string) web.Browser {
	t.Helper()
	browser := web.Browser{UserAgent: userAgent, Address: address}
	session, err := s.SignIn(t.Context(), web.SignInAttempt{Email: email, Password: samplePassword, Browser: browser})
	if err != nil {
		t.Fatal(err)
	}
	browser.Session = session
	return browser
}

// isIn reports whether the session of a browser opens the pages.
func (s *service) isIn(t *testing.T, browser web.Browser) bool {
	t.Helper()
	_, err := s.Viewer(t.Context(), browser.Session)
	if err != nil && !errors.Is(err, dmarcd.ErrUnauthorized) {
		t.Fatal(err)
	}
	return err == nil
}

// seen returns what the profile tells of the sessions: the browser and the address,
// with a star at the one that asks.
func (s *service) seen(t *testing.T, browser web.Browser) (names, ids []string) {
	t.Helper()
	profile, err := s.Profile(t.Context(), browser)
	if err != nil {
		t.Fatal(err)
	}
	for _, session := range profile.Sessions {
		name := session.UserAgent + " " + session.Address
		if session.Here {
			name += " *"
		}
		names, ids = append(names, name), append(ids, session.ID)
	}
	return names, ids
}

func TestOwnSessions(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db)
		s.owner(t, "acme", "ann@example.com")
		s.owner(t, "zoo", "bob@example.com")
		s.now = s.now.Add(dmarcd.SessionIdle) // the sessions of those links are over
		stranger := s.enter(t, "bob@example.com", "browser of bob", "192.0.2.9")
		old := s.enter(t, "ann@example.com", "old", "192.0.2.1")
		s.now = s.now.Add(time.Minute)
		lost := s.enter(t, "ann@example.com", "lost", "192.0.2.2")
		s.now = s.now.Add(time.Minute)
		here := s.enter(t, "ann@example.com", "here", "192.0.2.3")

		names, ids := s.seen(t, here)
		if diff := cmp.Diff([]string{"here 192.0.2.3 *", "lost 192.0.2.2", "old 192.0.2.1"}, names); diff != "" {
			t.Fatalf("got other sessions (-want +got):\n%s", diff)
		}
		for _, id := range append(ids, "", "x") {
			if err := s.EndSession(t.Context(), stranger, id); !errors.Is(err, dmarcd.ErrNotFound) {
				t.Errorf("somebody else ends %q: got %v, want dmarcd.ErrNotFound", id, err)
			}
		}
		if err := s.EndSession(t.Context(), here, ids[1]); err != nil {
			t.Fatal(err)
		}
		if s.isIn(t, lost) || !s.isIn(t, old) || !s.isIn(t, here) {
			t.Error("ended one session: want that one out, and the others in")
		}
		if err := s.EndSession(t.Context(), here, ids[1]); !errors.Is(err, dmarcd.ErrNotFound) {
			t.Errorf("again: got %v, want dmarcd.ErrNotFound", err)
		}
		if err := s.EndOtherSessions(t.Context(), here); err != nil {
			t.Fatal(err)
		}
		if s.isIn(t, old) || !s.isIn(t, here) || !s.isIn(t, stranger) {
			t.Error("ended the others: want mine in, my others out, and nobody else's ended")
		}
	})
}

func TestOwnNameAndPassword(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db)
		s.owner(t, "acme", "ann@example.com")
		other := s.enter(t, "ann@example.com", "other", "192.0.2.1")
		here := s.enter(t, "ann@example.com", "here", "192.0.2.3")

		if err := s.SetName(t.Context(), here, "Ann\x00"); !errors.Is(err, dmarcd.ErrInvalid) {
			t.Errorf("a name that cannot be shown: got %v, want dmarcd.ErrInvalid", err)
		}
		if err := s.SetName(t.Context(), here, "Ann Example"); err != nil {
			t.Fatal(err)
		}
		if profile, err := s.Profile(t.Context(), here); err != nil || profile.Name != "Ann Example" || !profile.Password {
			t.Errorf("got %+v and %v, want the new name and that there is a password", profile, err)
		}
		const next = "another few words in a row"
		if err := s.SetPassword(t.Context(), here, "not the present one", next); !errors.Is(err, dmarcd.ErrUnauthorized) || !s.isIn(t, other) {
			t.Errorf("a wrong password: got %v, want dmarcd.ErrUnauthorized and nobody signed out", err)
		}
		if err := s.SetPassword(t.Context(), here, samplePassword, "short"); !errors.Is(err, dmarcd.ErrInvalid) {
			t.Errorf("a short password: got %v, want dmarcd.ErrInvalid", err)
		}
		if err := s.SetPassword(t.Context(), here, samplePassword, next); err != nil {
			t.Fatal(err)
		}
		if !s.isIn(t, here) || s.isIn(t, other) {
			t.Error("after the change: want this session in and the other out")
		}
		if _, err := s.SignIn(t.Context(), web.SignInAttempt{Email: "ann@example.com", Password: next}); err != nil {
			t.Errorf("the new password: %v", err)
		}
		var entries []string
		found, err := s.store.Audit(t.Context(), store.AuditFilter{Actor: "ann@example.com"}, store.Cursor{}, 10)
		for _, e := range found {
			if e.Team == 0 {
				entries = append(entries, e.Action+" "+e.Target+" from "+e.Address)
			}
		}
		want := "user.password ann@example.com from 192.0.2.3, user.name ann@example.com from 192.0.2.3"
		if got := strings.Join(entries, ", "); err != nil || got != want {
			t.Errorf("got the entries %q and %v, want %q", got, err, want)
		}
	})
}

func TestPasswordGuessesAreSlowedDownOnTheAccountToo(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t))
	s.owner(t, "acme", "ann@example.com")
	here := s.enter(t, "ann@example.com", "here", "192.0.2.3")
	for range 5 {
		if err := s.SetPassword(t.Context(), here, "not the present one", "a few new words"); !errors.Is(err, dmarcd.ErrUnauthorized) {
			t.Fatalf("got %v, want dmarcd.ErrUnauthorized", err)
		}
	}
	if err := s.SetPassword(t.Context(), here, samplePassword, "a few new words"); !errors.Is(err, dmarcd.ErrLimit) {
		t.Errorf("got %v, want dmarcd.ErrLimit", err)
	}
}

// TestOwnAccountWithoutASession asks everything as nobody.
func TestOwnAccountWithoutASession(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t))
	s.owner(t, "acme", "ann@example.com")
	ctx, nobody := t.Context(), web.Browser{Session: strings.Repeat("A", 26)}
	_, errProfile := s.Profile(ctx, nobody)
	for name, err := range map[string]error{
		"profile": errProfile, "name": s.SetName(ctx, nobody, "x"), "password": s.SetPassword(ctx, nobody, samplePassword, samplePassword),
		"end one": s.EndSession(ctx, nobody, "x"), "end others": s.EndOtherSessions(ctx, nobody),
	} {
		if !errors.Is(err, dmarcd.ErrUnauthorized) {
			t.Errorf("%s: got %v, want dmarcd.ErrUnauthorized", name, err)
		}
	}
}
