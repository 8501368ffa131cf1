package backend_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/intake/shape"
	"github.com/dmarcd/dmarcd/internal/senders"
	usecase "github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/internal/web"
	"github.com/dmarcd/dmarcd/internal/web/backend"
)

const (
	sampleDomain   = "example.com"
	samplePassword = "a few words in a row"
)

// service is a backend on a database, with a clock that stands.
type service struct {
	*backend.Backend
	store *store.Store
	now   time.Time
	day   dmarcd.Day // today
	// examined counts the looks at everything.
	examined int
	log      *bytes.Buffer
}

func newService(t *testing.T, db storetest.DB) *service {
	t.Helper()
	s := &service{
		now: time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC),
		log: new(bytes.Buffer),
	}
	s.day = dmarcd.DayOf(s.now)
	now := func() time.Time { return s.now }
	s.store = db.Open(t, store.Options{Now: now})
	log := slog.New(slog.NewTextHandler(s.log, nil))
	passwords := auth.NewPasswords()
	limits := intake.DefaultLimits()
	limits.Containers.Folder = t.TempDir()
	acceptor := &intake.Acceptor{
		Limits: limits, Document: shape.Document, Fault: func(err error) { t.Error(err) },
	}
	const baseURL = "https://dmarc.example/api"
	s.Backend = backend.New(backend.Options{
		Store: s.store,
		Service: usecase.New(s.store, usecase.Options{
			Checker: dnscheck.New(dnscheck.Options{
				Resolver: dnstest.New(`_dmarc.example.org TXT "v=DMARC1; p=reject"`), ReportDomain: "reports.example", Interval: time.Hour, Now: now,
			}),
			Acceptor:       acceptor,
			PasswordSecret: func(password string) ([]byte, error) { return []byte(password), nil },
			TryMailbox:     func(_ context.Context, _ dmarcd.Mailbox, secret []byte) ([]byte, error) { return secret, nil },
			Seal: func(_ dmarcd.Mailbox, secret []byte) ([]byte, error) {
				return append([]byte("sealed "), secret...), nil
			},
			Examine: func(context.Context, *store.Team, string) error {
				s.examined++
				return nil
			},
			Insight:   insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), nobody{}, nil),
			Retention: store.Retention{Originals: 90 * 24 * time.Hour, Records: 36 * time.Hour},
			BaseURL:   baseURL, ReportDomain: "reports.example", Now: now, Log: log,
		}),
		Sessions:  auth.NewSessions(s.store, now, log),
		Passwords: &auth.PasswordSignIn{Store: s.store, Passwords: passwords, Throttle: auth.NewThrottle(now)},
		Welcome:   &auth.Welcome{Store: s.store, Passwords: passwords, Now: now},
		Acceptor:  acceptor,
		MaxUpload: 1 << 20,
		BaseURL:   baseURL, ReportDomain: "reports.example",
		Now: now, Log: log,
	})
	return s
}

// nobody has no names of addresses.
type nobody struct{}

func (nobody) Known(context.Context, []netip.Addr) (map[netip.Addr]string, error) { return nil, nil }

// newTeam makes a team.
func (s *service) newTeam(t *testing.T, name string) dmarcd.Team {
	t.Helper()
	team, err := s.store.CreateTeam(t.Context(), name, false)
	if err != nil {
		t.Fatal(err)
	}
	return team
}

// join lets somebody into a team by a link, on a browser with that session or none,
// and returns the secret of the new one.
func (s *service) join(t *testing.T, session string, invite dmarcd.Invite) string {
	t.Helper()
	secret := s.invite(t, invite)
	session, err := s.AcceptInvitation(t.Context(), secret, web.NewAccount{
		Email: invite.Email, Password: samplePassword, Browser: web.Browser{Session: session},
	})
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func (s *service) invite(t *testing.T, invite dmarcd.Invite) string {
	t.Helper()
	secret, hash := auth.NewInvite()
	invite.ExpiresAt = s.now.Add(time.Hour)
	if err := s.store.CreateInvite(t.Context(), hash, invite); err != nil {
		t.Fatal(err)
	}
	return secret
}

// viewer returns whose session it is, looking from an address.
func (s *service) viewer(t *testing.T, session string) web.Viewer {
	t.Helper()
	viewer, err := s.Viewer(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	viewer.Address = "192.0.2.7"
	return viewer
}

// owner makes a team with an owner and returns both.
func (s *service) owner(t *testing.T, team, email string) (*store.Team, web.Viewer) {
	t.Helper()
	made := s.newTeam(t, team)
	session := s.join(t, "", dmarcd.Invite{Email: email, Team: made.ID, Role: dmarcd.RoleOwner})
	return s.store.Team(made.ID), s.viewer(t, session)
}

// fill gives a team a domain with reports, something rejected, a token, a mailbox and
// an open invitation.
func (s *service) fill(t *testing.T, team *store.Team) {
	t.Helper()
	if _, err := team.AddDomain(t.Context(), sampleDomain, s.now); err != nil {
		t.Fatal(err)
	}
	delivery := storetest.Delivery(storetest.Aggregate("1", sampleDomain, s.day-1,
		storetest.Passed(sampleDomain, 7), storetest.Failed(sampleDomain, 3)))
	delivery.Refusals = []dmarcd.Refusal{{Member: "note.txt", Reason: "The content is not a report."}}
	if _, err := team.Receive(t.Context(), []*dmarcd.Delivery{delivery}); err != nil {
		t.Fatal(err)
	}
	if _, err := team.CreateToken(t.Context(), store.NewToken{Name: "script", Scope: dmarcd.ScopeRead}); err != nil {
		t.Fatal(err)
	}
	_, err := team.AddMailbox(t.Context(), dmarcd.Mailbox{
		Host: "imap.example.com", Port: 993, Security: dmarcd.SecurityTLS, Username: "reports", Method: dmarcd.LoginPassword,
		Folder: "INBOX", After: dmarcd.AfterKeep,
	}, func(dmarcd.Mailbox) ([]byte, error) { return []byte("sealed"), nil })
	if err != nil {
		t.Fatal(err)
	}
	members, err := team.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = team.Invite(t.Context(), [32]byte{1}, dmarcd.Invite{
		Email: "invited@example.com", Role: dmarcd.RoleViewer, CreatedBy: members[0].User.ID, ExpiresAt: s.now.Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
}

// week is the last seven days.
func (s *service) week() web.Period { return web.Period{From: s.day - 6, To: s.day} }

// sampleReport is an aggregate report in its raw form.
func sampleReport(t *testing.T) io.Reader {
	t.Helper()
	file, err := os.Open("testdata/report.xml")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() }) // read-only
	return file
}
