package dmarcd

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxWebhooks is how many webhooks a team may have.
const MaxWebhooks = 50

// maxWebhookURL bounds the URL of a webhook in bytes.
const maxWebhookURL = 2048

// Webhook is an endpoint to which the events of a team are delivered.
type Webhook struct {
	ID  WebhookID
	URL string
	// Kinds and Domains are the events that are delivered; nil is all.
	Kinds     []EventKind
	Domains   []string
	CreatedAt time.Time
	// DisabledAt is when deliveries ended, for DisabledReason; the zero value is an
	// enabled webhook.
	DisabledAt     time.Time
	DisabledReason string
	// FailingSince is the first failure after the last success; the zero value is none.
	FailingSince time.Time
	// Secrets sign deliveries, the newest first, each sealed for SecretContext.
	Secrets [][]byte
}

// Enabled reports whether events are delivered.
func (w Webhook) Enabled() bool { return w.DisabledAt.IsZero() }

// SecretContext is what the secrets are sealed for.
func (w Webhook) SecretContext() string { return "webhook " + w.ID.String() }

// Wants reports whether an event is to be delivered.
func (w Webhook) Wants(e Event) bool {
	return w.Enabled() && (w.Kinds == nil || slices.Contains(w.Kinds, e.Kind)) && (w.Domains == nil || slices.Contains(w.Domains, e.Domain))
}

// Validate returns an *InvalidError if the description of the webhook cannot be right.
// Domains must have the form that ParseName returns.
func (w Webhook) Validate() error {
	if err := validateEndpoint(w.URL); err != "" {
		return &InvalidError{Field: "url", Message: err}
	}
	for _, kind := range w.Kinds {
		if !slices.Contains(EventKinds(), kind) {
			return &InvalidError{Field: "kinds", Message: "There are no events of the kind " + strconv.Quote(string(kind)) + ". The documentation lists all kinds."}
		}
	}
	if w.Kinds != nil && len(w.Kinds) == 0 || w.Domains != nil && len(w.Domains) == 0 {
		return &InvalidError{Field: "kinds", Message: "An empty list would match no event. Use null for all kinds or all domains."}
	}
	return nil
}

// validateEndpoint returns what is wrong with the URL of a webhook, "" for nothing.
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

// validHost reports whether a host is an IP address or a name. A name whose last label is
// a number is an address in a form that only some programs read.
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

// DeliveryState is how far the delivery of an event is.
type DeliveryState string

// The states of a delivery.
const (
	DeliveryPending   DeliveryState = "pending" // it was not tried yet, or is tried again
	DeliveryDelivered DeliveryState = "delivered"
	DeliveryFailed    DeliveryState = "failed" // it is not tried again
)

// WebhookDelivery is the delivery of an event to a webhook.
type WebhookDelivery struct {
	ID        DeliveryID
	Webhook   WebhookID
	Event     Event
	State     DeliveryState
	CreatedAt time.Time
	// Attempts is how often it was tried since it was created or retried by a user; NextAt
	// is when it is tried next, and GiveUpAt when it fails for good.
	Attempts         int
	NextAt, GiveUpAt time.Time
	// Test tells that a user asked for it. It is tried once.
	Test bool
	DeliveryResult
}

// DeliveryResult is how the last attempt of a delivery ended.
type DeliveryResult struct {
	// At is when it began; the zero value is that there was none.
	At time.Time
	// Status is that of the answer, and Took the time until it arrived; both are 0 without
	// an answer.
	Status int
	Took   time.Duration
	// Problem is why it failed, in words for users; "" for success.
	Problem string
}

// ClaimedDelivery is a delivery that one worker may try now.
type ClaimedDelivery struct {
	Team       TeamID
	Webhook    Webhook
	Delivery   WebhookDelivery
	LeaseUntil time.Time // the sign of the claim
}
