package app

import (
	"context"
	"io"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/genuine"
	"github.com/dmarcd/dmarcd/internal/intake/spool"
)

// verifier tells genuine mails from others.
func (a *App) verifier() *genuine.Verifier {
	hostname := a.config.SMTP.Hostname
	if hostname == "" {
		hostname = "localhost" // only the explanations of SPF records ask for it
	}
	return &genuine.Verifier{Resolver: a.resolver, Hostname: hostname, Now: time.Now}
}

// smtpVerdict looks at a mail that came by SMTP.
func (a *App) smtpVerdict(ctx context.Context, mail io.ReadSeeker, envelope spool.Envelope) dmarcd.Verdict {
	return a.verifier().SMTP(ctx, mail, genuine.Envelope{
		RemoteIP: envelope.RemoteIP, Helo: envelope.Helo, MailFrom: envelope.MailFrom,
	})
}

// uploadVerdict looks at a mail of which nobody knows who delivered it.
func (a *App) uploadVerdict(ctx context.Context, mail *io.SectionReader) dmarcd.Verdict {
	return a.verifier().Mail(ctx, mail)
}
