// Package service contains the use cases of teams and operators, each once: role check,
// validation, change, and audit entry in the same transaction. The API, the web pages and the
// command line decode, call it and encode. It uses the types and error kinds of package
// dmarcd.
//
// Begin with service.go: Service.Team returns the use cases of a team for an Actor, Service.System
// those of the installation, and Service.Account (accounts.go) those of a signed-in user. Every use
// case is a method of one of the three in the file of its subject; reads.go has the reads that only
// check the role. Use cases of jobs, which act for no user, are methods of Service: CheckDue,
// DetectAlerts, QueueDigests, RefreshAdvice, RefreshPostures.
//
// A use case first checks the right (Team.may, System.may, or see and operate for reads). The store
// checks it again in the transaction of the change, see store.As: a right may be revoked meanwhile.
// The table of use cases in usecases_test.go must contain each: a test fails otherwise.
package service

import (
	"context"
	"io"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/cache"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/fair"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/notify/mail"
	"github.com/dmarcd/dmarcd/internal/store"
)

// Options are the dependencies of use cases other than the store.
type Options struct {
	Checker *dnscheck.Checker
	// DNS looks up the names of managed records.
	DNS dns.Resolver
	// Policies serves MTA-STS policies; nil serves none.
	Policies *Policies
	// Acceptor reads uploads.
	Acceptor *intake.Acceptor
	// Retention is the default retention of teams.
	Retention store.Retention
	// Insight identifies senders.
	Insight *insight.Service
	// Memory is the budget of large responses.
	Memory *memory.Budget
	// Verifier authenticates uploaded mail; nil disables it.
	Verifier Verifier
	// Secrets encrypts the secrets of mailboxes and webhooks.
	Secrets Secrets
	// Mailboxes logs in to mailboxes.
	Mailboxes Mailboxes
	// Publisher publishes records at DNS servers of others.
	Publisher Publisher
	// Mail sends mail; nil where the operator has configured no relay.
	Mail Mailer
	// Outbound knows which addresses an endpoint may have.
	Outbound interface{ Permits(address netip.Addr) bool }
	// Deliveries delivers events.
	Deliveries Deliveries
	// SelfTests sends synthetic reports.
	SelfTests SelfTests
	// Sample is sample data for teams without domains; the zero value disables it.
	Sample Sample
	// OIDC is the single sign-on; nil if not configured.
	OIDC *auth.OIDC
	// BaseURL is the public URL of the API; the pages are on the same host.
	BaseURL string
	// Stopping is closed when the process stops, to end waiting requests. May be nil.
	Stopping <-chan struct{}
	// ReportDomain is the domain of the reporting addresses, "" if there is none.
	ReportDomain string
	// DomainProof means that domains need a proof; see dmarcd.Proof.
	DomainProof bool
	// ReceivesMail means that mail to the report domain arrives over SMTP.
	ReceivesMail bool
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	Log *slog.Logger
}

// Verifier authenticates a mail; the result is zero for content that is not one.
type Verifier interface {
	Mail(ctx context.Context, mail io.ReadSeeker) dmarcd.Authentication
}

// Secrets encrypts and opens a secret that belongs to a context.
type Secrets interface {
	Seal(plain []byte, context string) ([]byte, error)
	Open(sealed []byte, context string) ([]byte, error)
	// Current reports whether sealed was encrypted with the key that Seal uses.
	Current(sealed []byte) (bool, error)
}

// Mailboxes logs in to mailboxes.
type Mailboxes interface {
	// Secret returns the mailbox secret for a password or, unless it is nil, for OAuth. Input that
	// cannot be right is an *dmarcd.InvalidError.
	Secret(password string, oauth *OAuth) ([]byte, error)
	// Try logs in to a mailbox and opens its folder. It returns the secret to store, which may
	// be renewed. A *MailboxError says what failed; outbound.ErrNotAllowed means that the address
	// is private.
	Try(ctx context.Context, mailbox dmarcd.Mailbox, secret []byte) (renewed []byte, err error)
	// Explain says what the problem of a mailbox is and what to do, "" if that is not known.
	Explain(mailbox dmarcd.Mailbox) string
}

// Deliveries makes one attempt of a claimed delivery, and saves the result.
type Deliveries interface {
	Deliver(ctx context.Context, claimed dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error)
}

// SelfTests sends a synthetic report about a domain, with that id, to an address. It returns the
// stages until the message is acknowledged, and whether it is.
type SelfTests interface {
	Send(ctx context.Context, address, domain, id string) (stages []dmarcd.SelfTestStage, acknowledged bool)
}

