package service

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
)

// Challenge is what a browser is asked for a passkey. It works once, for some minutes, and only for what it was
// made for. The zero value is none.
type Challenge struct {
	// Options are for navigator.credentials, in JSON.
	Options string
	// State is sealed, and for the browser to keep from scripts.
	State string
}

// PasskeyAnswer is the answer to a Challenge.
type PasskeyAnswer struct {
	State string
	// Answer is the credential in JSON.
	Answer string
}

// What challenges are sealed for.
const signInContext = "challenge to sign in"

func stepContext(user dmarcd.UserID) string { return "challenge of a second step of " + user.String() }

func (a *Account) proofContext() string {
	return "challenge for a proof of session " + hex.EncodeToString(a.session.Hash[:])
}

func (a *Account) enrolContext() string {
	return "challenge for a new passkey of session " + hex.EncodeToString(a.session.Hash[:])
}

// HasPasskeys reports whether passkeys can be used: the base URL must have a host name and https, or localhost.
func (s *Service) HasPasskeys() bool { return s.passkeys != nil }

// sealed seals something for the browser, bound to a context.
func (s *Service) sealed(plain []byte, context string) (string, error) {
	sealed, err := s.options.Secrets.Seal(plain, context)
	return base64.RawURLEncoding.EncodeToString(sealed), err
}

// opened opens the result of sealed; anything else is an error.
func (s *Service) opened(text, context string) ([]byte, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	return s.options.Secrets.Open(sealed, context)
}

func (s *Service) challenge(context string, ask func() (auth.Challenge, error)) (Challenge, error) {
	made, err := ask()
	if err != nil {
		return Challenge{}, err
	}
	state, err := s.sealed(made.State, context)
	return Challenge{made.Options, state}, err
}

// PasskeySignIn returns a challenge to sign in with a passkey alone, none where passkeys cannot be used.
func (s *Service) PasskeySignIn() (Challenge, error) {
	if s.passkeys == nil {
		return Challenge{}, nil
	}
	return s.challenge(signInContext, s.passkeys.AskAnybody)
}

// SignInWithPasskey returns the secret of a new session. Anything but a passkey of a user that has verified them is
// dmarcd.ErrUnauthorized, too many attempts are dmarcd.ErrLimit.
func (s *Service) SignInWithPasskey(ctx context.Context, answer PasskeyAnswer, client Client) (session string, err error) {
	if err := s.codes.Attempt(client.Address, ""); err != nil {
		return "", err
	}
	user, err := s.answered(ctx, answer, signInContext, client)
	if errors.Is(err, dmarcd.ErrUnauthorized) {
		s.noteFailed(ctx, dmarcd.AuditEntry{Actor: "unknown", Target: user.Email, Detail: "passkey", Address: client.Address})
	}
	if err != nil {
		return "", err
	}
	s.codes.Succeeded(client.Address, "")
	of := user.SignIn
	of.Strong, of.ProvedAt = true, s.options.Now() // what one has, and what one knows or is
	return s.begin(ctx, s.sessions, of, client, "passkey")
}

// answered uses a challenge up, and returns the user whose passkey answered it. Any other answer is
// dmarcd.ErrUnauthorized. So is that of a passkey of which there may be a copy; that is in the audit log of the
// installation.
func (s *Service) answered(ctx context.Context, answer PasskeyAnswer, of string, client Client) (dmarcd.Factors, error) {
	if s.passkeys == nil {
		return dmarcd.Factors{}, dmarcd.ErrUnauthorized
	}
	state, err := s.opened(answer.State, of)
	if err != nil {
		return dmarcd.Factors{}, fmt.Errorf("%w: the challenge is not for this: %w", dmarcd.ErrUnauthorized, err)
	}
	a, err := s.passkeys.Answered(func(id dmarcd.UserID) (dmarcd.Factors, error) {
		found, err := s.store.Factors(ctx, id)
		if errors.Is(err, dmarcd.ErrNotFound) {
			err = dmarcd.ErrUnauthorized
		}
		return found, err
	}, state, answer.Answer)
	if err != nil {
		return a.User, err
	}
	if a.Copied {
		return a.User, errors.Join(dmarcd.ErrUnauthorized, s.store.Note(context.WithoutCancel(ctx), dmarcd.AuditEntry{
			User: a.User.ID, Actor: a.User.Email, Action: "user.passkey_copied", Target: a.User.Email, Detail: a.Passkey.Name, Address: client.Address,
		}))
	}
	return a.User, s.store.UsePasskey(ctx, a.User.ID, a.Passkey, a.MadeAt)
}

