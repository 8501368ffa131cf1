package backend_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/internal/web"
)

// TestInvitationOfAMember follows a link that an owner makes, for somebody new and
// for somebody who has an account.
func TestInvitationOfAMember(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db)
		_, owner := s.owner(t, "acme", "ann@example.com")
		_, known := s.owner(t, "zoo", "bob@example.com")
		link := func(email string) string {
			t.Helper()
			link, err := s.Team(owner).Invites.InviteMember(t.Context(), email, "editor")
			if err != nil {
				t.Fatal(err)
			}
			secret, ok := strings.CutPrefix(link, "https://dmarc.example"+auth.WelcomePath)
			if !ok {
				t.Fatalf("got the link %s, want one at the host of the API", link)
			}
			return secret
		}

		secret := link("new@example.com")
		invitation, err := s.Invitation(t.Context(), secret, "")
		if want := (web.Invitation{Email: "new@example.com", Team: "acme", Role: "editor"}); err != nil || invitation != want {
			t.Errorf("got %+v and %v, want %+v", invitation, err, want)
		}
		_, err = s.AcceptInvitation(t.Context(), secret, web.NewAccount{Password: "too short"})
		if !errors.Is(err, dmarcd.ErrInvalid) {
			t.Errorf("a short password: got %v, want dmarcd.ErrInvalid", err)
		}
		session, err := s.AcceptInvitation(t.Context(), secret, web.NewAccount{Name: "New One", Password: samplePassword})
		if err != nil {
			t.Fatal(err)
		}
		if viewer := s.viewer(t, session); viewer.Name != "New One" || viewer.Team.Name != "acme" || viewer.Access != web.AccessEdit {
			t.Errorf("got %+v, want an editor of acme", viewer)
		}
		if _, err := s.Invitation(t.Context(), secret, ""); !errors.Is(err, dmarcd.ErrNotFound) {
			t.Errorf("a used link: got %v, want dmarcd.ErrNotFound", err)
		}

		secret = link(known.Email)
		invitation, err = s.Invitation(t.Context(), secret, "")
		if err != nil || !invitation.Known || !invitation.SignInFirst {
			t.Errorf("somebody with an account: got %+v and %v, want to be asked to sign in", invitation, err)
		}
		_, err = s.AcceptInvitation(t.Context(), secret, web.NewAccount{Password: "the owner knows this one"})
		if !errors.Is(err, dmarcd.ErrConflict) {
			t.Errorf("without a sign-in: got %v, want dmarcd.ErrConflict", err)
		}
		session, err = s.SignIn(t.Context(), web.SignInAttempt{Email: known.Email, Password: samplePassword})
		if err != nil {
			t.Fatal(err)
		}
		invitation, err = s.Invitation(t.Context(), secret, session)
		if err != nil || invitation.SignedIn != known.Email || invitation.SignInFirst {
			t.Errorf("signed in: got %+v and %v, want to join as they are", invitation, err)
		}
		session, err = s.AcceptInvitation(t.Context(), secret, web.NewAccount{Browser: web.Browser{Session: session}})
		if err != nil {
			t.Fatal(err)
		}
		if viewer := s.viewer(t, session); viewer.Team.Name != "acme" || len(viewer.Teams) != 2 {
			t.Errorf("got %+v, want acme beside zoo", viewer)
		}
	})
}
