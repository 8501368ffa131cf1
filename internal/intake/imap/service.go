package imap

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

// Keeper keeps what is learnt about the mailboxes of one team.
type Keeper interface {
	SaveMailboxState(ctx context.Context, id dmarcd.MailboxID, uidValidity, lastUID uint32) error
	SaveMailboxStatus(ctx context.Context, id dmarcd.MailboxID, problem string) error
	SaveMailboxSecret(ctx context.Context, id dmarcd.MailboxID, sealed []byte) error
	// CountMailboxCrash counts a crash of the reader, and returns how many there were
	// since the mailbox was added or resumed.
	CountMailboxCrash(ctx context.Context, id dmarcd.MailboxID) (int, error)
	// PauseMailbox stops the reading until a user resumes it.
	PauseMailbox(ctx context.Context, id dmarcd.MailboxID, reason string) error
}

// Sealer seals and opens the secrets of mailboxes.
type Sealer interface {
	Seal(plain []byte, context string) ([]byte, error)
	Open(sealed []byte, context string) ([]byte, error)
}

// Service reads the mailboxes of all teams that no other process reads.
type Service struct {
	Leases Leases
	// Team returns the view of a team.
	Team   func(dmarcd.TeamID) Keeper
	Sealer Sealer
	// Accept keeps what messages of a mailbox bring; see Reader.
	Accept func(ctx context.Context, mailbox dmarcd.Mailbox, messages []Message) error
	// MaxBytes, Interval and Folder are those of Reader.
	MaxBytes int64
	Interval time.Duration
	Folder   string
	Log      *slog.Logger

	// Dial and TLS are those of Reader.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	TLS  *tls.Config
	// HTTP asks for access tokens.
	HTTP *http.Client
	// Panics receives the crashes of readers.
	Panics recovered.Boundary
}

// Run reads until ctx ends, and returns when the last reader has.
func (s *Service) Run(ctx context.Context) error {
	supervisor := &Supervisor{Leases: s.Leases, Read: s.read, Log: s.Log}
	return supervisor.Run(ctx)
}

// statusTimeout bounds the writing of a status.
const statusTimeout = 10 * time.Second

// maxCrashes is how often the reader of a mailbox may crash before the mailbox is
// paused.
const maxCrashes = 2

// read reads one mailbox until ctx ends, or returns why it cannot. A mailbox whose
// reader has crashed is paused, or is read again later by the supervisor.
func (s *Service) read(ctx context.Context, m dmarcd.Mailbox) error {
	err := s.Panics.Call("mailbox", func() error { return s.readUntil(ctx, m) })
	if !recovered.Is(err) {
		return err
	}
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), statusTimeout)
	defer cancel()
	team := s.Team(m.Team)
	crashes, failed := team.CountMailboxCrash(saving, m.ID)
	switch {
	case failed != nil:
	case crashes < maxCrashes:
		failed = team.SaveMailboxStatus(saving, m.ID, "Reading this mailbox caused an internal error. It is tried once more.")
	default:
		failed = team.PauseMailbox(saving, m.ID, "Paused: reading this mailbox caused an internal error twice. "+
			"The cause is in the log of the daemon. Resume the mailbox once it is fixed.")
	}
	return errors.Join(err, failed)
}

// readUntil reads one mailbox until ctx ends, or returns why it cannot.
func (s *Service) readUntil(ctx context.Context, m dmarcd.Mailbox) error {
	team := s.Team(m.Team)
	status := func(ctx context.Context, err error) {
		problem := ""
		if err != nil {
			problem = err.Error()
		}
		ctx, cancel := context.WithTimeout(ctx, statusTimeout)
		defer cancel()
		err = team.SaveMailboxStatus(ctx, m.ID, problem)
		if err != nil && ctx.Err() == nil && !errors.Is(err, dmarcd.ErrNotFound) {
			s.Log.Warn("could not save mailbox status", "mailbox", m.ID, "team", m.Team, "error", err)
		}
	}
	login, err := s.login(m, team)
	if err != nil {
		status(ctx, err)
		return err
	}
	reader := &Reader{
		Mailbox: m, Login: login, MaxBytes: s.MaxBytes, Interval: s.Interval, Folder: s.Folder,
		Accept: func(ctx context.Context, messages []Message) error { return s.Accept(ctx, m, messages) },
		SaveState: func(ctx context.Context, state State) error {
			return team.SaveMailboxState(ctx, m.ID, state.UIDValidity, state.LastUID)
		},
		Status: status, Log: s.Log, Dial: s.Dial, TLS: s.TLS,
	}
	return reader.Run(ctx)
}

// login opens the secret of a mailbox.
func (s *Service) login(m dmarcd.Mailbox, team Keeper) (Login, error) {
	opened, err := s.Sealer.Open(m.Secret, m.SecretContext())
	if err != nil {
		return Login{}, err
	}
	credentials, err := DecodeCredentials(opened)
	if err != nil {
		return Login{}, err
	}
	return credentials.Login(s.HTTP, func(ctx context.Context, renewed Credentials) error {
		sealed, err := s.Sealer.Seal(renewed.Encode(), m.SecretContext())
		if err == nil {
			err = team.SaveMailboxSecret(ctx, m.ID, sealed)
		}
		if err != nil {
			return fmt.Errorf("save the new refresh token of a mailbox: %w", err)
		}
		return nil
	}), nil
}

// Login returns the login with the credentials. Where the provider exchanges the
// refresh token, save is given the credentials to keep instead, before they are
// used. A nil client is the default one.
func (c Credentials) Login(client *http.Client, save func(context.Context, Credentials) error) Login {
	if c.OAuth == nil {
		return Login{Password: c.Password}
	}
	current := *c.OAuth // a Reader asks for one token at a time
	return Login{Token: func(ctx context.Context) (string, error) {
		access, renewed, err := current.Token(ctx, client)
		if err != nil {
			return "", err
		}
		if renewed.RefreshToken != current.RefreshToken {
			if err := save(ctx, Credentials{OAuth: &renewed}); err != nil {
				return "", err
			}
			current = renewed
		}
		return access, nil
	}}
}
