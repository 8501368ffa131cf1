// Package mail sends email about events and invitations over the operator's relay: as text and
// HTML (RFC 2046), with one-click unsubscribe (RFC 8058), signed with DKIM if there is a key.
// Callers decide which messages are sent, and when.
package mail

import (
	"bytes"
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// Timeout is how long sending a message may take.
const Timeout = 30 * time.Second

// Settings are the operator's settings of the relay.
type Settings struct {
	// Relay is the URL of the relay: smtp:// requires STARTTLS, unless its parameter tls is
	// off; smtps:// begins with TLS.
	Relay string
	// From is the address of the sender, with or without a name.
	From string
	// Key is a file with the private DKIM key, and Selector names its public key in the domain
	// of From. Without them messages are not signed.
	Key, Selector string
}

// Relay sends messages. It is safe for concurrent use.
type Relay struct {
	url    *url.URL
	from   *mail.Address
	dialer *net.Dialer
	signer func() *gomail.DKIMSigner // nil for none
	now    func() time.Time
}

// NewRelay returns the relay of some settings, which must be valid. It reads the key.
func NewRelay(settings Settings, dialer *net.Dialer, now func() time.Time) (*Relay, error) {
	r := &Relay{dialer: dialer, now: now}
	var err error
	if r.url, err = url.Parse(settings.Relay); err != nil {
		return nil, errors.New("the URL of the mail relay is malformed") // it may hold a password
	}
	if r.from, err = mail.ParseAddress(settings.From); err != nil {
		return nil, fmt.Errorf("parse the sender of mail: %w", err)
	}
	if settings.Key == "" {
		return r, nil
	}
	text, err := os.ReadFile(settings.Key)
	if err != nil {
		return nil, fmt.Errorf("read the DKIM key: %w", err)
	}
	var key crypto.Signer
	if key, err = gomail.PrivKeyFromPEM(text); err != nil {
		return nil, fmt.Errorf("read the DKIM key %s: %w", settings.Key, err)
	}
	r.signer = func() *gomail.DKIMSigner { return gomail.NewDKIMSigner(r.domain(), settings.Selector, key) }
	return r, nil
}

// domain returns the domain of the sender address.
func (r *Relay) domain() string {
	_, domain, _ := strings.Cut(r.from.Address, "@")
	return domain
}

// Message is an email message.
type Message struct {
	To string
	// ID is the left part of the Message-ID, which is the same for every attempt.
	ID string
	// Unsubscribe is a URL that unsubscribes the recipient by POST; "" for none.
	Unsubscribe string
	Content
}

// Send sends a message, and returns the reply code of the relay, 0 if there was no reply.
func (r *Relay) Send(ctx context.Context, m Message) (code int, err error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	message, err := r.message(m)
	if err != nil {
		return 0, err
	}
	client, err := r.client()
	if err != nil {
		return 0, err
	}
	if err := client.DialAndSendWithContext(ctx, message); err != nil {
		var rejected *gomail.SendError
		if errors.As(err, &rejected) {
			return rejected.ErrorCode(), err
		}
		return 0, err
	}
	return 250, nil
}

// message returns the encoded message.
func (r *Relay) message(m Message) (*gomail.Msg, error) {
	text, html, err := m.render(m.Unsubscribe)
	if err != nil {
		return nil, err
	}
	message := gomail.NewMsg()
	message.FromMailAddress(r.from)
	if err := message.To(m.To); err != nil {
		return nil, err
	}
	message.Subject(oneLine(m.Subject))
	message.SetDateWithValue(r.now())
	message.SetMessageIDWithValue(m.ID + "@" + r.domain())
	message.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834
	if m.Unsubscribe != "" {
		message.SetGenHeader(gomail.HeaderListUnsubscribe, "<"+m.Unsubscribe+">")
		message.SetGenHeader(gomail.HeaderListUnsubscribePost, "List-Unsubscribe=One-Click")
	}
	message.SetBodyString(gomail.TypeTextPlain, text)
	message.AddAlternativeString(gomail.TypeTextHTML, html)
	if m.Chart != nil {
		if err := message.EmbedReader("chart.png", bytes.NewReader(m.Chart.PNG), gomail.WithFileContentID("<"+chartID+">"), gomail.WithFileContentType("image/png")); err != nil {
			return nil, err
		}
	}
	if m.File != nil {
		if err := message.AttachReader(m.File.Name, bytes.NewReader(m.File.Data), gomail.WithFileContentType(gomail.ContentType(m.File.Type))); err != nil {
			return nil, err
		}
	}
	return message, nil
}

// client returns a client for one connection.
func (r *Relay) client() (*gomail.Client, error) {
	host, port := r.url.Hostname(), 587
	if r.url.Scheme == "smtps" {
		port = 465
	}
	if text := r.url.Port(); text != "" {
		var err error
		if port, err = strconv.Atoi(text); err != nil {
			return nil, err
		}
	}
	config := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	options := []gomail.Option{gomail.WithPort(port), gomail.WithTimeout(Timeout), gomail.WithTLSConfig(config), gomail.WithHELO(r.domain())}
	switch {
	case r.url.Scheme == "smtps":
		// The library dials with TLS only if the dialer is its own.
		dialer := &tls.Dialer{NetDialer: r.dialer, Config: config}
		options = append(options, gomail.WithSSL(), gomail.WithDialContextFunc(dialer.DialContext))
	case r.url.Query().Get("tls") == "off":
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS), gomail.WithDialContextFunc(r.dialer.DialContext))
	default:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory), gomail.WithDialContextFunc(r.dialer.DialContext))
	}
	if password, ok := r.url.User.Password(); ok {
		options = append(options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover), gomail.WithUsername(r.url.User.Username()), gomail.WithPassword(password))
	}
	if r.signer != nil {
		options = append(options, gomail.WithAlwaysDKIMSign(r.signer()))
	}
	return gomail.NewClient(host, options...)
}

