package client

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// ListWebhooks lists the channels that receive events.
func (c *Client) ListWebhooks(ctx context.Context) iter.Seq2[Webhook, error] {
	return list[Webhook](ctx, c, nil, "webhooks")
}

// NewWebhook is a channel to add.
type NewWebhook struct {
	URL     string   `json:"url"`
	Format  string   `json:"format,omitempty"`  // standard if ""
	Kinds   []string `json:"kinds,omitempty"`   // all if nil
	Domains []string `json:"domains,omitempty"` // all if nil
}

// AddWebhook adds a channel. Only this answer has the secret of its signatures.
func (c *Client) AddWebhook(ctx context.Context, webhook NewWebhook) (WebhookWithSecret, error) {
	return post[WebhookWithSecret](ctx, c, webhook, "webhooks")
}

// WebhookChange changes a channel. Nil members stay as they are; a pointer to a nil slice selects all.
type WebhookChange struct {
	URL     *string   `json:"url,omitempty"`
	Kinds   *[]string `json:"kinds,omitempty"`
	Domains *[]string `json:"domains,omitempty"`
	Enabled *bool     `json:"enabled,omitempty"`
}

// UpdateWebhook changes a channel.
func (c *Client) UpdateWebhook(ctx context.Context, id string, change WebhookChange) (Webhook, error) {
	return patch[Webhook](ctx, c, change, "webhooks", id)
}

// DeleteWebhook deletes a channel.
func (c *Client) DeleteWebhook(ctx context.Context, id string) error {
	return c.remove(ctx, "webhooks", id)
}

// TestWebhook sends a test and returns its delivery.
func (c *Client) TestWebhook(ctx context.Context, id string) (WebhookDelivery, error) {
	return post[WebhookDelivery](ctx, c, nil, "webhooks", id, "test")
}

// RotateWebhook replaces the secret. For 24 hours deliveries are signed with both.
func (c *Client) RotateWebhook(ctx context.Context, id string) (WebhookWithSecret, error) {
	return post[WebhookWithSecret](ctx, c, nil, "webhooks", id, "rotate")
}

// ListDeliveries lists the deliveries of a channel, the latest first.
func (c *Client) ListDeliveries(ctx context.Context, webhook string) iter.Seq2[WebhookDelivery, error] {
	return list[WebhookDelivery](ctx, c, nil, "webhooks", webhook, "deliveries")
}

// RetryDelivery sends a delivery again.
func (c *Client) RetryDelivery(ctx context.Context, webhook, delivery string) (WebhookDelivery, error) {
	return post[WebhookDelivery](ctx, c, nil, "webhooks", webhook, "deliveries", delivery, "retry")
}

// webhookTolerance is how much the time of a message may differ from now. It allows for clocks that
// differ, and prevents that a recorded message is sent again later.
const webhookTolerance = 5 * time.Minute

// errWebhook does not give the reason, which would help an attacker.
var errWebhook = &dmarcd.InvalidError{Message: "The message has no valid signature with this secret, or is older than five minutes."}

// VerifyWebhook returns the event of a webhook message in the format standard or json. It verifies the
// signature by Standard Webhooks 1.0 with the secret of AddWebhook, and that the message was signed
// within five minutes of now. Deliveries are repeated until they are answered: use Event.ID to recognize
// those that were handled.
func VerifyWebhook(secret string, header http.Header, body []byte, now time.Time) (Event, error) {
	key, err := wire.ParseSecret(secret)
	if err != nil {
		return Event{}, err
	}
	seconds, err := strconv.ParseInt(header.Get("Webhook-Timestamp"), 10, 64)
	if err != nil {
		return Event{}, errWebhook
	}
	at := time.Unix(seconds, 0)
	want := []byte(wire.Signature(header.Get("Webhook-Id"), at, body, key))
	valid := 0
	for signature := range strings.FieldsSeq(header.Get("Webhook-Signature")) {
		valid |= subtle.ConstantTimeCompare([]byte(signature), want)
	}
	if valid == 0 || now.Sub(at).Abs() > webhookTolerance {
		return Event{}, errWebhook
	}
	var message struct {
		Type string          `json:"type"` // only in the format standard
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &message); err != nil {
		return Event{}, err
	}
	if message.Type != "" {
		body = message.Data
	}
	var event Event
	return event, json.Unmarshal(body, &event)
}
