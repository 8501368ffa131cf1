package dmarcd

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxWebhooks is the limit per team. The personal digests of members do not count: they must not
// prevent owners from adding a webhook.
const MaxWebhooks = 50

// maxWebhookURL is in bytes.
const maxWebhookURL = 2048

// WebhookFormat is the form in which events are delivered to an endpoint.
type WebhookFormat string

// The formats. The URL of a chat service is its secret: it is stored sealed, and shown
// masked. The URL of an email address is a mailto: URL.
const (
	FormatStandard  WebhookFormat = "standard" // Standard Webhooks 1.0
	FormatJSON      WebhookFormat = "json"     // the event alone, signed like standard
	FormatSlack     WebhookFormat = "slack"
	FormatTeams     WebhookFormat = "teams" // Microsoft Teams
	FormatDiscord   WebhookFormat = "discord"
	FormatPagerDuty WebhookFormat = "pagerduty"
	FormatEmail     WebhookFormat = "email"
)

// WebhookFormats returns all formats.
func WebhookFormats() []WebhookFormat {
	return []WebhookFormat{FormatStandard, FormatJSON, FormatSlack, FormatTeams, FormatDiscord, FormatPagerDuty, FormatEmail}
}

// Signed reports whether deliveries are signed with a secret.
func (f WebhookFormat) Signed() bool { return f == FormatStandard || f == FormatJSON }

// HidesURL reports whether the URL is the secret.
func (f WebhookFormat) HidesURL() bool { return !f.Signed() && f != FormatEmail }

// mailto is the scheme of the URL of an email address.
const mailto = "mailto:"

// Webhook is an endpoint that receives the events of a team.
type Webhook struct {
	ID WebhookID
	// URL is the endpoint. It is masked where it is the secret, and for those who may not
	// change it: see Masked.
	URL    string
	Format WebhookFormat
	// Kinds and Domains select events; nil selects all.
	Kinds     []EventKind
	Domains   []string
	CreatedAt time.Time
	// DisabledAt is when the webhook was disabled, DisabledReason why; zero if it is
	// enabled.
	DisabledAt     time.Time
	DisabledReason string
	// FailingSince is the first failure after the last success; zero if there is none.
	FailingSince time.Time
	// Secrets sign deliveries, the newest first, each encrypted for SecretContext. For a chat service
	// the secret is the URL; for an email address it authenticates the links in messages.
	Secrets [][]byte
}

// Enabled reports whether events are delivered.
func (w Webhook) Enabled() bool { return w.DisabledAt.IsZero() }

// SecretContext is the context that the secrets are bound to.
func (w Webhook) SecretContext() string { return "webhook " + w.ID.String() }

// Address returns the email address of a webhook of the format email.
func (w Webhook) Address() string { return strings.TrimPrefix(w.URL, mailto) }

// IsDigest reports whether the webhook sends digests alone, by email.
func (w Webhook) IsDigest() bool {
	return w.Format == FormatEmail && len(w.Kinds) > 0 && !slices.ContainsFunc(w.Kinds, func(kind EventKind) bool { return !kind.IsDigest() })
}

// IsForManagers reports whether the webhook sends the report for managers and nothing else.
func (w Webhook) IsForManagers() bool {
	return w.Format == FormatEmail && slices.Equal(w.Kinds, []EventKind{DigestManagers})
}

// Wants reports whether the webhook receives the event. A webhook without Kinds receives no digests.
func (w Webhook) Wants(e Event) bool {
	if w.Kinds == nil && e.Kind.IsDigest() {
		return false
	}
	return w.Enabled() && (w.Kinds == nil || slices.Contains(w.Kinds, e.Kind)) && (w.Domains == nil || slices.Contains(w.Domains, e.Domain))
}

