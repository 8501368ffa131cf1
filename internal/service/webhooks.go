package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/notify/chat"
	"github.com/dmarcd/dmarcd/internal/notify/webhook"
)

const (
	// oldSecretTime is how long the old secret still signs after a rotation.
	oldSecretTime = 24 * time.Hour
	// testLease limits a test, including saving its result.
	testLease = time.Minute
	// maxWebhookTests is how many tests of a webhook are under way at once.
	maxWebhookTests = 4
)

// mayConnect returns dmarcd.ErrForbidden unless the actor may choose hosts that this server
// connects to: an owner, or a writing token.
func (t *Team) mayConnect() error {
	if t.actor.token {
		return t.may(dmarcd.RightChange)
	}
	return t.may(dmarcd.RightManage)
}

// Webhooks returns the webhooks, oldest first. Their URLs are masked unless the actor may
// change them.
func (t *Team) Webhooks(ctx context.Context) ([]dmarcd.Webhook, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, err
	}
	webhooks, err := t.team.Webhooks(ctx)
	if t.mayConnect() != nil {
		for i, w := range webhooks {
			webhooks[i] = w.Masked()
		}
	}
	return webhooks, err
}

// AddWebhook adds a webhook, and returns it with its secret, which is never shown again.
// The format standard is the default. The URL of a chat service is its secret: it is stored
// sealed, and none is returned.
func (t *Team) AddWebhook(ctx context.Context, wanted dmarcd.Webhook) (added dmarcd.Webhook, secret string, err error) {
	if err := t.mayConnect(); err != nil {
		return dmarcd.Webhook{}, "", err
	}
	wanted.Format = cmp.Or(wanted.Format, dmarcd.FormatStandard)
	if err := wanted.Validate(); err != nil {
		return dmarcd.Webhook{}, "", err
	}
	if err := t.checkDomains(ctx, wanted.Domains); err != nil {
		return dmarcd.Webhook{}, "", err
	}
	if err := t.checkEndpoint(wanted); err != nil {
		return dmarcd.Webhook{}, "", err
	}
	plain := webhook.NewSecret()
	switch {
	case wanted.Format.Signed():
		secret = webhook.FormatSecret(plain)
	case wanted.Format.HidesURL():
		plain = []byte(wanted.URL)
	}
	confirmed := true
	if wanted.Format == dmarcd.FormatEmail {
		if confirmed = t.mayMailTo(wanted.Address()); !confirmed {
			wanted.DisabledAt, wanted.DisabledReason = t.service.options.Now(), unconfirmed
			if err := t.service.throttleMail(t.team.ID(), wanted.Address()); err != nil {
				return dmarcd.Webhook{}, "", err
			}
		}
	}
	seal := func(w dmarcd.Webhook) ([]byte, error) {
		return t.service.options.Secrets.Seal(plain, w.SecretContext())
	}
	entry := t.actor.to("webhook.add", "", wanted.Masked().URL)
	if wanted.Format.HidesURL() {
		wanted = wanted.Masked()
	}
	added, err = t.team.AddWebhook(ctx, wanted, seal, entry)
	if err == nil && !confirmed {
		err = t.askConfirmation(ctx, added)
	}
	return added, secret, err
}

// EnabledWebhooks returns the number of channels that alerts are sent to.
func (t *Team) EnabledWebhooks(ctx context.Context) (int, error) {
	webhooks, err := t.Webhooks(ctx)
	return len(slices.DeleteFunc(webhooks, func(w dmarcd.Webhook) bool { return !w.Enabled() || w.IsDigest() })), err
}

// checkDomains normalizes names, and rejects one that is no domain of the team.
func (t *Team) checkDomains(ctx context.Context, names []string) error {
	for i, name := range names {
		parsed, err := dmarcd.ParseName(name)
		if err == nil {
			_, err = t.team.Domain(ctx, parsed)
		}
		if errors.Is(err, dmarcd.ErrNotFound) {
			return &dmarcd.InvalidError{Field: "domains", Message: fmt.Sprintf("The team has no domain %s. Add the domain first.", parsed)}
		}
		if err != nil {
			return err
		}
		names[i] = parsed
	}
	return nil
}

