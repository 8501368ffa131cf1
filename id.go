package dmarcd

import (
	"fmt"
	"strconv"
	"strings"
)

// AuditID names an entry of the audit log, outside the process as "aud_…".
type AuditID int64

// String returns the form used outside the process.
func (id AuditID) String() string { return formatID("aud_", int64(id)) }

// Identifiers are random positive numbers: a sequence would reveal the activity of other
// teams. Outside the process they are strings with a prefix for their type.
type (
	// TeamID names a team, outside the process as "team_…".
	TeamID int64
	// TokenID names a token, outside the process as "tok_…".
	TokenID int64
	// DomainID names a domain of one team, outside the process as "dom_…".
	DomainID int64
	// CheckID names a stored check, outside the process as "chk_…".
	CheckID int64
	// EventID names an event, outside the process as "evt_…".
	EventID int64
	// ReportID names a report of one team, outside the process as "rep_…".
	ReportID int64
	// RejectedID names something rejected, outside the process as "rej_…".
	RejectedID int64
	// MailboxID names a mailbox that is read by IMAP, outside the process as
	// "box_…".
	MailboxID int64
	// UserID names a user, outside the process as "user_…".
	UserID int64
	// WebhookID names a webhook, outside the process as "whk_…".
	WebhookID int64
	// DeliveryID names the delivery of an event to a webhook, outside the process as
	// "dlv_…".
	DeliveryID int64
	// PasskeyID is the id of a passkey, such as "pky_…".
	PasskeyID int64
)

const (
	teamPrefix     = "team_"
	tokenPrefix    = "tok_"
	domainPrefix   = "dom_"
	checkPrefix    = "chk_"
	eventPrefix    = "evt_"
	reportPrefix   = "rep_"
	rejectedPrefix = "rej_"
	mailboxPrefix  = "box_"
	userPrefix     = "user_"
	webhookPrefix  = "whk_"
	deliveryPrefix = "dlv_"
	passkeyPrefix  = "pky_"
)

// String returns the form used outside the process.
func (id TeamID) String() string { return formatID(teamPrefix, int64(id)) }

// String returns the form used outside the process.
func (id TokenID) String() string { return formatID(tokenPrefix, int64(id)) }

// String returns the form used outside the process.
func (id DomainID) String() string { return formatID(domainPrefix, int64(id)) }

// String returns the form used outside the process.
func (id CheckID) String() string { return formatID(checkPrefix, int64(id)) }

// String returns the form used outside the process.
func (id EventID) String() string { return formatID(eventPrefix, int64(id)) }

// String returns the form used outside the process.
func (id ReportID) String() string { return formatID(reportPrefix, int64(id)) }

// String returns the form used outside the process.
func (id RejectedID) String() string { return formatID(rejectedPrefix, int64(id)) }

// String returns the form used outside the process.
func (id MailboxID) String() string { return formatID(mailboxPrefix, int64(id)) }

// String returns the form used outside the process.
func (id UserID) String() string { return formatID(userPrefix, int64(id)) }

// String returns the form used outside the process.
func (id WebhookID) String() string { return formatID(webhookPrefix, int64(id)) }

// String returns the form used outside the process.
func (id DeliveryID) String() string { return formatID(deliveryPrefix, int64(id)) }

// String returns the form used outside the process.
func (id PasskeyID) String() string { return formatID(passkeyPrefix, int64(id)) }

// ParsePasskeyID parses the result of PasskeyID.String, or returns an InvalidError.
func ParsePasskeyID(s string) (PasskeyID, error) {
	return parseID[PasskeyID](passkeyPrefix, s, "A passkey's id looks like %q.")
}

// ParseWebhookID parses the result of WebhookID.String, or returns an InvalidError.
func ParseWebhookID(s string) (WebhookID, error) {
	return parseID[WebhookID](webhookPrefix, s, "A webhook's id looks like %q; `dmarcd webhook list` shows them.")
}

// ParseDeliveryID parses the result of DeliveryID.String, or returns an InvalidError.
func ParseDeliveryID(s string) (DeliveryID, error) {
	return parseID[DeliveryID](deliveryPrefix, s, "A delivery's id looks like %q.")
}

// ParseTokenID parses the result of TokenID.String, or returns an InvalidError.
func ParseTokenID(s string) (TokenID, error) {
	return parseID[TokenID](tokenPrefix, s, "A token's id looks like %q; `dmarcd token list` shows them.")
}

// ParseReportID parses the result of ReportID.String, or returns an InvalidError.
func ParseReportID(s string) (ReportID, error) {
	return parseID[ReportID](reportPrefix, s, "A report's id looks like %q; `dmarcd report list` shows them.")
}

// ParseRejectedID parses the result of RejectedID.String, or returns an InvalidError.
func ParseRejectedID(s string) (RejectedID, error) {
	return parseID[RejectedID](rejectedPrefix, s, "The id of something rejected looks like %q; `dmarcd report rejected` shows them.")
}

// ParseTeamID parses the result of TeamID.String, or returns an InvalidError.
func ParseTeamID(s string) (TeamID, error) {
	return parseID[TeamID](teamPrefix, s, "A team's id looks like %q; `dmarcd team list` shows them.")
}

// ParseMailboxID parses the result of MailboxID.String, or returns an InvalidError.
func ParseMailboxID(s string) (MailboxID, error) {
	return parseID[MailboxID](mailboxPrefix, s, "A mailbox's id looks like %q; `dmarcd mailbox list` shows them.")
}

// exampleID is the example in error messages.
const exampleID = 78568

// parseID parses an id. form is an error message with a placeholder for an example.
func parseID[ID ~int64](prefix, s, form string) (ID, error) {
	digits, ok := strings.CutPrefix(s, prefix)
	n, err := strconv.ParseInt(digits, 36, 64)
	if !ok || err != nil || n <= 0 || formatID(prefix, n) != s {
		return 0, &InvalidError{Field: "id", Message: fmt.Sprintf(form, formatID(prefix, exampleID))}
	}
	return ID(n), nil
}

func formatID(prefix string, id int64) string {
	return prefix + strconv.FormatInt(id, 36)
}
