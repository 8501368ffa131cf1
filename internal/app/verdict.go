package app

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/genuine"
	"github.com/dmarcd/dmarcd/internal/intake/spool"
)

func (a *App) verifier() *genuine.Verifier {
	hostname := cmp.Or(a.config.ReportDomain, "localhost") // used only in SPF explanations
	return &genuine.Verifier{Resolver: a.resolver, Hostname: hostname, Now: time.Now}
}

// smtpVerdict authenticates a mail received over SMTP.
func (a *App) smtpVerdict(ctx context.Context, mail io.ReadSeeker, envelope spool.Envelope) dmarcd.Verdict {
	return a.verifier().SMTP(ctx, mail, genuine.Envelope{
		RemoteIP: envelope.RemoteIP, Helo: envelope.Helo, MailFrom: envelope.MailFrom,
	})
}