// checkEndpoint validates the URL of a webhook as entered. An IP address must be allowed;
// names are checked by each delivery.
func (t *Team) checkEndpoint(w dmarcd.Webhook) error {
	if w.Format == dmarcd.FormatEmail {
		if t.service.options.Mail == nil {
			return &dmarcd.InvalidError{Field: "format", Message: "This installation cannot send email. An operator can configure a relay with DMARCD_MAIL_RELAY."}
		}
		return nil
	}
	endpoint, err := url.Parse(w.URL)
	if err != nil {
		return err
	}
	if w.Masked().URL == w.URL {
		return &dmarcd.InvalidError{Field: "url", Message: "Part of the URL is masked. Enter the full URL."}
	}
	if address, err := netip.ParseAddr(endpoint.Hostname()); err == nil && !t.service.options.Outbound.Permits(address) {
		return &dmarcd.InvalidError{Field: "url", Message: addressNotAllowed}
	}
	if w.Format == dmarcd.FormatPagerDuty && endpoint.Query().Get(chat.RoutingKey) == "" {
		return &dmarcd.InvalidError{Field: "url", Message: "Add the integration key of the PagerDuty service to the URL: https://events.pagerduty.com/v2/enqueue?routing_key=KEY."}
	}
	return nil
}

// WebhookChange is a partial update; nil fields stay.
type WebhookChange struct {
	URL     *string
	Kinds   *[]dmarcd.EventKind
	Domains *[]string
	Enabled *bool
}

// sendsMore reports whether a selection has kinds that one of digests has not.
func sendsMore(digests, kinds []dmarcd.EventKind) bool {
	return kinds == nil || slices.ContainsFunc(kinds, func(kind dmarcd.EventKind) bool { return !slices.Contains(digests, kind) })
}

// UpdateWebhook changes a webhook. The recipient of digests alone, such as the report for managers,
// confirms the address again before other kinds are sent to it.
func (t *Team) UpdateWebhook(ctx context.Context, id dmarcd.WebhookID, change WebhookChange) (dmarcd.Webhook, error) {
	if err := t.mayConnect(); err != nil {
		return dmarcd.Webhook{}, err
	}
	if change.Domains != nil { // others may have been deleted since
		if err := t.checkDomains(ctx, *change.Domains); err != nil {
			return dmarcd.Webhook{}, err
		}
	}
	ask := false
	changed, err := t.team.UpdateWebhook(ctx, id, func(w *dmarcd.Webhook) error {
		if w.Format == dmarcd.FormatEmail && change.URL != nil {
			return &dmarcd.InvalidError{Field: "url", Message: "The address cannot be changed. Remove the channel, and add one with the new address."}
		}
		widened := w.IsDigest() && change.Kinds != nil && sendsMore(w.Kinds, *change.Kinds)
		confirmed := w.Enabled() && !widened
		set(&w.Kinds, change.Kinds)
		set(&w.Domains, change.Domains)
		on := w.Enabled()
		set(&on, change.Enabled)
		switch {
		case on && !confirmed && w.Format == dmarcd.FormatEmail && !t.mayMailTo(w.Address()):
			if !ask { // the transaction may be retried
				if err := t.service.throttleMail(t.team.ID(), w.Address()); err != nil {
					return err
				}
			}
			ask, w.DisabledReason = true, unconfirmed
			if w.Enabled() {
				w.DisabledAt = t.service.options.Now()
			}
		case on:
			w.DisabledAt = time.Time{}
		case w.Enabled():
			w.DisabledAt, w.DisabledReason = t.service.options.Now(), "A user turned it off."
		}
		if change.URL == nil || *change.URL == w.Masked().URL { // as it was shown
			return w.Validate()
		}
		w.URL = *change.URL
		if err := w.Validate(); err != nil {
			return err
		}
		if err := t.checkEndpoint(*w); err != nil || !w.Format.HidesURL() {
			return err
		}
		sealed, err := t.service.options.Secrets.Seal([]byte(w.URL), w.SecretContext())
		*w = w.Masked()
		w.Secrets = [][]byte{sealed}
		return err
	}, t.actor.to("webhook.update", id.String(), ""))
	if err == nil && ask {
		err = t.askConfirmation(ctx, changed)
	}
	return changed, err
}

