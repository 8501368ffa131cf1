package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/fair"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/intake/files"
	"github.com/dmarcd/dmarcd/internal/intake/spool"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/shape"
)

// NewAcceptor returns the Acceptor of a configuration.
func NewAcceptor(cfg config.Config, log *slog.Logger) *intake.Acceptor {
	limits := Limits(cfg)
	limits.Containers.Folder = temporaryFolder(cfg)
	return &intake.Acceptor{
		Limits:       limits,
		Disk:         func() error { return enoughDisk(cfg.Data, int64(cfg.Limit.FreeDisk)) },
		RejectForged: cfg.Intake.Forged == config.ForgedReject,
		Encode:       shape.EncodeDetail,
		Recovered:    func(e *recovered.Error) { logPanic(log, e) },
	}
}

// newAcceptor returns the Acceptor of the daemon, which serves many teams and is measured.
func (a *App) newAcceptor(cfg config.Config) *intake.Acceptor {
	acceptor := NewAcceptor(cfg, a.log)
	acceptor.Lanes = intake.NewLanes(fair.Cores())
	acceptor.Recovered = a.recovered
	acceptor.Received = a.metrics.observeReceipts
	acceptor.Took = a.metrics.observeIntake
	return acceptor
}

// enoughDisk returns intake.ErrLowDisk if the data folder has too little free space. If that
// is unknown it returns nil.
func enoughDisk(folder string, want int64) error {
	if free, err := spool.FreeBytes(folder); err == nil && free < want {
		return fmt.Errorf("%w: %d bytes free, minimum %d (limit.free_disk)", intake.ErrLowDisk, free, want)
	}
	return nil
}

// Limits returns the limits of a message. Temporary files use the system default.
func Limits(cfg config.Config) intake.Limits {
	limits := intake.DefaultLimits()
	limits.Containers.Input = int64(max(cfg.Limit.Upload, cfg.Limit.Mail))
	limits.Containers.Expanded = int64(cfg.Limit.Expanded)
	limits.Containers.Ratio = int64(cfg.Limit.Ratio)
	limits.Containers.Members = cfg.Limit.Members
	limits.Containers.Nesting = cfg.Limit.Nesting
	limits.Aggregate.Records = cfg.Limit.Records
	return limits
}

// temporaryFolder returns the data folder, because the system default may be in memory or
// read-only. If the data folder is not writable it returns the system default.
func temporaryFolder(cfg config.Config) string {
	folder := filepath.Join(cfg.Data, "tmp")
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return ""
	}
	return folder
}

// runIntake runs the transports other than HTTP.
func (a *App) runIntake(ctx context.Context, group *errgroup.Group) {
	group.Go(func() error { return a.mailboxes().Run(ctx) })
	if a.spool != nil {
		worker := &spool.Worker{
			Spool: a.spool, Verify: a.verifyMail, Handle: a.storeMails, Reject: a.rejectMail, Recovered: a.recovered,
		}
		group.Go(func() error { return worker.Run(ctx) })
	}
	if a.mail != nil {
		group.Go(func() error { return a.mail.server.Serve(ctx, a.mail.listener) })
	}
	if a.config.Intake.Folder != "" {
		group.Go(func() error {
			drop, err := a.drop(ctx)
			if err != nil {
				return err
			}
			return drop.Run(ctx)
		})
	}
}

// scanInterval is the time between looks into the drop folder, which reads a list of names.
const scanInterval = 5 * time.Second

// drop returns the reader of the drop folder.
func (a *App) drop(ctx context.Context) (*files.Drop, error) {
	team, err := a.store.TeamByName(ctx, a.config.Intake.FolderTeam)
	if err != nil {
		return nil, fmt.Errorf("find the team of the drop folder (intake.folder_team, %q): %w", a.config.Intake.FolderTeam, err)
	}
	return &files.Drop{
		Folder:   a.config.Intake.Folder,
		Interval: scanInterval,
		Acceptor: a.acceptor,
		Team:     team.ID,
		Store:    a.store.Team(team.ID),
		Log:      a.log,
	}, nil
}

// maxEntries limits the entries of a team in each of the audit log, the events and the
// deliveries: a client that repeats changes cannot fill the disk.
const maxEntries = 1_000_000

// retention returns the default retention of a team. Daily counters are small, and are kept.
func (a *App) retention() store.Retention {
	set := a.config.Retention
	return store.Retention{
		Originals: set.Originals, Rejected: set.Originals, Records: set.Records, Failure: set.Failure,
		Audit: set.Audit, Entries: maxEntries,
	}
}
