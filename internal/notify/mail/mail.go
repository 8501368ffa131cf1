// Package mail sends email about events and invitations over the relay of the
// operator: as text and HTML (RFC 2046), with one-click unsubscribe (RFC 8058), signed with
// DKIM if there is a key. Which messages are sent, and when, is left to others.
package mail

import (
	"bytes"
	"context"
	"crypto"
	"crypto/tls"
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
)

// Timeout is how long sending a message may take.
const Timeout = 30 * time.Second

// Settings are those of the operator.
type Settings struct {
	// Relay is the URL of the relay: smtp:// requires STARTTLS, unless its parameter tls is
	// off; smtps:// begins with TLS.
	Relay string
	// From is the address of the sender, with or without a name.
	From string
	// Key is a file with the private key for DKIM, Selector that of its public key in the
	// domain of From; both are "" for no signature.
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

// domain returns that of the sender.
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

// Send sends a message, and returns the code of the relay, 0 if there was no answer.
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

// message returns a message as it is sent.
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