// Validate returns an *InvalidError if a setting is invalid. Domains must be normalized
// by ParseName.
func (w Webhook) Validate() error {
	if !slices.Contains(WebhookFormats(), w.Format) {
		return &InvalidError{Field: "format", Message: "The format must be standard, json, slack, teams, discord, pagerduty or email."}
	}
	if w.Format == FormatEmail {
		if address, err := ParseEmail(w.Address()); err != nil || mailto+address != w.URL {
			return &InvalidError{Field: "url", Message: "Enter an email address as a URL, such as mailto:name@example.com."}
		}
	} else if err := validateEndpoint(w.URL); err != "" {
		return &InvalidError{Field: "url", Message: err}
	}
	for _, kind := range w.Kinds {
		if err := kind.Validate("kinds"); err != nil {
			return err
		}
	}
	if w.Domains != nil && slices.ContainsFunc(w.Kinds, EventKind.IsDigest) {
		return &InvalidError{Field: "domains", Message: "A digest is about all domains. Remove the domains, or use another channel for the digest."}
	}
	if w.Kinds != nil && len(w.Kinds) == 0 || w.Domains != nil && len(w.Domains) == 0 {
		return &InvalidError{Field: "kinds", Message: "An empty list would match no event. Use null for all kinds or all domains."}
	}
	return nil
}

// validateEndpoint returns the problem with a webhook URL, "" if it is valid.
func validateEndpoint(text string) string {
	const form = "The URL must begin with https:// and name a host, such as https://example.com/hooks/dmarc. http:// works for networks that the operator allows."
	u, err := url.Parse(text)
	switch {
	case len(text) > maxWebhookURL:
		return "The URL is too long: at most " + strconv.Itoa(maxWebhookURL) + " characters."
	case err != nil, u.Scheme != "https" && u.Scheme != "http", u.Opaque != "", !validHost(u.Hostname()):
		return form
	case u.User != nil:
		return "The URL must not hold a user name or password. Verify the signature of deliveries instead."
	case u.Fragment != "":
		return "The URL must not have a fragment (#…), which is never sent."
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return "The port of the URL must be a number from 1 to 65535."
		}
	}
	return ""
}

// Masked returns the webhook with its URL as it is shown to those who may not change it, and
// to everyone in audit entries, events and logs: the scheme and the host. The rest may
// contain a key. An email address stays.
func (w Webhook) Masked() Webhook {
	if w.Format == FormatEmail {
		return w
	}
	const rest = "/..."
	u, err := url.Parse(w.URL)
	if err != nil {
		w.URL = rest
		return w
	}
	w.URL = u.Scheme + "://" + u.Host + rest
	return w
}

// validHost reports whether a host is an IP address or a name. It rejects names whose last label is a
// number: some programs parse them as addresses.
func validHost(host string) bool {
	if address, err := netip.ParseAddr(host); err == nil {
		return address.Zone() == ""
	}
	host = strings.TrimSuffix(host, ".")
	if host == "" || len(host) > 253 {
		return false
	}
	last := ""
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, func(r rune) bool {
			return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		}) {
			return false
		}
		last = strings.ToLower(label)
	}
	_, err := strconv.ParseUint(last, 0, 64)
	return err != nil && strings.Trim(last, "0123456789") != "" && !strings.HasPrefix(last, "0x")
}

// DeliveryState is the state of the delivery of an event.
type DeliveryState string

// The states of a delivery.
const (
	DeliveryWaiting   DeliveryState = "waiting"  // not attempted yet
	DeliveryRetrying  DeliveryState = "retrying" // failed, and attempted again at NextAt
	DeliveryDelivered DeliveryState = "delivered"
	DeliveryNotSent   DeliveryState = "not_sent" // failed, without further attempts
)

// Pending reports whether another attempt follows.
func (s DeliveryState) Pending() bool { return s == DeliveryWaiting || s == DeliveryRetrying }

// WebhookDelivery is the delivery of an event to a webhook.
type WebhookDelivery struct {
	ID        DeliveryID
	Webhook   WebhookID
	Event     Event
	State     DeliveryState
	CreatedAt time.Time
	// Attempts counts attempts since the delivery was created or retried by a user;
	// NextAt is the time of the next, GiveUpAt the deadline.
	Attempts         int
	NextAt, GiveUpAt time.Time
	// Test is true if a user requested the delivery. It is attempted once.
	Test bool
	DeliveryResult
}

// DeliveryResult is the result of the last attempt.
type DeliveryResult struct {
	// At is the start of the attempt, zero if there was none.
	At time.Time
	// Status is the HTTP status, Took the time until the response; both are 0 without a
	// response.
	Status int
	Took   time.Duration
	// Problem explains a failure to users; "" for success.
	Problem string
}

// ClaimedDelivery is a delivery that one worker may attempt now.
type ClaimedDelivery struct {
	Team       TeamID
	Webhook    Webhook
	Delivery   WebhookDelivery
	LeaseUntil time.Time // identifies the claim
}
