package service

import (
	"context"
	"net/netip"
	"net/url"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/notify/webhook"
)

const (
	// oldSecretTime is how long the old secret of a webhook signs too after a rotation.
	oldSecretTime = 24 * time.Hour
	// testLease is how long a test may take, with the saving of its result.
	testLease = time.Minute
)

// mayConnect returns dmarcd.ErrForbidden unless the actor may decide what this server
// connects to: an owner, or a token that may write.
func (t *Team) mayConnect() error {
	if t.actor.token {
		return t.may(dmarcd.RightChange)
	}
	return t.may(dmarcd.RightManage)
}

// Webhooks returns the webhooks, oldest first.
func (t *Team) Webhooks(ctx context.Context) ([]dmarcd.Webhook, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, err
	}
	return t.team.Webhooks(ctx)
}

// AddWebhook adds a webhook, and returns it with its secret, which is never shown again.
func (t *Team) AddWebhook(ctx context.Context, wanted dmarcd.Webhook) (added dmarcd.Webhook, secret string, err error) {
	if err := t.mayConnect(); err != nil {
		return dmarcd.Webhook{}, "", err
	}
	if err := t.checkWebhook(&wanted); err != nil {
		return dmarcd.Webhook{}, "", err
	}
	plain := webhook.NewSecret()
	seal := func(w dmarcd.Webhook) ([]byte, error) { return t.service.options.SealWebhook(w, plain) }
	added, err = t.team.AddWebhook(ctx, wanted, seal, t.actor.to("webhook.add", "", wanted.URL))
	return added, webhook.FormatSecret(plain), err
}

// checkWebhook validates a webhook, and brings the names of its domains into their form. An
// endpoint that is written as an address must be one that may be connected to; what a name
// leads to is judged by each delivery.
func (t *Team) checkWebhook(w *dmarcd.Webhook) error {
	if err := w.Validate(); err != nil {
		return err
	}
	for i, name := range w.Domains {
		parsed, err := dmarcd.ParseName(name)
		if err != nil {
			return err
		}
		w.Domains[i] = parsed
	}
	endpoint, err := url.Parse(w.URL)
	if err != nil {
		return err
	}
	if address, err := netip.ParseAddr(endpoint.Hostname()); err == nil && !t.service.options.PermitsAddress(address) {
		return &dmarcd.InvalidError{Field: "url", Message: addressRefused}
	}
	return nil
}

// WebhookChange is what to change of a webhook; nil is nothing.
type WebhookChange struct {
	URL     *string
	Kinds   *[]dmarcd.EventKind
	Domains *[]string
	Enabled *bool
}

// UpdateWebhook changes a webhook.
func (t *Team) UpdateWebhook(ctx context.Context, id dmarcd.WebhookID, change WebhookChange) (dmarcd.Webhook, error) {
	if err := t.mayConnect(); err != nil {
		return dmarcd.Webhook{}, err
	}
	return t.team.UpdateWebhook(ctx, id, func(w *dmarcd.Webhook) error {
		if change.URL != nil {
			w.URL = *change.URL
		}
		if change.Kinds != nil {
			w.Kinds = *change.Kinds
		}
		if change.Domains != nil {
			w.Domains = *change.Domains
		}
		switch {
		case change.Enabled == nil || *change.Enabled == w.Enabled():
		case *change.Enabled:
			w.DisabledAt = time.Time{}
		default:
			w.DisabledAt, w.DisabledReason = t.service.options.Now(), "A user disabled it."
		}
		return t.checkWebhook(w)
	}, t.actor.to("webhook.update", id.String(), ""))
}

// RotateWebhook gives a webhook a new secret, which is never shown again. For a day
// deliveries are signed with the old one too.
func (t *Team) RotateWebhook(ctx context.Context, id dmarcd.WebhookID) (rotated dmarcd.Webhook, secret string, err error) {
	if err := t.mayConnect(); err != nil {
		return dmarcd.Webhook{}, "", err
	}
	plain := webhook.NewSecret()
	sealed, err := t.service.options.SealWebhook(dmarcd.Webhook{ID: id}, plain)
	if err != nil {
		return dmarcd.Webhook{}, "", err
	}
	oldUntil := t.service.options.Now().Add(oldSecretTime)
	if err := t.team.RotateWebhook(ctx, id, sealed, oldUntil, t.actor.to("webhook.rotate", id.String(), "")); err != nil {
		return dmarcd.Webhook{}, "", err
	}
	rotated, err = t.team.Webhook(ctx, id)
	return rotated, webhook.FormatSecret(plain), err
}

// RemoveWebhook removes a webhook with its deliveries.
func (t *Team) RemoveWebhook(ctx context.Context, id dmarcd.WebhookID) error {
	if err := t.mayConnect(); err != nil {
		return err
	}
	return t.team.RemoveWebhook(ctx, id, t.actor.to("webhook.remove", id.String(), ""))
}

// TestWebhook delivers an event to a webhook now, once, whatever events it wants, and
// returns how that ended.
func (t *Team) TestWebhook(ctx context.Context, id dmarcd.WebhookID) (dmarcd.WebhookDelivery, error) {
	if err := t.mayConnect(); err != nil {
		return dmarcd.WebhookDelivery{}, err
	}
	// It goes on when the client leaves: the result is in the log of deliveries.
	ctx = context.WithoutCancel(ctx)
	began := time.Now()
	claimed, err := t.team.TestWebhook(ctx, id, testLease, t.actor.to("webhook.test", id.String(), ""))
	if err != nil {
		return dmarcd.WebhookDelivery{}, err
	}
	result, err := t.service.options.Deliver(ctx, claimed)
	if err != nil {
		return dmarcd.WebhookDelivery{}, err
	}
	if result.Status == 0 && !t.actor.local {
		// As for mailboxes: how soon it failed would tell what is at an address.
		t.service.pause(time.Until(began.Add(webhook.Timeout)))
	}
	return t.team.Delivery(ctx, id, claimed.Delivery.ID)
}

// pause waits for d, or until the process stops.
func (s *Service) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.options.Stopping:
	}
}

// Deliveries returns up to limit deliveries to a webhook, newest first, before the one of
// the event with that number; 0 is the beginning. No such webhook is dmarcd.ErrNotFound.
func (t *Team) Deliveries(ctx context.Context, id dmarcd.WebhookID, before int64, limit int) ([]dmarcd.WebhookDelivery, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, err
	}
	if _, err := t.team.Webhook(ctx, id); err != nil {
		return nil, err
	}
	return t.team.Deliveries(ctx, id, before, limit)
}

// RetryDelivery has a delivery tried again now, whatever became of it.
func (t *Team) RetryDelivery(ctx context.Context, id dmarcd.WebhookID, delivery dmarcd.DeliveryID) (dmarcd.WebhookDelivery, error) {
	if err := t.mayConnect(); err != nil {
		return dmarcd.WebhookDelivery{}, err
	}
	if err := t.team.RetryDelivery(ctx, id, delivery, t.actor.to("webhook.retry", id.String(), delivery.String())); err != nil {
		return dmarcd.WebhookDelivery{}, err
	}
	return t.team.Delivery(ctx, id, delivery)
}

// TeamOfWebhook returns the team that a webhook belongs to.
func (s *System) TeamOfWebhook(ctx context.Context, id dmarcd.WebhookID) (dmarcd.TeamID, error) {
	if err := s.may(); err != nil {
		return 0, err
	}
	return s.service.store.TeamOfWebhook(ctx, id)
}
