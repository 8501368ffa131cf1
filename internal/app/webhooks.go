package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/notify"
	mailer "github.com/dmarcd/dmarcd/internal/notify/mail"
	"github.com/dmarcd/dmarcd/internal/notify/webhook"
	"github.com/dmarcd/dmarcd/internal/outbound"
	"github.com/dmarcd/dmarcd/internal/secret"
	"github.com/dmarcd/dmarcd/internal/store"
)

// newDeliveries returns what delivers events to webhooks; relay is nil where no mail is
// sent. digest returns what a digest says; it is nil where only tests are delivered.
func newDeliveries(s *store.Store, cfg config.Config, dialer *outbound.Dialer, relay *mailer.Relay, digest digestContent, log *slog.Logger) *notify.Worker {
	post := &webhook.Sender{Client: dialer.EndpointClient(nil), BaseURL: cfg.BaseURL, Now: time.Now, Open: openWebhook(cfg)}
	letters := &mailer.Sender{
		Relay: relay, BaseURL: cfg.BaseURL, Now: time.Now, Open: openWebhook(cfg), Digest: digest,
		Daily: func(ctx context.Context, team dmarcd.TeamID, domain string, days dmarcd.Days) (map[dmarcd.Day]mailer.Bar, error) {
			found, err := s.Team(team).DomainDaily(ctx, domain, days, maxChartDays)
			bars := make(map[dmarcd.Day]mailer.Bar, len(found))
			for _, day := range found {
				bars[day.Day] = mailer.Bar{Pass: day.Compliant, Fail: day.NonCompliant}
			}
			return bars, err
		},
	}
	send := func(ctx context.Context, c dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error) {
		if c.Webhook.Format == dmarcd.FormatEmail {
			return letters.Send(ctx, c)
		}
		return post.Send(ctx, c)
	}
	return &notify.Worker{Outbox: outbox{s}, Send: send, Now: time.Now, Log: log}
}

type digestContent = func(ctx context.Context, team dmarcd.TeamID, e dmarcd.Event) (mailer.Content, error)

// maxChartDays is more than a chart in a message shows.
const maxChartDays = 366

// openWebhook returns what opens the secrets of webhooks.
func openWebhook(cfg config.Config) func(w dmarcd.Webhook, sealed []byte) ([]byte, error) {
	return func(w dmarcd.Webhook, sealed []byte) ([]byte, error) {
		return secret.File(cfg.Secret.File).Open(sealed, w.SecretContext())
	}
}

// newRelay returns what sends mail, or nil where the operator has configured no relay.
func newRelay(cfg config.Config) (*mailer.Relay, error) {
	if cfg.Mail.Relay == "" {
		return nil, nil //nolint:nilnil // no mail is sent
	}
	return mailer.NewRelay(mailer.Settings{
		Relay: cfg.Mail.Relay, From: cfg.Mail.From, Key: cfg.Mail.DKIMKey, Selector: cfg.Mail.DKIMSelector,
	}, outbound.Trusted(cfg.DNS), time.Now)
}

// outbox adapts the store to the webhook worker.
type outbox struct{ *store.Store }

func (o outbox) ClaimDeliveries(ctx context.Context, team dmarcd.TeamID, lease time.Duration, perWebhook, limit int) ([]dmarcd.ClaimedDelivery, error) {
	return o.Team(team).ClaimDeliveries(ctx, lease, perWebhook, limit)
}

func (o outbox) SaveDelivery(ctx context.Context, c dmarcd.ClaimedDelivery, result dmarcd.DeliveryResult, next time.Time, disable string, disableAfter time.Duration) error {
	return o.Team(c.Team).SaveDelivery(ctx, c, result, next, disable, disableAfter)
}
