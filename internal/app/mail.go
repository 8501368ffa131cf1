package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"path/filepath"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/certificate"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/intake/genuine"
	"github.com/dmarcd/dmarcd/internal/intake/smtpd"
	"github.com/dmarcd/dmarcd/internal/intake/spool"
	"github.com/dmarcd/dmarcd/internal/store"
)

// mail receives mail over SMTP.
type mail struct {
	listener net.Listener
	server   *smtpd.Server
}

// openSpool opens the spool: in PostgreSQL, where other replicas can continue the work of this
// one, or in files beside the SQLite database, whose single writer would delay every mail. It
// is nil without SMTP.
func (a *App) openSpool() (*spool.Spool, error) {
	if a.config.SMTPListen == "" {
		return nil, nil //nolint:nilnil // none is a setting too
	}
	settings := spool.Config{
		Folder: filepath.Join(a.config.Data, "spool"), Limits: spool.DefaultLimits(), Log: a.log, Now: time.Now,
	}
	settings.Limits.FreeBytes = int64(a.config.Limit.FreeDisk)
	if store.IsPostgres(a.config.Database) {
		settings.Database = a.store
	}
	return spool.Open(settings)
}

// listenForMail listens for SMTP.
func (a *App) listenForMail(ctx context.Context) (_ *mail, err error) {
	cfg := a.config
	m := &mail{}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	encryption, err := a.startTLS()
	if err != nil {
		return nil, err
	}
	limits := smtpd.DefaultLimits()
	limits.MessageBytes = int64(cfg.Limit.Mail)
	limits.MailsPerMinute = int(math.Ceil(cfg.SMTP.Rate))
	m.server = smtpd.New(smtpd.Config{
		Hostname: cfg.ReportDomain, ReportDomain: cfg.ReportDomain, TLS: encryption, Limits: limits,
		Lookup: func(ctx context.Context, mailbox string) (dmarcd.TeamID, error) {
			if dmarcd.IsTestMailbox(mailbox) {
				return a.store.TestRecipient(ctx, mailbox)
			}
			recipient, err := a.store.RecipientOf(ctx, mailbox)
			return recipient.Team, err
		},
		Admit: func(ctx context.Context, team dmarcd.TeamID) error { return a.store.Team(team).Admit(ctx) },
		Spool: a.spool, Log: a.log, Now: time.Now, Observe: a.metrics.observeMail, Recovered: a.recovered,
	})
	if m.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.SMTPListen); err != nil {
		return nil, fmt.Errorf("listen for SMTP (set DMARCD_SMTP_LISTEN to use another address): %w", err)
	}
	return m, nil
}

// startTLS returns the STARTTLS configuration: the certificate for mail if there is one, else
// that for HTTPS, else nil.
func (a *App) startTLS() (*tls.Config, error) {
	get := a.certificate
	if a.config.SMTP.Certificate != "" {
		files, err := certificate.NewFiles(a.config.SMTP.Certificate, a.config.SMTP.Key, time.Now, a.log)
		if err != nil {
			return nil, fmt.Errorf("prepare STARTTLS (smtp.certificate and smtp.key): %w", err)
		}
		get = files.GetCertificate
	}
	if get == nil {
		return nil, nil //nolint:nilnil // none is a setting too
	}
	return &tls.Config{GetCertificate: get, MinVersion: tls.VersionTLS12}, nil
}

