package service

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/notify/mail"
)

// SecondStep is the error of a sign-in that needs a second factor, too. State is for
// Service.FinishSignIn.
type SecondStep struct{ State string }

func (e *SecondStep) Error() string { return "the sign-in needs a second factor" }

// ProvedPath is the page that a sign-in with the identity provider leads to if it only proves who the user is.
const ProvedPath = auth.ProvedPath

// secondStepLife is how long the second step of a sign-in may take.
const secondStepLife = 10 * time.Minute

// secondStepContext is what the state of a sign-in is sealed for.
const secondStepContext = "second step of a sign-in"

// secondStep is the state of a sign-in, which is sealed, so that any replica can continue.
type secondStep struct {
	User dmarcd.UserID
	// Password is the hash of the password hash: another password ends the sign-in.
	Password [sha256.Size]byte
	Expires  int64
	// ProviderSession is that of the sign-in.
	ProviderSession string
}

// newSecondStep returns a *SecondStep.
func (s *Service) newSecondStep(of dmarcd.SignIn) error {
	plain, err := json.Marshal(secondStep{of.ID, sha256.Sum256([]byte(of.PasswordHash)), s.options.Now().Add(secondStepLife).Unix(), of.ProviderSession}) //nolint:gosec // a hash, which is sealed
	if err != nil {
		return fmt.Errorf("encode the sign-in: %w", err)
	}
	state, err := s.sealed(plain, secondStepContext)
	if err != nil {
		return err
	}
	return &SecondStep{state}
}

// FirstStep returns what the user of a sign-in that needs a second step signs in with. A state that
// is expired or not ours is dmarcd.ErrNotFound.
func (s *Service) FirstStep(ctx context.Context, state string) (dmarcd.Factors, error) {
	plain, err := s.opened(state, secondStepContext)
	var step secondStep
	if err != nil || json.Unmarshal(plain, &step) != nil || s.options.Now().Unix() >= step.Expires {
		return dmarcd.Factors{}, dmarcd.ErrNotFound
	}
	factors, err := s.store.Factors(ctx, step.User)
	password := sha256.Sum256([]byte(factors.PasswordHash))
	if err == nil && (!factors.SecondFactor || !hmac.Equal(password[:], step.Password[:])) {
		err = dmarcd.ErrNotFound
	}
	factors.ProviderSession = step.ProviderSession
	return factors, err
}

// FinishSignIn returns the secret of a new session after the second step. A wrong proof is
// dmarcd.ErrUnauthorized, too many attempts are dmarcd.ErrLimit; see FirstStep for the state.
func (s *Service) FinishSignIn(ctx context.Context, state string, proof Proof, client Client) (session string, err error) {
	factors, err := s.FirstStep(ctx, state)
	if err != nil {
		return "", err
	}
	means, err := s.prove(ctx, factors, proof, stepContext(factors.ID), client)
	if err != nil {
		return "", err
	}
	of := factors.SignIn
	of.Strong, of.ProvedAt = true, s.options.Now()
	return s.begin(ctx, s.sessions, of, client, means)
}

// Proof is how a user proves who they are. A user with a second factor needs it.
type Proof struct {
	Password string
	// Code is of the authenticator app, or a recovery code.
	Code    string
	Passkey PasskeyAnswer
}

// prove returns what was proved with. It is dmarcd.ErrUnauthorized for a wrong proof, which is written to the audit
// log of the installation, and dmarcd.ErrLimit for too many attempts. of is what a challenge was sealed for.
func (s *Service) prove(ctx context.Context, f dmarcd.Factors, proof Proof, of string, client Client) (means string, err error) {
	switch {
	case proof.Passkey.Answer != "":
		means, err = "passkey", s.provePasskey(ctx, f, proof.Passkey, of, client)
	case f.SecondFactor:
		means, err = "second factor", s.proveCode(ctx, f, proof.Code, client)
	default:
		means = "password"
		_, err = s.passwords.User(ctx, f.Email, proof.Password, client.Address)
	}
	if errors.Is(err, dmarcd.ErrUnauthorized) {
		s.noteFailed(ctx, dmarcd.AuditEntry{Actor: "unknown", Target: f.Email, Detail: means, Address: client.Address})
	}
	return means, err
}

// proveCode uses a code of the authenticator app or a recovery code. It has a throttle of its own: one who
// knows the password could clear that of passwords.
func (s *Service) proveCode(ctx context.Context, f dmarcd.Factors, code string, client Client) error {
	if err := s.codes.Attempt(client.Address, f.Email); err != nil {
		return err
	}
	used := dmarcd.ErrUnauthorized
	if hash, ok := auth.HashRecoveryCode(code); ok {
		used = s.store.UseRecoveryCode(ctx, f.ID, hash, dmarcd.AuditEntry{
			User: f.ID, Actor: f.Email, Action: "user.recovery_code", Target: f.Email, Address: client.Address,
		})
	} else if len(f.TOTP) > 0 {
		secret, err := s.options.Secrets.Open(f.TOTP, f.ID.TOTPContext())
		if err != nil {
			return err
		}
		if period, ok := auth.VerifyTOTP(string(secret), auth.PlainCode(code), s.options.Now()); ok {
			used = s.store.UseTOTP(ctx, f.ID, period)
		}
	}
	if used == nil {
		s.codes.Succeeded(client.Address, f.Email)
	}
	return used
}