// oneLine returns a text as one line of at most 150 characters.
func oneLine(text string) string {
	runes := []rune(visible(text))
	if len(runes) > 150 {
		return string(runes[:149]) + "…"
	}
	return string(runes)
}

// SendInvitation sends the link of an invitation. team is "" for one into none.
func (r *Relay) SendInvitation(ctx context.Context, to, team, link string) error {
	content := Content{
		Subject: "You were invited to dmarcd", Title: "You were invited to dmarcd",
		Paragraphs: []string{"dmarcd monitors DMARC, SPF and DKIM of your domains.", "The link works once, for 7 days."},
		Action:     Link{Text: "Accept the invitation", URL: link},
		Footer:     "You get this message because someone entered your address. If you did not expect it, ignore it.",
	}
	if team != "" {
		content.Subject = fmt.Sprintf("You were invited to the team %s", team)
		content.Title = content.Subject
	}
	return r.sendOnce(ctx, to, "invitation", content)
}

// SendConfirmation asks the owner of the address of w whether to send events of a team to it, or the
// report for managers.
func (r *Relay) SendConfirmation(ctx context.Context, team string, w dmarcd.Webhook, link string) error {
	what := "notifications about its domains, such as DNS changes and problems with DMARC,"
	if w.IsForManagers() {
		what = "its monthly report for managers, a PDF that shows how well its domains are protected,"
	}
	return r.sendOnce(ctx, w.Address(), "confirmation", Content{
		Subject: fmt.Sprintf("Confirm email from the team %s", team), Title: fmt.Sprintf("Receive email from the team %s?", team),
		Paragraphs: []string{"The team wants to send " + what + " to this address. You can unsubscribe at any time."},
		Action:     Link{Text: "Confirm", URL: link},
		Footer:     "You get this message because a member of the team entered your address. If you do not want these emails, ignore it: nothing else is sent.",
	})
}

// SendDisabled notifies an owner of a team that a channel was turned off. link leads to the page.
func (r *Relay) SendDisabled(ctx context.Context, to, team string, w dmarcd.Webhook, link string) error {
	return r.sendOnce(ctx, to, "disabled."+w.ID.String(), Content{
		Subject: fmt.Sprintf("A channel of the team %s was turned off", team), Title: fmt.Sprintf("A channel of the team %s was turned off", team),
		Paragraphs: []string{"Notifications are no longer sent to it. Fix the cause, then turn the channel on again.", w.DisabledReason},
		Details:    []phrase.Detail{{Name: "Channel", Value: w.ID.String() + " (" + string(w.Format) + ")"}, {Name: "URL", Value: w.Masked().URL}},
		Action:     Link{Text: "Open notifications", URL: link},
		Footer:     "You get this message because you are an owner of the team.",
	})
}

// sendOnce sends a message that is not retried.
func (r *Relay) sendOnce(ctx context.Context, to, about string, content Content) error {
	_, err := r.Send(ctx, Message{To: to, ID: fmt.Sprintf("%s.%d", about, r.now().UnixNano()), Content: content})
	return err
}

// chartDays is the number of days in the chart of a message about an event.
const chartDays = 30

// Sender sends deliveries to endpoints of the format email. It is safe for concurrent use.
type Sender struct {
	// Relay sends; nil is that the operator has configured none.
	Relay *Relay
	// Open opens the sealed secret of a webhook.
	Open func(w dmarcd.Webhook, sealed []byte) ([]byte, error)
	// Daily returns the messages of a domain by day.
	Daily func(ctx context.Context, team dmarcd.TeamID, domain string, days dmarcd.Days) (map[dmarcd.Day]Bar, error)
	// Digest returns the content of a digest, except its footer.
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
		result.Problem = "This installation cannot send email. An operator can configure a relay with DMARCD_MAIL_RELAY."
		return result, nil
	}
	message, err := s.message(ctx, c)
	if err != nil {
		result.Problem = "No message could be made from the stored data. It is tried again later; if this goes on, delete the channel, and add it again."
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

// content returns the content of a message about an event.
func (s *Sender) content(ctx context.Context, c dmarcd.ClaimedDelivery) (Content, error) {
	e := c.Delivery.Event
	footer := fmt.Sprintf("You get this message because %s is subscribed to “%s” in dmarcd.", c.Webhook.Address(), phrase.Kind(e.Kind))
	if e.Kind.IsDigest() {
		content, err := s.Digest(ctx, c.Team, e)
		content.Footer = footer
		return content, err
	}
	event := wire.NewEvent(e, s.BaseURL)
	content := Content{
		Subject: event.Summary, Title: event.Summary, Details: phrase.Details(e), Action: Link{Text: "Open in dmarcd", URL: event.Data.Link}, Footer: footer,
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

// PageLink returns the link to a page of an endpoint that works without signing in: unsubscribe
// or confirm. secret is the endpoint's.
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
