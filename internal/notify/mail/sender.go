package mail

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// chartDays is how many days the chart in a message about an event shows.
const chartDays = 30

// Sender sends deliveries to endpoints of the format email. It is safe for concurrent use.
type Sender struct {
	// Relay sends; nil is that the operator has configured none.
	Relay *Relay
	// Open opens the sealed secret of a webhook.
	Open func(w dmarcd.Webhook, sealed []byte) ([]byte, error)
	// Daily returns the messages of a domain by day.
	Daily func(ctx context.Context, team dmarcd.TeamID, domain string, days dmarcd.Days) (map[dmarcd.Day]Bar, error)
	// Digest returns what the message with a digest says, except its footer.
	Digest func(ctx context.Context, team dmarcd.TeamID, e dmarcd.Event) (Content, error)
	// BaseURL is where clients see the API, for links.
	BaseURL string
	Now     func() time.Time
}

// Send tries a delivery once. The error, for the log, is why it failed.
func (s *Sender) Send(ctx context.Context, c dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error) {
	began := s.Now()
	result := dmarcd.DeliveryResult{At: began}
	if s.Relay == nil {
		result.Problem = "This installation sends no mail. An operator can configure a relay with DMARCD_MAIL_RELAY."
		return result, nil
	}
	message, err := s.message(ctx, c)
	if err != nil {
		result.Problem = "The message could not be made. An operator finds the reason in the log."
		return result, err
	}
	result.Status, err = s.Relay.Send(ctx, message)
	result.Took = s.Now().Sub(began)
	switch {
	case err == nil:
	case result.Status == 0:
		result.Problem = "The mail relay cannot be reached."
	default:
		result.Problem = fmt.Sprintf("The mail relay refused the message with code %d.", result.Status)
	}
	return result, err
}

func (s *Sender) message(ctx context.Context, c dmarcd.ClaimedDelivery) (Message, error) {
	secret, err := s.Open(c.Webhook, c.Webhook.Secrets[0])
	if err != nil {
		return Message{}, fmt.Errorf("open the secret of webhook %s: %w", c.Webhook.ID, err)
	}
	unsubscribe, err := PageLink(s.BaseURL, "unsubscribe", c.Webhook.ID, secret)
	if err != nil {
		return Message{}, err
	}
	content, err := s.content(ctx, c)
	return Message{
		To: c.Webhook.Address(), ID: c.Delivery.Event.ID.String() + "." + c.Webhook.ID.String(), Unsubscribe: unsubscribe, Content: content,
	}, err
}

// content returns what a message about an event says.
func (s *Sender) content(ctx context.Context, c dmarcd.ClaimedDelivery) (Content, error) {
	e := c.Delivery.Event
	footer := fmt.Sprintf("You get this message because %s is subscribed to %s events of dmarcd.", c.Webhook.Address(), e.Kind)
	if e.Kind.IsDigest() {
		content, err := s.Digest(ctx, c.Team, e)
		content.Footer = footer
		return content, err
	}
	event := wire.NewEvent(e, s.BaseURL)
	content := Content{
		Subject: event.Summary, Title: event.Summary, Details: e.Details(), Action: Link{Text: "Open in dmarcd", URL: event.Data.Link}, Footer: footer,
	}
	if e.Domain == "" {
		return content, nil
	}
	last := dmarcd.DayOf(s.Now())
	first := last - chartDays + 1
	days, err := s.Daily(ctx, c.Team, e.Domain, dmarcd.Days{From: &first, To: &last})
	if err != nil {
		return content, err
	}
	bars := make([]Bar, chartDays)
	for i := range bars {
		bars[i] = days[first+dmarcd.Day(i)]
	}
	content.Chart, err = NewChart(bars, fmt.Sprintf("of %s in the last %d days", e.Domain, chartDays))
	return content, err
}

// PageLink returns the link to a page about an endpoint that works without signing in:
// unsubscribe or confirm. The secret is that of the endpoint.
func PageLink(baseURL, page string, id dmarcd.WebhookID, secret []byte) (string, error) {
	base, err := url.Parse(baseURL)
	if err != nil {
		return "", err
	}
	link := url.URL{Scheme: base.Scheme, Host: base.Host, Path: "/app/" + page + "/" + id.String() + "." + authenticator(page, id, secret)}
	return link.String(), nil
}

// ParseToken returns the endpoint that the last segment of a PageLink names. CheckToken must
// be called with its secret.
func ParseToken(token string) (dmarcd.WebhookID, error) {
	id, _, _ := strings.Cut(token, ".")
	return dmarcd.ParseWebhookID(id)
}

// CheckToken reports whether a token was made for a page and an endpoint.
func CheckToken(token, page string, id dmarcd.WebhookID, secret []byte) bool {
	return hmac.Equal([]byte(token), []byte(id.String()+"."+authenticator(page, id, secret)))
}

// authenticator returns the HMAC-SHA256 of a page and an endpoint.
func authenticator(page string, id dmarcd.WebhookID, secret []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(page + " " + id.String()))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
