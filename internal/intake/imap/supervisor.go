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
	// lease is how long a mailbox stays with a process that died.
	lease = 30 * time.Second
	// superviseEvery is how often leases are renewed and mailboxes claimed: so
	// soon one that was added is read, and one that was removed is not.
	superviseEvery = 3 * time.Second
	// claimAtOnce is how many are claimed in one go.
	claimAtOnce = 100
	// readAgain is how long it waits with a mailbox that cannot even be tried.
	readAgain = time.Minute
	// leaseTimeout bounds a question about leases: a third of them, so that one
	// that failed can be asked again.
	leaseTimeout = lease / 3
	// releaseTimeout bounds the giving back of leases at the end.
	releaseTimeout = 5 * time.Second
)

// Leases decide which process reads a mailbox.
type Leases interface {
	// ClaimMailboxes returns up to limit mailboxes that nobody reads and keeps
	// others from claiming them for as long as the lease.
	ClaimMailboxes(ctx context.Context, lease time.Duration, limit int) ([]dmarcd.Mailbox, error)
	// RenewMailboxes prolongs leases and returns the mailboxes whose lease it
	// could.
	RenewMailboxes(ctx context.Context, held []dmarcd.Mailbox, lease time.Duration) ([]dmarcd.Mailbox, error)
	// ReleaseMailboxes lets others claim them.
	ReleaseMailboxes(ctx context.Context, held []dmarcd.Mailbox) error
}

// Supervisor has every mailbox read that it can get a lease on.
type Supervisor struct {
	Leases Leases
	// Read reads a mailbox until ctx ends. If it returns before that it is called
	// again a while later.
	Read func(ctx context.Context, mailbox dmarcd.Mailbox) error
	Log  *slog.Logger
}

// reading is a mailbox that is being read.
type reading struct {
	mailbox dmarcd.Mailbox // with the lease as it was last renewed
	expires time.Time      // the end of the lease by our own clock
	stop    context.CancelFunc
	done    chan struct{}
}

// Run supervises until ctx ends, and returns when all reading has and the leases
// are given back.
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

// renew prolongs the leases, and ends the reading of what is no longer ours.
func (s *Supervisor) renew(ctx context.Context, held map[dmarcd.MailboxID]*reading) {
	asked := time.Now()
	limited, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	kept, err := s.Leases.RenewMailboxes(limited, mailboxesOf(held), lease)
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("could not renew mailbox leases", "error", err)
	}
	ours := make(map[dmarcd.MailboxID]bool, len(kept))
	for _, m := range kept {
		ours[m.ID] = true
		held[m.ID].mailbox.LeaseUntil, held[m.ID].expires = m.LeaseUntil, asked.Add(lease)
	}
	var lost []*reading
	for id, r := range held {
		// Where the store does not answer a lease holds until shortly before it
		// runs out: by the time we could ask again it may be another's.
		if ours[id] || err != nil && time.Now().Before(r.expires.Add(-leaseTimeout-superviseEvery)) {
			continue
		}
		lost = append(lost, r)
		delete(held, id)
	}
	end(lost)
}

// claim begins to read what nobody reads.
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
				end([]*reading{before}) // its lease ran out unnoticed
			}
			r := &reading{mailbox: m, expires: asked.Add(lease), done: make(chan struct{})}
			var reads context.Context
			reads, r.stop = context.WithCancel(ctx)
			held[m.ID] = r
			go func() {
				defer close(r.done)
				s.keepReading(reads, m)
			}()
		}
		if len(claimed) < claimAtOnce {
			return
		}
	}
}

func (s *Supervisor) keepReading(ctx context.Context, m dmarcd.Mailbox) {
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

// end stops readings, all at once, and waits for them.
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
