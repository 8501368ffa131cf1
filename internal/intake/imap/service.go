package imap

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
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

// maxCrashes is the number of crashes of the reader after which the mailbox is paused.
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

const (
	// lease is how long a mailbox stays claimed after its process has died.
	lease = 30 * time.Second
	// superviseEvery is how often leases are renewed and mailboxes claimed. It is the delay
	// for added and removed mailboxes.
	superviseEvery = 3 * time.Second
	// claimAtOnce limits the mailboxes per claim.
	claimAtOnce = 100
	// readAgain is the delay after a reader that ended.
	readAgain = time.Minute
	// leaseTimeout limits a store call, so that it can be retried before the lease expires.
	leaseTimeout = lease / 3
	// releaseTimeout limits the release of leases at the end.
	releaseTimeout = 5 * time.Second
)

// Leases decides which process reads a mailbox.
type Leases interface {
	// ClaimMailboxes returns up to limit unclaimed mailboxes, and claims them for the duration
	// of the lease; none if all are claimed.
	ClaimMailboxes(ctx context.Context, lease time.Duration, limit int) ([]dmarcd.Mailbox, error)
	// RenewMailboxes extends leases, and returns the mailboxes that are still held.
	RenewMailboxes(ctx context.Context, held []dmarcd.Mailbox, lease time.Duration) ([]dmarcd.Mailbox, error)
	// ReleaseMailboxes ends leases.
	ReleaseMailboxes(ctx context.Context, held []dmarcd.Mailbox) error
}

// Supervisor reads every mailbox that it can lease.
type Supervisor struct {
	Leases Leases
	// Read reads a mailbox until ctx ends. If it returns earlier it is called again later.
	Read func(ctx context.Context, mailbox dmarcd.Mailbox) error
	Log  *slog.Logger
}

type reading struct {
	mailbox dmarcd.Mailbox // with its current lease
	expires time.Time      // end of the lease by the local clock
	stop    context.CancelFunc
	done    chan struct{}
}

// Run supervises until ctx ends. It returns after all readers have ended and the leases are
// released.
func (s *Supervisor) Run(ctx context.Context) error {
	held := map[dmarcd.MailboxID]*reading{}
	defer func() {
		mailboxes := mailboxesOf(held)
		end(slices.Collect(maps.Values(held)))
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		if err := s.Leases.ReleaseMailboxes(ctx, mailboxes); err != nil {
			s.Log.Warn("could not release mailboxes", "error", err) // the leases expire
		}
	}()
	ticker := time.NewTicker(superviseEvery)
	defer ticker.Stop()
	for {
		s.renew(ctx, held)
		s.claim(ctx, held)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// renew extends the leases, and stops readers whose lease is lost.
func (s *Supervisor) renew(ctx context.Context, held map[dmarcd.MailboxID]*reading) {
	asked := time.Now()
	limited, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	renewed, err := s.Leases.RenewMailboxes(limited, mailboxesOf(held), lease)
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("could not renew mailbox leases", "error", err)
	}
	ours := make(map[dmarcd.MailboxID]bool, len(renewed))
	for _, m := range renewed {
		ours[m.ID] = true
		held[m.ID].mailbox.LeaseUntil, held[m.ID].expires = m.LeaseUntil, asked.Add(lease)
	}
	var lost []*reading
	for id, r := range held {
		// If the store fails, a lease is used until shortly before it expires: by the next
		// attempt another process may hold it.
		if ours[id] || err != nil && time.Now().Before(r.expires.Add(-leaseTimeout-superviseEvery)) {
			continue
		}
		lost = append(lost, r)
		delete(held, id)
	}
	end(lost)
}

// claim starts readers for unclaimed mailboxes.
func (s *Supervisor) claim(ctx context.Context, held map[dmarcd.MailboxID]*reading) {
	for {
		asked := time.Now()
		limited, cancel := context.WithTimeout(ctx, leaseTimeout)
		claimed, err := s.Leases.ClaimMailboxes(limited, lease, claimAtOnce)
		cancel()
		if err != nil {
			if ctx.Err() == nil {
				s.Log.Warn("could not claim mailboxes", "error", err)
			}
			return
		}
		for _, m := range claimed {
			if before := held[m.ID]; before != nil {
				end([]*reading{before}) // its lease expired unnoticed
			}
			r := &reading{mailbox: m, expires: asked.Add(lease), done: make(chan struct{})}
			var reads context.Context
			reads, r.stop = context.WithCancel(ctx)
			held[m.ID] = r
			go func() {
				defer close(r.done)
				s.readAlways(reads, m)
			}()
		}
		if len(claimed) == 0 {
			return
		}
	}
}

func (s *Supervisor) readAlways(ctx context.Context, m dmarcd.Mailbox) {
	for {
		err := s.Read(ctx, m)
		if ctx.Err() != nil {
			return
		}
		s.Log.Warn("could not start mailbox", "mailbox", m.ID, "team", m.Team, "error", err)
		timer := time.NewTimer(readAgain)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// end stops readers in parallel, and waits for them.
func end(readings []*reading) {
	for _, r := range readings {
		r.stop()
	}
	for _, r := range readings {
		<-r.done
	}
}

func mailboxesOf(held map[dmarcd.MailboxID]*reading) []dmarcd.Mailbox {
	var mailboxes []dmarcd.Mailbox
	for _, r := range held {
		mailboxes = append(mailboxes, r.mailbox)
	}
	return mailboxes
}