// RotateWebhook creates a new secret, which is not shown again. The old one signs too for a
// day.
func (t *Team) RotateWebhook(ctx context.Context, id dmarcd.WebhookID) (rotated dmarcd.Webhook, secret string, err error) {
	if err := t.mayConnect(); err != nil {
		return dmarcd.Webhook{}, "", err
	}
	before, err := t.team.Webhook(ctx, id)
	if err != nil {
		return dmarcd.Webhook{}, "", err
	}
	if !before.Format.Signed() {
		return dmarcd.Webhook{}, "", &dmarcd.InvalidError{Field: "format", Message: "Deliveries of the format " + string(before.Format) + " are not signed."}
	}
	plain := webhook.NewSecret()
	sealed, err := t.service.options.Secrets.Seal(plain, dmarcd.Webhook{ID: id}.SecretContext())
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

// mayTest returns a *ThrottledError after many tests with a key, except to the command line.
func (t *Team) mayTest(key string) error {
	if t.actor.local {
		return nil
	}
	return t.service.tests.take(key)
}

// TestWebhook delivers a test event once, now, and returns the result. It is a *ThrottledError
// after many tests, and while several of the webhook are under way.
func (t *Team) TestWebhook(ctx context.Context, id dmarcd.WebhookID) (dmarcd.WebhookDelivery, error) {
	if err := t.mayConnect(); err != nil {
		return dmarcd.WebhookDelivery{}, err
	}
	if err := t.mayMail(ctx, id); err != nil {
		return dmarcd.WebhookDelivery{}, err
	}
	if err := t.mayTest(id.String()); err != nil {
		return dmarcd.WebhookDelivery{}, err
	}
	leave, ok := t.service.webhookTests.Try(id)
	if !ok {
		return dmarcd.WebhookDelivery{}, &ThrottledError{RetryAfter: webhook.Timeout}
	}
	defer leave()
	// It goes on when the client leaves: the result is in the log of deliveries.
	ctx = context.WithoutCancel(ctx)
	began := time.Now()
	claimed, err := t.team.TestWebhook(ctx, id, testLease, t.actor.to("webhook.test", id.String(), ""))
	if err != nil {
		return dmarcd.WebhookDelivery{}, err
	}
	result, err := t.service.options.Deliveries.Deliver(ctx, claimed)
	if err != nil {
		return dmarcd.WebhookDelivery{}, err
	}
	if result.Status == 0 && !t.actor.local {
		// As for mailboxes: the time of a failure must not reveal what runs at an address.
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

// Deliveries returns up to limit deliveries to a webhook, newest first, before that event
// number; 0 starts at the newest. An unknown webhook is dmarcd.ErrNotFound.
func (t *Team) Deliveries(ctx context.Context, id dmarcd.WebhookID, before int64, limit int) ([]dmarcd.WebhookDelivery, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, err
	}
	if _, err := t.team.Webhook(ctx, id); err != nil {
		return nil, err
	}
	return t.team.Deliveries(ctx, id, before, limit)
}

// LatestDeliveries returns the newest delivery to each webhook that has one.
func (t *Team) LatestDeliveries(ctx context.Context) (map[dmarcd.WebhookID]dmarcd.WebhookDelivery, error) {
	return see(t, func() (map[dmarcd.WebhookID]dmarcd.WebhookDelivery, error) { return t.team.LatestDeliveries(ctx) })
}

// RetryDelivery makes a delivery due now, in any state. It is a *ThrottledError after many
// retries by mail.
func (t *Team) RetryDelivery(ctx context.Context, id dmarcd.WebhookID, delivery dmarcd.DeliveryID) (dmarcd.WebhookDelivery, error) {
	if err := t.mayConnect(); err != nil {
		return dmarcd.WebhookDelivery{}, err
	}
	w, err := t.team.Webhook(ctx, id)
	if err == nil && w.Format == dmarcd.FormatEmail {
		err = t.mayTest(id.String())
	}
	if err != nil {
		return dmarcd.WebhookDelivery{}, err
	}
	if err := t.team.RetryDelivery(ctx, id, delivery, t.actor.to("webhook.retry", id.String(), delivery.String())); err != nil {
		return dmarcd.WebhookDelivery{}, err
	}
	return t.team.Delivery(ctx, id, delivery)
}

// TeamOfWebhook returns the team of a webhook.
func (s *System) TeamOfWebhook(ctx context.Context, id dmarcd.WebhookID) (dmarcd.TeamID, error) {
	return operate(s, func() (dmarcd.TeamID, error) { return s.store.TeamOfWebhook(ctx, id) })
}