// Mailer sends mail to users. Links in it work once, or without signing in.
type Mailer interface {
	SendInvitation(ctx context.Context, to, team, link string) error
	SendConfirmation(ctx context.Context, team string, w dmarcd.Webhook, link string) error
	SendDisabled(ctx context.Context, to, team string, w dmarcd.Webhook, link string) error
	SendOnce(ctx context.Context, to, about string, content mail.Content) error
}

// Service has all use cases. It is safe for concurrent use.
type Service struct {
	store     *store.Store
	options   Options
	sessions  *auth.Sessions
	passwords *auth.PasswordSignIn
	// codes throttles second factors and passkeys.
	codes *auth.Throttle
	// passkeys is nil where browsers have none.
	passkeys    *auth.Passkeys
	invitations *auth.Invitations
	// mailboxAttempts throttles adding mailboxes, by team and user.
	mailboxAttempts *auth.Throttle
	// letters and teamLetters limit mail to addresses that users enter, by team and address, and by
	// team.
	letters, teamLetters *allowance
	// resets throttles requests for links to set a password, userLetters limits mail
	// about the accounts of users, by user and kind.
	resets      *auth.Throttle
	userLetters *allowance
	// logouts throttles logout tokens that are not valid.
	logouts *auth.Throttle
	// posted is mail that SendPosted sends.
	posted chan posting
	// tests limits test alerts, by team, and tests and retries of webhooks, by webhook.
	tests *allowance
	// watching limits the checks for users who watch a domain.
	watching *fair.Limiter[watched]
	advice   *adviceCache
	postures postureWalk
	checks   Checks
	// examining limits full checks on request.
	examining *fair.Limiter[dmarcd.TeamID]
	// failedNotes limits audit entries about failed sign-ins.
	failedNotes *rate.Limiter
	// webhookTests and selfTests limit concurrent tests.
	webhookTests *fair.Limiter[dmarcd.WebhookID]
	selfTests    *fair.Limiter[dmarcd.TeamID]
}

// ThrottledError says when to try something again.
type ThrottledError = auth.ThrottledError

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
		codes:       auth.NewThrottle(options.Now),
		passkeys:    auth.NewPasskeys(options.BaseURL, options.Now),
		invitations: &auth.Invitations{Store: s, Passwords: passwords, Now: options.Now},

		mailboxAttempts: auth.NewThrottle(options.Now),
		letters:         newAllowance(lettersAtOnce, letterInterval, options.Now),
		teamLetters:     newAllowance(teamLettersAtOnce, teamLetterInterval, options.Now),
		logouts:         auth.NewThrottle(options.Now),
		resets:          auth.NewThrottle(options.Now),
		userLetters:     newAllowance(userLettersAtOnce, userLetterInterval, options.Now),
		posted:          make(chan posting, maxPosted),
		tests:           newAllowance(testsAtOnce, testInterval, options.Now),
		watching:        fair.New[watched](fair.Options{PerKey: 1}),
		advice:          &adviceCache{known: cache.New[adviceKey, rememberedAdvice](maxAdvice)},
		checks:          Checks{Checker: options.Checker, ReportDomain: options.ReportDomain, BaseURL: options.BaseURL, Proof: options.DomainProof, Zone: s.Zone},
		examining:       fair.New[dmarcd.TeamID](fair.Options{Capacity: maxExaminations, PerKey: maxTeamExaminations, Waiting: maxTeamExaminations}),
		failedNotes:     rate.NewLimiter(failedNotes, 1),
		webhookTests:    fair.New[dmarcd.WebhookID](fair.Options{PerKey: maxWebhookTests}),
		selfTests:       fair.New[dmarcd.TeamID](fair.Options{PerKey: maxSelfTests}),
	}
}

// Actor is the user, token or operator who acts. The zero value has no rights.
type Actor struct {
	// role is the role in the team.
	role dmarcd.Role
	// token marks a token, operator grants everything, publisher the publishing of managed records.
	token, operator, publisher bool
	// verified means that the user receives mail at their address.
	verified bool
	// local marks the command line, which may see details of the local network.
	local bool
	// grant is checked again by each change, except by those of the command line.
	grant store.Grant
	entry dmarcd.AuditEntry
}

// User is the user of a session with a role in its team, connected from address. Operators may
// also change the installation.
func User(of dmarcd.Session, address string) Actor {
	return Actor{
		role: of.Role, operator: of.User.Operator, publisher: of.Role.Can(dmarcd.RightChange), verified: !of.User.VerifiedAt.IsZero(),
		grant: store.Grant{Session: of.Hash, Operator: of.User.Operator, Role: of.Role},
		entry: dmarcd.AuditEntry{User: of.User.ID, Actor: of.User.Email, Address: address},
	}
}