func (m *mail) close() error {
	if m.listener == nil {
		return nil
	}
	if err := m.listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Limits for mails that are stored in one transaction: bytes of documents, which are in
// memory, and time.
const (
	maxTogether  = 2 << 20
	readTogether = 500 * time.Millisecond
)

func (a *App) verifier() *genuine.Verifier {
	hostname := cmp.Or(a.config.ReportDomain, "localhost") // used only in SPF explanations
	return &genuine.Verifier{Resolver: a.resolver, Hostname: hostname, Now: time.Now}
}

// verifyMail authenticates a spooled mail.
func (a *App) verifyMail(ctx context.Context, entry *spool.Entry) dmarcd.Authentication {
	content, err := entry.Open()
	if err != nil {
		return dmarcd.Authentication{Genuine: dmarcd.GenuineUnknown, Reason: "The message could not be parsed."}
	}
	defer func() { _ = content.Close() }() // read-only
	began := time.Now()
	defer func() { a.metrics.observeIntake(stageVerify, time.Since(began)) }()
	return a.verifier().SMTP(ctx, content, genuine.Envelope{
		RemoteIP: entry.Envelope.RemoteIP, Helo: entry.Envelope.Helo, MailFrom: entry.Envelope.MailFrom,
	})
}

// storeMails stores the first mails of a batch in one transaction: up to a heavy one, or as
// many as can be read in a short time. It returns an error or nil for each of these.
func (a *App) storeMails(ctx context.Context, team dmarcd.TeamID, batch []*spool.Entry) []error {
	var (
		errs       []error
		read       []int // entries
		deliveries []*dmarcd.Delivery
		bytes      int
		start      = time.Now()
	)
	if gone, err := a.teamGone(ctx, team); gone || err != nil {
		return slices.Repeat([]error{err}, len(batch))
	}
	for i, entry := range batch {
		if mailbox := testMailbox(team, entry); mailbox != "" {
			errs = append(errs, a.testMail(ctx, team, mailbox, entry))
			continue
		}
		opened, err := a.openMail(ctx, team, entry)
		errs = append(errs, err)
		if err != nil {
			continue
		}
		defer opened.Close()
		read, deliveries = append(read, i), append(deliveries, opened.Delivery)
		for r := range opened.Delivery.Reports {
			bytes += len(opened.Delivery.Reports[r].Document)
		}
		if opened.Heavy() || bytes > maxTogether || time.Since(start) > readTogether {
			break
		}
	}
	if len(deliveries) == 0 {
		return errs
	}
	_, stored := a.acceptor.StoreAll(ctx, a.store.Team(team), deliveries)
	for i, err := range stored {
		errs[read[i]] = err
		if err == nil {
			a.metrics.spool.Observe(time.Since(batch[read[i]].Envelope.ReceivedAt).Seconds())
		}
	}
	return errs
}

func (a *App) openMail(ctx context.Context, team dmarcd.TeamID, entry *spool.Entry) (*intake.Opened, error) {
	content, err := entry.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }() // read-only
	return a.acceptor.Read(ctx, a.message(ctx, team, entry, content))
}

// testMailbox returns the test address of a team that a mail was sent to, "" if it was not.
func testMailbox(team dmarcd.TeamID, entry *spool.Entry) string {
	for _, recipient := range entry.Envelope.Recipients {
		if recipient.Team == team && dmarcd.IsTestMailbox(recipient.Mailbox) {
			return recipient.Mailbox
		}
	}
	return ""
}

// testMail stores how a test mail authenticates, and nothing of the mail itself. A mail whose
// address has expired or is full is dropped.
func (a *App) testMail(ctx context.Context, team dmarcd.TeamID, mailbox string, entry *spool.Entry) error {
	content, err := entry.Open()
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }() // read-only
	result := a.verifier().Test(ctx, content, genuine.Envelope{
		RemoteIP: entry.Envelope.RemoteIP, Helo: entry.Envelope.Helo, MailFrom: entry.Envelope.MailFrom,
	}, a.dialer.Permits)
	result.ID, result.At = entry.Name, entry.Envelope.ReceivedAt
	err = a.store.Team(team).AddTestMail(ctx, mailbox, result)
	if errors.Is(err, dmarcd.ErrNotFound) || errors.Is(err, dmarcd.ErrLimit) {
		return nil
	}
	return err
}

// teamGone reports whether a team was deleted since a mail for it was accepted: the mail is dropped.
func (a *App) teamGone(ctx context.Context, team dmarcd.TeamID) (bool, error) {
	_, err := a.store.TeamByID(ctx, team)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return true, nil
	}
	return false, err
}

// rejectMail stores a spooled mail as rejected without reading it; a test mail is dropped.
func (a *App) rejectMail(ctx context.Context, team dmarcd.TeamID, entry *spool.Entry, reason string) error {
	if gone, err := a.teamGone(ctx, team); gone || err != nil || testMailbox(team, entry) != "" {
		return err
	}
	content, err := entry.Open()
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }() // read-only
	opened, err := a.acceptor.Reject(ctx, a.message(ctx, team, entry, content), reason)
	if err != nil {
		return err
	}
	defer opened.Close()
	_, err = a.acceptor.Store(ctx, a.store.Team(team), opened.Delivery)
	return err
}

// message returns a spooled mail as an intake.Message.
func (a *App) message(ctx context.Context, team dmarcd.TeamID, entry *spool.Entry, content *spool.Mail) intake.Message {
	return intake.Message{
		Team: team, Domain: a.addressed(ctx, team, entry), Intake: dmarcd.IntakeSMTP, Authentication: entry.Authentication, Content: content, Size: entry.Size,
	}
}

// addressed returns the domain that a mail was addressed to, 0 if there are several or it was
// deleted.
func (a *App) addressed(ctx context.Context, team dmarcd.TeamID, entry *spool.Entry) dmarcd.DomainID {
	var domain dmarcd.DomainID
	for _, recipient := range entry.Envelope.Recipients {
		if recipient.Team != team {
			continue
		}
		found, err := a.store.RecipientOf(ctx, recipient.Mailbox)
		if err != nil || domain != 0 {
			return 0 // it only affects the retention of rejected mail
		}
		domain = found.DomainID
	}
	return domain
}