// proveByProvider proves who the user of the present session is by a sign-in that has just happened. It is
// dmarcd.ErrUnauthorized for another user, an older sign-in, and a user with a second factor, who needs that.
func (s *Service) proveByProvider(ctx context.Context, of dmarcd.SignIn, client Client) error {
	session, err := s.sessions.Resolve(ctx, client.Session)
	if err != nil && !errors.Is(err, dmarcd.ErrUnauthorized) {
		return err
	}
	if session.User.ID != of.ID || session.User.SecondFactor || s.options.Now().Sub(of.ProvedAt) >= dmarcd.ProofLife {
		s.noteFailed(ctx, dmarcd.AuditEntry{Actor: "unknown", Target: session.User.Email, Detail: "identity provider: no proof of the user of the session", Address: client.Address})
		return fmt.Errorf("%w: the provider did not confirm the user of this session now", dmarcd.ErrUnauthorized)
	}
	return s.store.ProveSession(ctx, session.Hash, of, User(session, client.Address).to("user.proved", session.User.Email, "identity provider"))
}

// Fresh reports whether the user has proved who they are recently enough for sensitive changes.
func (a *Account) Fresh() bool {
	return a.service.options.Now().Sub(a.session.ProvedAt) < dmarcd.ProofLife
}

// Prove proves who the user is, for some time. A wrong proof is dmarcd.ErrUnauthorized, too many attempts are
// dmarcd.ErrLimit.
func (a *Account) Prove(ctx context.Context, proof Proof) error {
	factors, err := a.Factors(ctx)
	if err != nil {
		return err
	}
	means, err := a.service.prove(ctx, factors, proof, a.proofContext(), a.client)
	if err != nil {
		return err
	}
	factors.ProvedAt = a.service.options.Now()
	return a.service.store.ProveSession(ctx, a.session.Hash, factors.SignIn, a.to("user.proved", means))
}

// NeedsFactor reports whether the user has to set up a second factor, before anything else in this team.
func (a *Account) NeedsFactor() bool { return a.needsFactorFor(a.Team) }

func (a *Account) needsFactorFor(team dmarcd.Team) bool {
	return !a.User.SecondFactor && (a.session.FactorRequired || team.SecondFactor)
}

// Factors returns what the user signs in with.
func (a *Account) Factors(ctx context.Context) (dmarcd.Factors, error) {
	return a.service.store.Factors(ctx, a.User.ID)
}

// NewAuthenticator returns what to set up an authenticator app with, and stores nothing. secret is "",
// or one that was returned before.
func (a *Account) NewAuthenticator(secret string) (auth.TOTP, error) {
	return auth.NewTOTP(a.User.Email, secret)
}

// SetAuthenticator sets an authenticator app, of which code is a code, and ends all other sessions. It returns
// new recovery codes, which are not shown again. A wrong code is an *dmarcd.InvalidError.
func (a *Account) SetAuthenticator(ctx context.Context, secret, code string) (codes []string, err error) {
	period, ok := auth.VerifyTOTP(secret, auth.PlainCode(code), a.service.options.Now())
	if !ok {
		return nil, &dmarcd.InvalidError{Field: "code", Message: "The code is incorrect. Enter the one that the app shows now, and check the clock of its device."}
	}
	sealed, err := a.service.options.Secrets.Seal([]byte(secret), a.User.ID.TOTPContext())
	if err != nil {
		return nil, err
	}
	codes, hashes := auth.NewRecoveryCodes()
	err = a.store.SetTOTP(ctx, a.User.ID, sealed, period, hashes, a.session.Hash, a.to("user.authenticator", "set up"))
	return codes, a.notifyFactor(ctx, "An authenticator app was set up", err)
}

// RemoveAuthenticator removes the authenticator app, and ends all other sessions.
func (a *Account) RemoveAuthenticator(ctx context.Context) error {
	err := a.store.RemoveTOTP(ctx, a.User.ID, a.session.Hash, a.to("user.authenticator", "removed"))
	return a.notifyFactor(ctx, "Your authenticator app was removed", err)
}

// RenewRecoveryCodes replaces the recovery codes. Without a second factor it is dmarcd.ErrNotFound.
func (a *Account) RenewRecoveryCodes(ctx context.Context) ([]string, error) {
	codes, hashes := auth.NewRecoveryCodes()
	err := a.store.SetRecoveryCodes(ctx, a.User.ID, hashes, a.to("user.recovery_codes", ""))
	return codes, a.notifyFactor(ctx, "Your recovery codes were replaced", err)
}

// RequireSecondFactor has all members of the team need a second factor, or not.
func (t *Team) RequireSecondFactor(ctx context.Context, required bool) error {
	if err := t.may(dmarcd.RightManage); err != nil {
		return err
	}
	return t.team.RequireSecondFactor(ctx, required, t.actor.to("team.second_factor", "", requiredWord(required)))
}

// RequireSecondFactor has all users need a second factor, or not.
func (s *System) RequireSecondFactor(ctx context.Context, required bool) error {
	if err := s.may(); err != nil {
		return err
	}
	return s.store.RequireSecondFactor(ctx, required, s.actor.to("users.second_factor", "", requiredWord(required)))
}

func requiredWord(required bool) string {
	if required {
		return "required"
	}
	return "optional"
}

// SecondFactorRequired reports whether all users need a second factor.
func (s *System) SecondFactorRequired(ctx context.Context) (bool, error) {
	return operate(s, func() (bool, error) { return s.store.SecondFactorRequired(ctx) })
}

// ResetSecondFactor removes all second factors of a user who lost them, and ends their sessions. A user without
// one is dmarcd.ErrNotFound.
func (s *System) ResetSecondFactor(ctx context.Context, user dmarcd.User) error {
	if err := s.may(); err != nil {
		return err
	}
	err := s.store.ResetFactors(ctx, user.ID, s.actor.to("user.factor_reset", user.Email, ""))
	if err == nil {
		s.service.notifyFactor(ctx, user.Email, "An operator removed your second factors", mail.Browser{At: s.service.options.Now()})
	}
	return err
}
