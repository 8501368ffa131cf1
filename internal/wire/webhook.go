package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
)

// Webhook is an endpoint that receives events.
type Webhook struct {
	ID             string   `json:"id"`
	URL            string   `json:"url"` // masked if the user may not change it, or if it is a secret
	Format         string   `json:"format"`
	Kinds          []string `json:"kinds"`   // null for all
	Domains        []string `json:"domains"` // null for all
	Enabled        bool     `json:"enabled"`
	CreatedAt      string   `json:"created_at"`
	DisabledReason *string  `json:"disabled_reason"`
	FailingSince   *string  `json:"failing_since"`
}

// NewWebhook returns the shape of a webhook.
func NewWebhook(w dmarcd.Webhook) Webhook {
	shape := Webhook{
		ID: w.ID.String(), URL: w.URL, Format: string(w.Format), Domains: w.Domains, Enabled: w.Enabled(), CreatedAt: Time(w.CreatedAt),
		DisabledReason: optionalText(w.DisabledReason), FailingSince: optionalTime(w.FailingSince),
	}
	for _, kind := range w.Kinds {
		shape.Kinds = append(shape.Kinds, string(kind))
	}
	return shape
}

// IsDigest reports whether the webhook sends digests alone.
func (w Webhook) IsDigest() bool {
	kinds := make([]dmarcd.EventKind, len(w.Kinds))
	for i, kind := range w.Kinds {
		kinds[i] = dmarcd.EventKind(kind)
	}
	return dmarcd.Webhook{Format: dmarcd.WebhookFormat(w.Format), Kinds: kinds}.IsDigest()
}

// WebhookWithSecret is a webhook with its secret, which is shown only once.
type WebhookWithSecret struct {
	Webhook
	Secret *string `json:"secret"` // null where deliveries are not signed
}

// NewWebhookWithSecret returns the shape of a webhook with its secret, "" for none.
func NewWebhookWithSecret(w dmarcd.Webhook, secret string) WebhookWithSecret {
	return WebhookWithSecret{Webhook: NewWebhook(w), Secret: optionalText(secret)}
}

// WebhookDelivery is the delivery of an event to a webhook.
type WebhookDelivery struct {
	ID            string         `json:"id"`
	WebhookID     string         `json:"webhook_id"`
	State         string         `json:"state"`
	Attempts      int            `json:"attempts"`
	CreatedAt     string         `json:"created_at"`
	AttemptedAt   *string        `json:"attempted_at"`
	NextAttemptAt *string        `json:"next_attempt_at"`
	Status        *int           `json:"status"`
	DurationMS    *int64         `json:"duration_ms"`
	Error         *string        `json:"error"`
	Request       WebhookMessage `json:"request"`
}

// NewWebhookDelivery returns the shape of a delivery; baseURL is as for NewEvent.
func NewWebhookDelivery(d dmarcd.WebhookDelivery, baseURL string) WebhookDelivery {
	shape := WebhookDelivery{
		ID: d.ID.String(), WebhookID: d.Webhook.String(), State: string(d.State), Attempts: d.Attempts, CreatedAt: Time(d.CreatedAt),
		AttemptedAt: optionalTime(d.At), Error: optionalText(d.Problem), Request: NewWebhookMessage(d.Event, baseURL),
	}
	if d.State.Pending() {
		shape.NextAttemptAt = optionalTime(d.NextAt)
	}
	if d.Status != 0 {
		milliseconds := d.Took.Milliseconds()
		shape.Status, shape.DurationMS = &d.Status, &milliseconds
	}
	return shape
}

// WebhookMessage is the body of a delivery.
type WebhookMessage struct {
	Type      string `json:"type"`
	Timestamp string `json:"timestamp"`
	Data      Event  `json:"data"`
}

// NewWebhookMessage returns the body of the delivery of an event. It is the same for every
// attempt.
func NewWebhookMessage(e dmarcd.Event, baseURL string) WebhookMessage {
	return WebhookMessage{Type: string(e.Kind), Timestamp: Time(e.At), Data: NewEvent(e, baseURL)}
}

// SecretPrefix begins the form of a secret that users copy.
const SecretPrefix = "whsec_"

// ParseSecret returns the bytes of a secret as users copy it.
func ParseSecret(text string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(text, SecretPrefix)
	secret, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(secret) == 0 {
		return nil, &dmarcd.InvalidError{Field: "secret", Message: "The secret of a webhook begins with " + SecretPrefix + "."}
	}
	return secret, nil
}

// Signature returns a signature of a message by Standard Webhooks 1.0:
//
//	signature = "v1," base64( HMAC-SHA256( secret, id "." seconds "." body ) )
func Signature(id string, at time.Time, body, secret []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