// provePasskey proves who a user is, as proveCode.
func (s *Service) provePasskey(ctx context.Context, f dmarcd.Factors, answer PasskeyAnswer, of string, client Client) error {
	if err := s.codes.Attempt(client.Address, f.Email); err != nil {
		return err
	}
	_, err := s.answered(ctx, answer, of, client) // of names the user or the session
	if err == nil {
		s.codes.Succeeded(client.Address, f.Email)
	}
	return err
}

// ask returns a challenge for the passkeys of a user, none for one without any.
func (s *Service) ask(f dmarcd.Factors, verified bool, of string) (Challenge, error) {
	if s.passkeys == nil || len(f.Passkeys) == 0 {
		return Challenge{}, nil
	}
	return s.challenge(of, func() (auth.Challenge, error) { return s.passkeys.Ask(f, verified) })
}

// SecondStepPasskey returns a challenge for Service.FinishSignIn, none for a user without passkeys. f is of
// Service.FirstStep.
func (s *Service) SecondStepPasskey(f dmarcd.Factors) (Challenge, error) {
	return s.ask(f, false, stepContext(f.ID))
}

// AskPasskey returns a challenge for Account.Prove, none for a user without passkeys. Who has no password has to be
// verified by the authenticator.
func (a *Account) AskPasskey(f dmarcd.Factors) (Challenge, error) {
	return a.service.ask(f, !f.Password, a.proofContext())
}

// NewPasskey returns a challenge for Account.AddPasskey. It is dmarcd.ErrNotFound where passkeys cannot be used.
func (a *Account) NewPasskey(ctx context.Context) (Challenge, error) {
	if a.service.passkeys == nil {
		return Challenge{}, dmarcd.ErrNotFound
	}
	factors, err := a.Factors(ctx)
	if err != nil {
		return Challenge{}, err
	}
	return a.service.challenge(a.enrolContext(), func() (auth.Challenge, error) { return a.service.passkeys.Create(factors) })
}

// AddPasskey adds a passkey with a name, and ends all other sessions. With the first second factor it returns new
// recovery codes, which are not shown again. A wrong answer is an *dmarcd.InvalidError.
func (a *Account) AddPasskey(ctx context.Context, name string, answer PasskeyAnswer) (codes []string, err error) {
	if a.service.passkeys == nil {
		return nil, dmarcd.ErrNotFound
	}
	if name, err = dmarcd.ParseUserName(name); err != nil {
		return nil, err
	}
	if name == "" {
		name = "Passkey"
	}
	wrong := &dmarcd.InvalidError{Message: "The passkey was not added: the request took too long, was used before, or is of another session. Try again."}
	state, err := a.service.opened(answer.State, a.enrolContext())
	if err != nil {
		return nil, wrong
	}
	factors, err := a.Factors(ctx)
	if err != nil {
		return nil, err
	}
	passkey, madeAt, err := a.service.passkeys.Created(factors, state, answer.Answer)
	if errors.Is(err, dmarcd.ErrUnauthorized) {
		return nil, wrong
	}
	if err != nil {
		return nil, err
	}
	passkey.Name = name
	codes, hashes := auth.NewRecoveryCodes()
	first, err := a.store.AddPasskey(ctx, a.User.ID, passkey, madeAt, hashes, a.session.Hash, a.to("user.passkey", "added "+name))
	if errors.Is(err, dmarcd.ErrConflict) {
		return nil, wrong
	}
	if a.notifyFactor(ctx, "A passkey was added", err) != nil || !first {
		return nil, err
	}
	return codes, nil
}

// RemovePasskey removes a passkey, and ends all other sessions. One of another user is dmarcd.ErrNotFound.
func (a *Account) RemovePasskey(ctx context.Context, id dmarcd.PasskeyID) error {
	err := a.store.RemovePasskey(ctx, a.User.ID, id, a.session.Hash, a.to("user.passkey", "removed"))
	return a.notifyFactor(ctx, "A passkey was removed", err)
}
