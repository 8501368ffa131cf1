// Package service holds what teams and operators can do, each once: the role check, the
// validation, the change, and the audit entry in the transaction of the change. The API,
// the web pages and the command line decode, call it and encode. It takes and returns the
// types of package dmarcd, and its errors are of the kinds of that package.
package service

import (
	"context"
	"io"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/fair"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/store"
)

// Options are what use cases need beside the store. Those of the command line need none
// of them.
type Options struct {
	Checker *dnscheck.Checker
	// Acceptor reads what is uploaded.
	Acceptor *intake.Acceptor
	// Examine runs the full check of a domain of the team, and stores the result.
	Examine func(ctx context.Context, team *store.Team, name string) error
	// Retention is how long the data of teams is kept that have no setting of their own.
	Retention store.Retention
	// Insight knows who sends mail.
	Insight *insight.Service
	// Memory is what large answers are made within.
	Memory *memory.Budget
	// Verify says whether a mail is from whom it says, and gives the zero value for
	// what is no mail. Where it is nil no mail is verified.
	Verify func(ctx context.Context, mail *io.SectionReader) dmarcd.Verdict
	// PasswordSecret returns the secret of a mailbox with that password, or an
	// *dmarcd.InvalidError if no server takes it.
	PasswordSecret func(password string) ([]byte, error)
	// TryMailbox logs in to a mailbox and opens its folder. It returns the secret to
	// store, which the login may have renewed. A *MailboxError says what the server
	// refuses; any other error is that no mail server was reached.
	TryMailbox func(ctx context.Context, mailbox dmarcd.Mailbox, secret []byte) (renewed []byte, err error)
	// LoginRefused is how the problem of a mailbox begins whose server refuses the
	// login.
	LoginRefused string
	// Seal makes the sealed form of the secret of a mailbox.
	Seal func(mailbox dmarcd.Mailbox, secret []byte) ([]byte, error)
	// SealWebhook makes the sealed form of a secret of a webhook.
	SealWebhook func(webhook dmarcd.Webhook, secret []byte) ([]byte, error)
	// PermitsAddress reports whether an endpoint may have an address.
	PermitsAddress func(address netip.Addr) bool
	// Deliver tries a claimed delivery once, and saves the result.
	Deliver func(ctx context.Context, claimed dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error)
	// OIDC signs users in with an identity provider; nil where there is none.
	OIDC *auth.OIDC
	// BaseURL is where clients see the API; the pages are at the same host.
	BaseURL string
	// Stopping is closed when the process stops: requests that wait for something end
	// then. nil is never.
	Stopping <-chan struct{}
	// ReportDomain is the domain of the reporting addresses, "" if there is none.
	ReportDomain string
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	Log *slog.Logger
}

// Service knows all use cases. It is safe for concurrent use.
type Service struct {
	store       *store.Store
	options     Options
	sessions    *auth.Sessions
	passwords   *auth.PasswordSignIn
	invitations *auth.Welcome
	// mailboxAttempts slows down attempts to add a mailbox, by team and user.
	mailboxAttempts *auth.Throttle
	watching        watching
	topAdvice       adviceCache
	// waiters bounds the requests that wait for events.
	waiters *fair.Limiter[dmarcd.TeamID]
}

// New returns a service over a store.
func New(s *store.Store, options Options) *Service {
	if options.Now == nil {
		options.Now = time.Now
	}
	options.BaseURL = strings.TrimSuffix(options.BaseURL, "/")
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	passwords := auth.NewPasswords()
	return &Service{
		store: s, options: options,
		sessions:    auth.NewSessions(s, options.Now, options.Log),
		passwords:   &auth.PasswordSignIn{Store: s, Passwords: passwords, Throttle: auth.NewThrottle(options.Now)},
		invitations: &auth.Welcome{Store: s, Passwords: passwords, Now: options.Now},

		mailboxAttempts: auth.NewThrottle(options.Now),
		waiters:         fair.New[dmarcd.TeamID](fair.Options{Capacity: maxWaiters, PerKey: maxTeamWaiters}),
	}
}

// Actor is who asks for something: a user, a token or an operator on the command line.
// The zero value may do nothing.
type Actor struct {
	// role is what the actor may do in the team.
	role dmarcd.Role
	// token tells that the actor is a token, operator that it may do everything.
	token, operator bool
	// local tells that the actor is on this machine, whose network is no secret to them.
	local bool
	entry dmarcd.AuditEntry
}

// User is a user with a role in the team, who is connected from address. Operators may
// also change the installation.
func User(id dmarcd.UserID, email string, role dmarcd.Role, operator bool, address string) Actor {
	return Actor{role: role, operator: operator, entry: dmarcd.AuditEntry{User: id, Actor: email, Address: address}}
}

// Token is a token of the team, used from address. One that may write has the rights of
// an editor, and may delete domains.
func Token(id dmarcd.TokenID, scope dmarcd.Scope, address string) Actor {
	role := dmarcd.RoleViewer
	if scope == dmarcd.ScopeWrite {
		role = dmarcd.RoleEditor
	}
	return Actor{role: role, token: true, entry: dmarcd.AuditEntry{Actor: "token " + id.String(), Address: address}}
}

// CommandLine is an operator on the command line.
func CommandLine() Actor {
	return Actor{role: dmarcd.RoleOwner, operator: true, local: true, entry: dmarcd.AuditEntry{Actor: "command line"}}
}

// to returns the audit entry of a change.
func (a Actor) to(action, target, detail string) dmarcd.AuditEntry {
	entry := a.entry
	entry.Action, entry.Target, entry.Detail = action, target, detail
	return entry
}

// Team is what an actor can do in one team. It is for one request, and costs nothing to
// make.
type Team struct {
	service *Service
	team    *store.Team
	actor   Actor
}

// Team returns what the actor can do in the team with that id.
func (s *Service) Team(id dmarcd.TeamID, actor Actor) *Team {
	return &Team{service: s, team: s.store.Team(id), actor: actor}
}

// may returns dmarcd.ErrForbidden unless the actor has a right in the team.
func (t *Team) may(right dmarcd.Right) error {
	if !t.actor.role.Can(right) {
		return dmarcd.ErrForbidden
	}
	return nil
}

// System is what an actor can do to the installation. It is for one request, and costs
// nothing to make.
type System struct {
	service *Service
	actor   Actor
}

// System returns what the actor can do to the installation.
func (s *Service) System(actor Actor) *System { return &System{service: s, actor: actor} }

// may returns dmarcd.ErrForbidden unless the actor is an operator.
func (s *System) may() error {
	if !s.actor.operator {
		return dmarcd.ErrForbidden
	}
	return nil
}
