package service

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/store"
)

// Client is the browser of a request.
type Client struct {
	Address, UserAgent string
	// Session is the secret of its session, or "". A new session replaces it.
	Session string
	// Browser is the secret that recognizes it.
	Browser string
}

// SignIn returns the secret of a new session. A wrong email or password is
// dmarcd.ErrUnauthorized, too many attempts are dmarcd.ErrLimit. All are written to the audit log
// of the installation. A user with a second factor is a *SecondStep, also from the other ways to begin a
// session.
func (s *Service) SignIn(ctx context.Context, email, password string, client Client) (session string, err error) {
	of, err := s.passwords.User(ctx, email, password, client.Address)
	if errors.Is(err, dmarcd.ErrUnauthorized) || errors.Is(err, dmarcd.ErrLimit) {
		detail := "password"
		if errors.Is(err, dmarcd.ErrLimit) {
			detail = "too many attempts"
		}
		email, _ = dmarcd.ParseEmail(email) // anything else may be a password
		s.noteFailed(ctx, dmarcd.AuditEntry{Actor: "unknown", Target: email, Detail: detail, Address: client.Address})
	}
	if err != nil {
		return "", err
	}
	return s.begin(ctx, s.sessions, of, client, "password")
}

// failedNotes is how many failed sign-ins are written to the audit log, per second: an attacker
// must not push out the other entries.
const failedNotes = 1

// noteFailed writes an entry about a failed sign-in, unless there were too many. A client cannot
// avoid it by disconnecting.
func (s *Service) noteFailed(ctx context.Context, entry dmarcd.AuditEntry) {
	if !s.failedNotes.AllowN(s.options.Now(), 1) {
		return
	}
	entry.Action = "user.login_failed"
	if err := s.store.Note(context.WithoutCancel(ctx), entry); err != nil {
		s.options.Log.ErrorContext(ctx, "audit entry not written", "error", err)
	}
}

// begin begins a session; means is how the user was authenticated.
func (s *Service) begin(ctx context.Context, sessions *auth.Sessions, of dmarcd.SignIn, client Client, means string) (session string, err error) {
	if !of.Strong {
		factors, err := s.store.Factors(ctx, of.ID)
		if err != nil {
			return "", err
		}
		if factors.SecondFactor {
			return "", s.newSecondStep(of)
		}
	}
	session, err = sessions.Begin(ctx, of, auth.Client{Address: client.Address, UserAgent: client.UserAgent}, client.Session, dmarcd.AuditEntry{
		Action: "user.login", Detail: means, Address: client.Address,
	})
	if err == nil {
		s.noticeSignIn(ctx, of.ID, client, means)
	}
	return session, err
}

// SignOut ends the session of the client. An ended one is no error.
func (s *Service) SignOut(ctx context.Context, client Client) error {
	session, err := s.sessions.Resolve(ctx, client.Session)
	if errors.Is(err, dmarcd.ErrUnauthorized) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.store.EndSession(ctx, session.Hash, User(session, client.Address).to("user.logout", session.User.Email, ""))
}

// SingleSignOn reports whether users can sign in with an identity provider.
func (s *Service) SingleSignOn() bool { return s.options.OIDC != nil }

// BeginSingleSignOn returns the URL to redirect to, and the state for the browser to keep.
// next is the page to return to.
func (s *Service) BeginSingleSignOn(ctx context.Context, next string) (location, state string, err error) {
	if s.options.OIDC == nil {
		return "", "", dmarcd.ErrNotFound
	}
	return s.options.OIDC.Begin(ctx, next)
}

// FinishSingleSignOn verifies the state and the provider's answer, and returns the secret of a
// new session and the page to go to. dmarcd.ErrUnauthorized means that the provider rejected
// the request or the state is unknown, dmarcd.ErrForbidden that the address is not verified,
// dmarcd.ErrNotFound that the user is not invited.
func (s *Service) FinishSingleSignOn(ctx context.Context, state string, answer url.Values, client Client) (session, next string, err error) {
	if s.options.OIDC == nil {
		return "", "", dmarcd.ErrNotFound
	}
	of, next, err := s.options.OIDC.Finish(ctx, state, answer)
	switch {
	case errors.Is(err, dmarcd.ErrForbidden), errors.Is(err, dmarcd.ErrNotFound):
		s.noteFailed(ctx, dmarcd.AuditEntry{Actor: "unknown", Detail: "identity provider: not verified or not invited", Address: client.Address})
	case errors.Is(err, dmarcd.ErrUnauthorized):
		s.noteFailed(ctx, dmarcd.AuditEntry{Actor: "unknown", Detail: "identity provider: not confirmed", Address: client.Address})
	}
	if err != nil {
		return "", "", err
	}
	if next == auth.ProvedPath {
		return client.Session, next, s.proveByProvider(ctx, of, client)
	}
	session, err = s.begin(ctx, s.sessions, of, client, "identity provider")
	return session, next, err
}