// Token is a token of the team, used from address. A writing token has the rights of an editor
// and may delete domains; one with the scope admin has those of an owner, but makes no owner. Only one
// with the scope publish publishes managed records.
func Token(id dmarcd.TokenID, scope dmarcd.Scope, address string) Actor {
	role := dmarcd.RoleViewer
	switch scope {
	case dmarcd.ScopeRead, dmarcd.ScopePublish:
	case dmarcd.ScopeWrite:
		role = dmarcd.RoleEditor
	case dmarcd.ScopeAdmin:
		role = dmarcd.RoleOwner
	}
	return Actor{
		role: role, token: true, publisher: scope == dmarcd.ScopePublish, grant: store.Grant{Token: id},
		entry: dmarcd.AuditEntry{Actor: "token " + id.String(), Address: address},
	}
}

// CommandLine is an operator on the command line.
func CommandLine() Actor {
	return Actor{role: dmarcd.RoleOwner, operator: true, publisher: true, local: true, entry: dmarcd.AuditEntry{Actor: "command line"}}
}

// as returns the store with the rights of an actor.
func (s *Service) as(actor Actor) *store.Store {
	if actor.local {
		return s.store
	}
	return s.store.As(actor.grant)
}

// to returns the audit entry of a change.
func (a Actor) to(action, target, detail string) dmarcd.AuditEntry {
	entry := a.entry
	entry.Action, entry.Target, entry.Detail = action, target, detail
	return entry
}

// Team provides the use cases of one team for an actor. It is for one request and cheap to
// create.
type Team struct {
	service *Service
	team    *store.Team
	actor   Actor
	tag     string // see Tagged
}

// Team returns the use cases of a team for an actor.
func (s *Service) Team(id dmarcd.TeamID, actor Actor) *Team {
	return &Team{service: s, team: s.as(actor).Team(id), actor: actor}
}

// may returns dmarcd.ErrForbidden unless the actor has a right in the team.
func (t *Team) may(right dmarcd.Right) error {
	if !t.actor.role.Can(right) {
		return dmarcd.ErrForbidden
	}
	return nil
}

// see reads something of a team for an actor who may see it.
func see[T any](t *Team, read func() (T, error)) (result T, err error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return result, err
	}
	return read()
}

// System provides the use cases of the installation for an actor. It is for one request and
// cheap to create.
type System struct {
	service *Service
	store   *store.Store // with the rights of the actor
	actor   Actor
}

// System returns the use cases of the installation for an actor.
func (s *Service) System(actor Actor) *System {
	actor.grant.Operator = true
	return &System{service: s, store: s.as(actor), actor: actor}
}

// may returns dmarcd.ErrForbidden unless the actor is an operator.
func (s *System) may() error {
	if !s.actor.operator {
		return dmarcd.ErrForbidden
	}
	return nil
}

// operate does something that only operators may.
func operate[T any](s *System, do func() (T, error)) (result T, err error) {
	if err := s.may(); err != nil {
		return result, err
	}
	return do()
}

// Limits of mail and requests that users cause. Without them a tenant could flood a mailbox or a web
// server, and cost the mail relay its reputation.
const (
	// lettersAtOnce is the number of letters of a team to an address; after them, one is sent
	// each letterInterval, because the recipient has not reacted.
	lettersAtOnce  = 3
	letterInterval = 8 * time.Hour
	// teamLettersAtOnce and teamLetterInterval are the same for all letters of a team.
	teamLettersAtOnce  = 30
	teamLetterInterval = time.Minute
	// testsAtOnce and testInterval limit test alerts of a team, and tests and retries of a webhook.
	testsAtOnce  = 10
	testInterval = time.Minute
)

// allowance limits how often something is done for a key. Uses are stored in memory: each process
// counts separately, and a restart clears them. It is safe for concurrent use.
type allowance struct {
	atOnce   int
	interval time.Duration
	now      func() time.Time
	byKey    fair.Buckets[string]
}

func newAllowance(atOnce int, interval time.Duration, now func() time.Time) *allowance {
	return &allowance{atOnce: atOnce, interval: interval, now: now}
}

// take counts a use for a key, or returns a *ThrottledError without counting it.
func (a *allowance) take(key string) error {
	now := a.now()
	use := a.byKey.Of(key, rate.Every(a.interval), a.atOnce, now).ReserveN(now, 1)
	if wait := use.DelayFrom(now); wait > 0 {
		use.CancelAt(now)
		return &ThrottledError{RetryAfter: max(wait.Round(time.Second), time.Second)}
	}
	return nil
}
