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
	"github.com/dmarcd/dmarcd/internal/tempfile"
)

// MailboxStore stores the state of the mailboxes of one team.
type MailboxStore interface {
	SaveMailboxState(ctx context.Context, id dmarcd.MailboxID, uidValidity, lastUID uint32) error
	SaveMailboxStatus(ctx context.Context, id dmarcd.MailboxID, problem string) error
	SaveMailboxSecret(ctx context.Context, id dmarcd.MailboxID, sealed []byte) error
	// CountMailboxCrash counts a crash of the reader. It returns the number since the mailbox
	// was added or resumed.
	CountMailboxCrash(ctx context.Context, id dmarcd.MailboxID) (int, error)
	// PauseMailbox stops the reader until a user resumes it.
	PauseMailbox(ctx context.Context, id dmarcd.MailboxID, reason string) error
}

// Sealer encrypts and decrypts mailbox secrets.
type Sealer interface {
	Seal(plain []byte, context string) ([]byte, error)
	Open(sealed []byte, context string) ([]byte, error)
}

// Service reads the mailboxes of all teams, each in one process.
type Service struct {
	Leases Leases
	// Team returns the store of a team.
	Team   func(dmarcd.TeamID) MailboxStore
	Sealer Sealer
	// Accept stores the messages of a mailbox; see Reader.
	Accept func(ctx context.Context, mailbox dmarcd.Mailbox, messages []Message) error
	// MaxBytes, Interval and Folder are passed to each Reader.
	MaxBytes int64
	Interval time.Duration
	Folder   string
	Log      *slog.Logger

	// Dial and TLS are passed to each Reader.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	TLS  *tls.Config
	// HTTP requests access tokens.
	HTTP *http.Client
	// Recovered reports crashes of readers.
	Recovered recovered.Boundary
}

// Run reads until ctx ends, and returns after the last reader.
func (s *Service) Run(ctx context.Context) error {
	if err := tempfile.RemoveLeftovers(s.Folder); err != nil {
		s.Log.Warn("temporary files not removed", "error", err)
	}
	supervisor := &Supervisor{Leases: s.Leases, Read: s.read, Log: s.Log}
	return supervisor.Run(ctx)
}

// statusTimeout limits the write of a status.
const statusTimeout = 10 * time.Second

// maxCrashes is how often the reader may crash before the mailbox is paused.
const maxCrashes = 2

// read reads a mailbox until ctx ends, or returns an error. A mailbox whose reader crashed is
// paused, or retried by the supervisor.
func (s *Service) read(ctx context.Context, m dmarcd.Mailbox) error {
	err := s.Recovered.Call("mailbox", func() error { return s.readUntil(ctx, m) })
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

// readUntil reads a mailbox until ctx ends, or returns an error.
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

// login decrypts the secret of a mailbox.
func (s *Service) login(m dmarcd.Mailbox, team MailboxStore) (Login, error) {
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

// Login returns the login of the credentials. If the provider replaces the refresh token, save
// stores the new credentials before they are used. A nil client is the default.
func (c Credentials) Login(client *http.Client, save func(context.Context, Credentials) error) Login {
	if c.OAuth == nil {
		return Login{Password: c.Password}
	}
	current := *c.OAuth // a Reader requests one token at a time
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
