package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/notify"
	"github.com/dmarcd/dmarcd/internal/notify/webhook"
	"github.com/dmarcd/dmarcd/internal/outbound"
	"github.com/dmarcd/dmarcd/internal/secret"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
)

// newDeliveries returns what delivers events to webhooks.
func newDeliveries(s *store.Store, cfg config.Config, dialer *outbound.Dialer, log *slog.Logger) *notify.Worker {
	sender := &webhook.Sender{
		Client: dialer.EndpointClient(nil), BaseURL: cfg.BaseURL, Now: time.Now,
		Open: func(w dmarcd.Webhook, sealed []byte) ([]byte, error) {
			return secret.File(cfg.Secret.File).Open(sealed, w.SecretContext())
		},
	}
	return &notify.Worker{Outbox: outbox{s}, Send: sender.Send, Now: time.Now, Log: log}
}

// withWebhooks adds to options what the use cases of webhooks need.
func withWebhooks(options service.Options, cfg config.Config, dialer *outbound.Dialer, deliveries *notify.Worker) service.Options {
	options.SealWebhook = func(w dmarcd.Webhook, plain []byte) ([]byte, error) {
		return secret.File(cfg.Secret.File).Seal(plain, w.SecretContext())
	}
	options.PermitsAddress = dialer.Permits
	options.Deliver = deliveries.Deliver
	return options
}

// outbox is the store as the worker of deliveries sees it.
type outbox struct{ store *store.Store }

func (o outbox) DeliveryTeams(ctx context.Context) ([]dmarcd.TeamID, error) {
	return o.store.DeliveryTeams(ctx)
}

func (o outbox) ClaimDeliveries(ctx context.Context, team dmarcd.TeamID, lease time.Duration, perWebhook, limit int) ([]dmarcd.ClaimedDelivery, error) {
	return o.store.Team(team).ClaimDeliveries(ctx, lease, perWebhook, limit)
}

func (o outbox) SaveDelivery(ctx context.Context, c dmarcd.ClaimedDelivery, result dmarcd.DeliveryResult, next time.Time, disable string, disableAfter time.Duration) error {
	return o.store.Team(c.Team).SaveDelivery(ctx, c, result, next, disable, disableAfter)
}
