// Package webhook delivers events to HTTP endpoints as defined by Standard Webhooks 1.0: a POST
// with the headers webhook-id, webhook-timestamp and webhook-signature, signed with
// HMAC-SHA256. Endpoints of chat services get the messages of package chat. Package notify
// schedules deliveries and retries.
package webhook

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/notify/chat"
	"github.com/dmarcd/dmarcd/internal/outbound"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// Timeout is the time that an endpoint has to answer.
const Timeout = 15 * time.Second

// addressNotAllowed is the message about an endpoint that package outbound does not connect to.
const addressNotAllowed = "This installation does not connect to private or reserved addresses, or to others without https. An operator can allow a network with DMARCD_OUTBOUND_ALLOW."

// Sender sends deliveries. It is safe for concurrent use.
type Sender struct {
	// Client sends requests; it must not follow redirects. See outbound.EndpointClient.
	Client *http.Client
	// Open opens a sealed secret of a webhook.
	Open func(w dmarcd.Webhook, sealed []byte) ([]byte, error)
	// BaseURL is where clients see the API, for the links in events.
	BaseURL string
	// Now is the clock.
	Now func() time.Time
}

// Send attempts a delivery once. Any 2xx status is a success. Only the header of the response
// is read. The error, for the log, is why there was no response.
func (s *Sender) Send(ctx context.Context, c dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	began := s.Now()
	result := dmarcd.DeliveryResult{At: began}
	request, err := s.request(ctx, c, began)
	if err != nil {
		result.Problem = "No message could be made: the stored secret of this channel cannot be read. Delete the channel, and add it again."
		return result, withoutURL(err)
	}
	response, err := s.Client.Do(request)
	err = withoutURL(err)
	if err != nil {
		result.Problem = unanswered(err)
		return result, err
	}
	_ = response.Body.Close() // nothing in it matters
	result.Status, result.Took = response.StatusCode, s.Now().Sub(began)
	result.Problem = problemOf(response.StatusCode)
	return result, nil
}

// unanswered says which step failed before there was an answer, and what to do. As with mailboxes, it
// has no text of the endpoint or the network, and all addresses that are not allowed have one message.
func unanswered(err error) string {
	timeout, dial := net.Error(nil), (*net.OpError)(nil)
	certificate := (*tls.CertificateVerificationError)(nil)
	switch {
	case errors.Is(err, outbound.ErrNotAllowed):
		return addressNotAllowed
	case errors.Is(err, outbound.ErrLookup):
		return "The name lookup failed: no address was found for the host. Check the spelling of the URL."
	case errors.As(err, &certificate):
		return "The certificate of the host is not valid: it is expired, for another name, or not from a trusted authority. Enter the name that is in the certificate, or have it renewed."
	case errors.Is(err, http.ErrSchemeMismatch):
		return "The encryption failed: the host does not use https at this port. Check the port of the URL."
	case errors.As(err, &dial) && dial.Op == "dial":
		return "The connection failed: nothing answers at this host and port. Check the URL, and that no firewall is in between."
	case errors.As(err, &timeout) && timeout.Timeout():
		return "The host gave no answer within 15 seconds. Check its status, then send a test."
	}
	return "The host closed the connection, or its answer is not HTTP. Check the port of the URL, and the status of the service."
}

// problemOf says what a status means and what to do, "" for success.
func problemOf(status int) string {
	problem := fmt.Sprintf("The channel answered with status %d", status)
	switch class := status / 100; {
	case class == 2:
		return ""
	case class == 3:
		return problem + ", a redirect, which is not followed. Enter the URL that it leads to."
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return problem + ": it does not accept the key in the URL. Create a new URL there, and add the channel again."
	case status == http.StatusNotFound, status == http.StatusGone:
		return problem + ": there is no such URL. Copy it once more, or create a new one, and add the channel again."
	case status == http.StatusTooManyRequests:
		return problem + ": it got too many messages. Select fewer kinds of events, or collect them with the rules."
	case class == 5:
		return problem + ": it has a fault of its own. Check its status, then send a test."
	}
	return problem + ": it does not accept the message. Check that the URL belongs to this kind of channel."
}

// withoutURL returns the cause of an error about a URL, which may contain a key.
func withoutURL(err error) error {
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

func (s *Sender) request(ctx context.Context, c dmarcd.ClaimedDelivery, now time.Time) (*http.Request, error) {
	var secrets [][]byte
	for _, sealed := range c.Webhook.Secrets {
		secret, err := s.Open(c.Webhook, sealed)
		if err != nil {
			return nil, fmt.Errorf("open the secret of webhook %s: %w", c.Webhook.ID, err)
		}
		secrets = append(secrets, secret)
	}
	if !c.Webhook.Format.Signed() {
		endpoint, body, err := chat.Message(c.Webhook.Format, c.Delivery.Event, s.BaseURL, string(secrets[0]))
		if err != nil {
			return nil, err
		}
		return post(ctx, endpoint, body)
	}
	var message any = wire.NewWebhookMessage(c.Delivery.Event, s.BaseURL)
	if c.Webhook.Format == dmarcd.FormatJSON {
		message = wire.NewEvent(c.Delivery.Event, s.BaseURL)
	}
	body, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	request, err := post(ctx, c.Webhook.URL, body)
	if err != nil {
		return nil, err
	}
	id := c.Delivery.Event.ID.String()
	request.Header.Set("Webhook-Id", id)
	request.Header.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
	request.Header.Set("Webhook-Signature", sign(id, now, body, secrets))
	return request, nil
}

// post returns a POST of a JSON document.
func post(ctx context.Context, endpoint string, body []byte) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "dmarcd")
	return request, nil
}

// secretSize is the number of random bytes of a secret; the standard requires 24 to 64.
const secretSize = 32

// NewSecret returns a random secret.
func NewSecret() []byte {
	secret := make([]byte, secretSize)
	_, _ = rand.Read(secret) // never fails
	return secret
}

// FormatSecret returns a secret as users copy it.
func FormatSecret(secret []byte) string {
	return wire.SecretPrefix + base64.StdEncoding.EncodeToString(secret)
}

// sign returns the header webhook-signature of a message: a signature with each secret, separated by
// spaces.
func sign(id string, at time.Time, body []byte, secrets [][]byte) string {
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		signatures[i] = wire.Signature(id, at, body, secret)
	}
	return strings.Join(signatures, " ")
}
