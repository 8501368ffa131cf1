package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/notify/chat"
	"github.com/dmarcd/dmarcd/internal/outbound"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// Timeout is how long an endpoint has to answer.
const Timeout = 15 * time.Second

// What users see for an endpoint that does not answer. As with mailboxes, all failures
// before an answer have one text: the endpoint may be in a network that users cannot see.
const (
	unreachable       = "The endpoint cannot be reached, or gave no answer within 15 seconds."
	addressNotAllowed = "This installation does not connect to private or reserved addresses, or to others without https. An operator can allow a network with DMARCD_OUTBOUND_ALLOW."
)

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

// Send tries a delivery once. Any status of the class 2xx is a success. The answer is not
// read beyond its header. The error, for the log, is why there was no answer.
func (s *Sender) Send(ctx context.Context, c dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	began := s.Now()
	result := dmarcd.DeliveryResult{At: began}
	request, err := s.request(ctx, c, began)
	if err != nil {
		result.Problem = "The delivery could not be signed. An operator finds the reason in the log."
		return result, withoutURL(err)
	}
	response, err := s.Client.Do(request)
	err = withoutURL(err)
	switch {
	case errors.Is(err, outbound.ErrNotAllowed):
		result.Problem = addressNotAllowed
		return result, err
	case err != nil:
		result.Problem = unreachable
		return result, err
	}
	_ = response.Body.Close() // nothing in it matters
	result.Status, result.Took = response.StatusCode, s.Now().Sub(began)
	switch class := response.StatusCode / 100; {
	case class == 3:
		result.Problem = fmt.Sprintf("The endpoint answered with a redirect (status %d), which is not followed. Enter the URL that it leads to.", response.StatusCode)
	case class != 2:
		result.Problem = fmt.Sprintf("The endpoint answered with status %d.", response.StatusCode)
	}
	return result, nil
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