// EndProviderSessions ends the sessions that a logout token of the identity provider is about. One that is not valid or
// was used before is dmarcd.ErrUnauthorized, too many of them are dmarcd.ErrLimit.
func (s *Service) EndProviderSessions(ctx context.Context, token string, client Client) error {
	if s.options.OIDC == nil {
		return dmarcd.ErrNotFound
	}
	// A token with an unknown key has the keys of the provider fetched.
	if err := s.logouts.Attempt(client.Address, ""); err != nil {
		return err
	}
	logout, err := s.options.OIDC.Logout(ctx, token)
	if err != nil {
		return err
	}
	s.logouts.Succeeded(client.Address, "")
	err = s.store.EndProviderSessions(ctx, logout, dmarcd.AuditEntry{Action: "session.end", Detail: "signed out at the identity provider", Address: client.Address})
	if errors.Is(err, dmarcd.ErrConflict) {
		return fmt.Errorf("%w: the logout token was used before", dmarcd.ErrUnauthorized)
	}
	return err
}

// Account is a signed-in user with the selected team. It is for one request.
type Account struct {
	User dmarcd.User
	// Team is the selected team, zero for a user without a team; Role is the user's role in
	// it.
	Team dmarcd.Team
	Role dmarcd.Role
	// Teams are the teams that the user can select, by name.
	Teams []dmarcd.Team

	service *Service
	store   *store.Store // with the rights of the user
	session dmarcd.Session
	client  Client
	// memberships are by name of the team.
	memberships []dmarcd.Membership
}

// Account returns the user of the client's session, or dmarcd.ErrUnauthorized.
func (s *Service) Account(ctx context.Context, client Client) (*Account, error) {
	session, err := s.sessions.Resolve(ctx, client.Session)
	if err != nil {
		return nil, err
	}
	memberships, err := s.store.Memberships(ctx, session.User.ID)
	if err != nil {
		return nil, err
	}
	account := &Account{User: session.User, Team: session.Team, Role: session.Role, service: s, session: session, client: client, memberships: memberships}
	account.store = s.store.As(store.Grant{Session: session.Hash})
	if account.Team.ID == 0 {
		if err := account.selectFirst(ctx, memberships); err != nil {
			return nil, err
		}
	}
	for _, m := range memberships {
		account.Teams = append(account.Teams, m.Team)
	}
	// Operators may see teams that they are not members of.
	chosen := func(team dmarcd.Team) bool { return team.ID == account.Team.ID }
	if account.Team.ID != 0 && !slices.ContainsFunc(account.Teams, chosen) {
		account.Teams = append(account.Teams, account.Team)
	}
	return account, nil
}

// selectFirst selects the first team that the user may see: for operators, and for users who
// were removed from the selected team.
func (a *Account) selectFirst(ctx context.Context, memberships []dmarcd.Membership) error {
	var first dmarcd.Membership
	switch {
	case len(memberships) > 0:
		first = memberships[0]
	case a.User.Operator:
		teams, err := a.service.store.Teams(ctx)
		if err != nil || len(teams) == 0 {
			return err
		}
		first = dmarcd.Membership{Team: teams[0]}
	default:
		return nil
	}
	if a.User.Operator {
		first.Role = dmarcd.RoleOwner
	}
	if err := a.service.store.SelectTeam(ctx, a.session.Hash, first.Team.ID); err != nil {
		return err
	}
	a.Team, a.Role = first.Team, first.Role
	a.session.Team, a.session.Role = first.Team, first.Role
	return nil
}

func (a *Account) actor() Actor { return User(a.session, a.client.Address) }

// InTeam returns the use cases of the selected team.
func (a *Account) InTeam() *Team { return a.service.Team(a.Team.ID, a.actor()) }

// System returns the use cases of the installation.
func (a *Account) System() *System { return a.service.System(a.actor()) }

// SelectTeam selects another team. One that the user may not see is dmarcd.ErrNotFound.
func (a *Account) SelectTeam(ctx context.Context, team dmarcd.TeamID) error {
	return a.store.SelectTeam(ctx, a.session.Hash, team)
}

// AccountSession is a session of the user.
type AccountSession struct {
	dmarcd.Session
	// ID is derived from the hash, which grants nothing.
	ID string
	// Here marks the session of this request.
	Here bool
}

// Sessions returns the sessions of the user, last used first.
func (a *Account) Sessions(ctx context.Context) ([]AccountSession, error) {
	found, err := a.service.store.Sessions(ctx, a.User.ID)
	now := a.service.options.Now()
	var sessions []AccountSession
	for _, session := range found {
		if session.Valid(now) { // expired ones are not purged yet
			sessions = append(sessions, AccountSession{
				Session: session, ID: hex.EncodeToString(session.Hash[:]), Here: session.Hash == a.session.Hash,
			})
		}
	}
	return sessions, err
}

// to returns the audit entry of a change to the account. It belongs to the installation, as
// users belong to no team.
func (a *Account) to(action, detail string) dmarcd.AuditEntry {
	return a.actor().to(action, a.User.Email, detail)
}

// SetName sets the user's name, "" for none.
func (a *Account) SetName(ctx context.Context, name string) error {
	return a.store.SetUserName(ctx, a.User.ID, name, a.to("user.name", ""))
}

