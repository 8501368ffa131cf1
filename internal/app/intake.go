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

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/fair"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/intake/files"
	"github.com/dmarcd/dmarcd/internal/intake/imap"
	"github.com/dmarcd/dmarcd/internal/intake/spool"
	"github.com/dmarcd/dmarcd/internal/outbound"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/service"
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

// scanInterval is the time between two listings of the drop folder.
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

// pollInterval is the time between two polls of a mailbox whose server does not announce new
// mail. Reports are about the previous day, so there is no hurry.
const pollInterval = 5 * time.Minute

// mailboxes returns the reader of all mailboxes.
func (a *App) mailboxes() *imap.Service {
	return &imap.Service{
		Leases:    a.store,
		Team:      func(id dmarcd.TeamID) imap.MailboxStore { return a.store.Team(id) },
		Sealer:    secretKeys(a.config),
		Accept:    a.acceptMessages,
		MaxBytes:  int64(a.config.Limit.Mail),
		Interval:  pollInterval,
		Folder:    a.acceptor.Limits.Containers.Folder,
		Dial:      a.dialer.DialContext,
		HTTP:      a.dialer.Client(nil),
		Recovered: a.recovered,
		Log:       a.log,
	}
}

// acceptMessages stores messages of a mailbox. After an error some may be stored; they are
// duplicates next time.
func (a *App) acceptMessages(ctx context.Context, mailbox dmarcd.Mailbox, messages []imap.Message) error {
	for len(messages) > 0 {
		n, err := a.acceptSome(ctx, mailbox, messages)
		if err != nil {
			return err
		}
		messages = messages[n:]
	}
	return nil
}

// acceptSome stores the messages up to the first heavy one, and returns their number.
func (a *App) acceptSome(ctx context.Context, mailbox dmarcd.Mailbox, messages []imap.Message) (int, error) {
	var deliveries []*dmarcd.Delivery
	for _, message := range messages {
		opened, err := a.openMessage(ctx, mailbox, message)
		if err != nil {
			return 0, err
		}
		defer opened.Close()
		deliveries = append(deliveries, opened.Delivery)
		if opened.Heavy() {
			break
		}
	}
	_, errs := a.acceptor.StoreAll(ctx, a.store.Team(mailbox.Team), deliveries)
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return len(deliveries), nil
}

func (a *App) openMessage(ctx context.Context, mailbox dmarcd.Mailbox, message imap.Message) (*intake.Opened, error) {
	m := intake.Message{Team: mailbox.Team, Intake: dmarcd.IntakeIMAP, Name: fmt.Sprintf("%s, message %d", mailbox.Folder, message.UID)}
	if message.Body != nil {
		info, err := message.Body.Stat()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", dmarcd.ErrTemporary, err)
		}
		m.Content, m.Size = message.Body, info.Size()
	}
	if message.Rejection != "" {
		return a.acceptor.Reject(ctx, m, message.Rejection)
	}
	m.Authentication = a.verifier().Mail(ctx, message.Body)
	return a.acceptor.Read(ctx, m)
}

// mailboxLogins logs in to mailboxes.
type mailboxLogins struct{ dialer *outbound.Dialer }

// Secret implements service.Mailboxes.
func (mailboxLogins) Secret(password string, oauth *service.OAuth) ([]byte, error) {
	credentials := imap.Credentials{Password: password}
	if oauth != nil {
		credentials = imap.Credentials{OAuth: (*imap.OAuth)(oauth)}
	}
	return credentials.Encode(), credentials.Validate()
}

// Explain implements service.Mailboxes.
func (mailboxLogins) Explain(m dmarcd.Mailbox) string {
	stage, ok := imap.StatusStage(m.Error)
	if !ok {
		return ""
	}
	_, message := stage.Explain(m.Method)
	return message
}

// Try implements service.Mailboxes: the provider may have replaced the refresh token.
func (l mailboxLogins) Try(ctx context.Context, m dmarcd.Mailbox, encoded []byte) ([]byte, error) {
	credentials, err := imap.DecodeCredentials(encoded)
	if err != nil {
		return nil, err
	}
	login := credentials.Login(l.dialer.Client(nil), func(_ context.Context, renewed imap.Credentials) error {
		credentials = renewed
		return nil
	})
	err = (&imap.Reader{Mailbox: m, Login: login, Dial: l.dialer.DialContext}).Try(ctx)
	if failed := (*imap.StageError)(nil); errors.As(err, &failed) && !errors.Is(err, outbound.ErrNotAllowed) {
		field, message := failed.Stage.Explain(m.Method)
		return nil, &service.MailboxError{Field: field, Message: message, Reason: err}
	}
	return credentials.Encode(), err
}
