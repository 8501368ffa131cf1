package imap

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
)

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