// SetPassword changes the password and ends all other sessions. A wrong current password is
// dmarcd.ErrUnauthorized, too many attempts are dmarcd.ErrLimit, a user without a password is
// dmarcd.ErrForbidden.
func (a *Account) SetPassword(ctx context.Context, current, next string) error {
	of, hash, err := a.service.passwords.Next(ctx, a.User, current, next, a.client.Address)
	if err == nil {
		err = a.store.SetPassword(ctx, of, hash, a.session.Hash, a.to("user.password", ""))
	}
	if err == nil {
		a.service.notifyPassword(ctx, a.User.Email, a.client)
	}
	if errors.Is(err, dmarcd.ErrUnauthorized) {
		a.service.noteFailed(ctx, a.to("", "change of the password"))
	}
	return err
}

// EndSession ends one of the user's own sessions. Any other is dmarcd.ErrNotFound.
func (a *Account) EndSession(ctx context.Context, id string) error {
	sessions, err := a.Sessions(ctx)
	if err != nil {
		return err
	}
	for _, session := range sessions {
		if session.ID == id {
			return a.store.EndSession(ctx, session.Hash, a.to("session.end", "session from "+session.Address))
		}
	}
	return dmarcd.ErrNotFound
}

// EndOtherSessions ends all sessions of the user except this one.
func (a *Account) EndOtherSessions(ctx context.Context) error {
	return a.store.EndSessions(ctx, a.User.ID, a.session.Hash, a.to("session.end", "all other sessions"))
}

// Invitation describes a one-time link.
type Invitation struct {
	// Email is "" if the user chooses it.
	Email string
	// Team is the team to join, "" for none, with Role.
	Team string
	Role dmarcd.Role
	// Known means that a user with this address exists.
	Known bool
	// SignedIn is the address of the signed-in user, "" for none.
	SignedIn string
	// SignInFirst means that the user must sign in before accepting: the link does not open an
	// existing account.
	SignInFirst bool
}

// Invitation describes a link. An unknown, used or expired one is dmarcd.ErrNotFound. It does
// not use it up.
func (s *Service) Invitation(ctx context.Context, link string, client Client) (Invitation, error) {
	stored, err := s.invitations.Find(ctx, link)
	if err != nil {
		return Invitation{}, err
	}
	invitation := Invitation{Email: stored.Email, Role: stored.Role}
	if stored.Team != 0 {
		team, err := s.store.TeamByID(ctx, stored.Team)
		if err != nil {
			return Invitation{}, err
		}
		invitation.Team = team.Name
	}
	present, err := s.signedIn(ctx, client)
	if err != nil {
		return Invitation{}, err
	}
	invitation.SignedIn = present.User.Email
	if stored.Email == "" {
		return invitation, nil
	}
	switch _, err := s.store.UserByEmail(ctx, stored.Email); {
	case err == nil:
		invitation.Known = true
		invitation.SignInFirst = stored.FromTeam() && present.User.ID == 0 // see dmarcd.Invitation
	case !errors.Is(err, dmarcd.ErrNotFound):
		return Invitation{}, err
	}
	return invitation, nil
}

// signedIn returns the client's session, zero for none.
func (s *Service) signedIn(ctx context.Context, client Client) (dmarcd.Session, error) {
	session, err := s.sessions.Resolve(ctx, client.Session)
	if errors.Is(err, dmarcd.ErrUnauthorized) {
		return dmarcd.Session{}, nil
	}
	return session, err
}

// NewAccount is the form of a user who accepts an invitation.
type NewAccount struct{ Email, Name, Password string }

// AcceptInvitation uses up a link, and returns the secret of a new session in its team. Its
// errors are those of auth.Invitations.Accept.
func (s *Service) AcceptInvitation(ctx context.Context, link string, account NewAccount, client Client) (session string, err error) {
	stored, err := s.invitations.Find(ctx, link)
	if err != nil {
		return "", err
	}
	present, err := s.signedIn(ctx, client)
	if err != nil {
		return "", err
	}
	entry := dmarcd.AuditEntry{Action: "user.join", Address: client.Address}
	if stored.Team != 0 {
		entry.Action, entry.Detail = "member.join", string(stored.Role)
	}
	invitations, sessions := *s.invitations, s.sessions
	if present.User.ID != 0 { // the session is what the rest depends on
		acting := s.store.As(store.Grant{Session: present.Hash})
		invitations.Store, sessions = acting, auth.NewSessions(acting, s.options.Now, s.options.Log)
	}
	of, err := invitations.Accept(ctx, link, auth.Answer{
		SignedIn: present.User.ID, Email: account.Email, Name: account.Name, Password: account.Password,
	}, entry)
	if err != nil {
		return "", err
	}
	of.ProvedAt = s.options.Now() // the link proves the address, or the password was just set
	if present.User.ID != 0 {
		of.Strong, of.ProvedAt = true, present.ProvedAt
	}
	if session, err = s.begin(ctx, sessions, of, client, "invitation"); err != nil || stored.Team == 0 {
		return session, err
	}
	begun, err := s.sessions.Resolve(ctx, session)
	if err != nil {
		return "", err
	}
	return session, s.store.SelectTeam(ctx, begun.Hash, stored.Team)
}
