package dmarcd

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Security is how the connection to a mail server is protected.
type Security string

// The kinds of protection.
const (
	// SecurityTLS speaks TLS from the first byte (RFC 8314 §3), on port 993.
	SecurityTLS Security = "tls"
	// SecuritySTARTTLS begins in the clear and asks for TLS before anything
	// else; a server that has none is not used.
	SecuritySTARTTLS Security = "starttls"
	// SecurityNone protects nothing, not even the password.
	SecurityNone Security = "none"
)

// Port returns the port that servers listen on for it.
func (s Security) Port() int {
	if s == SecurityTLS {
		return 993
	}
	return 143
}

// LoginMethod is how a mailbox is logged in to.
type LoginMethod string

// The methods.
const (
	// LoginPassword is a user name and a password.
	LoginPassword LoginMethod = "password"
	// LoginOAuth is a user name and an access token (RFC 7628, XOAUTH2).
	LoginOAuth LoginMethod = "oauth"
)

// AfterReading is what becomes of a message once what it brought is kept.
type AfterReading string

// What may become of it.
const (
	// AfterKeep leaves it as it is.
	AfterKeep AfterReading = "keep"
	// AfterFlag marks it as seen.
	AfterFlag AfterReading = "flag"
	// AfterMove moves it to another folder.
	AfterMove AfterReading = "move"
	// AfterDelete deletes it for good.
	AfterDelete AfterReading = "delete"
)

// Mailbox is a folder on a mail server that is read by IMAP for a team.
type Mailbox struct {
	ID   MailboxID
	Team TeamID

	Host     string
	Port     int
	Security Security
	Username string
	Method   LoginMethod
	// Secret is what the mailbox is logged in to with, sealed with a key that is
	// not kept beside it. It is set only where it is needed.
	Secret []byte
	Folder string
	After  AfterReading
	MoveTo string // the folder of AfterMove

	// UIDValidity and LastUID say up to which message the folder was read
	// (RFC 9051 §2.3.1.1); both are 0 before the first.
	UIDValidity, LastUID uint32

	CreatedAt time.Time
	SeenAt    time.Time // when it was last looked into; zero: not yet
	// Error says in words why the last look failed and ErrorAt when that was;
	// "" if it did not.
	Error   string
	ErrorAt time.Time
	// PausedAt is when reading stopped until the mailbox is resumed, for the reason
	// in Error; zero: it is read.
	PausedAt time.Time
	// LeaseUntil is until when one process alone reads the mailbox.
	LeaseUntil time.Time
}

// Address is the server with its port.
func (m Mailbox) Address() string {
	host := m.Host
	if strings.Contains(host, ":") { // IPv6
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(m.Port)
}

// SecretContext is what the secret of a mailbox is sealed for: moved to another
// row it is worth nothing.
func (m Mailbox) SecretContext() string {
	return m.Team.String() + "/" + m.ID.String()
}

// Limits of a mailbox's words, in bytes.
const (
	maxHost     = 253
	maxUsername = 320
	maxFolder   = 500
)

// Validate returns an InvalidError if the mailbox cannot be read as it is
// described.
func (m Mailbox) Validate() error {
	for _, rule := range []struct {
		holds          bool
		field, message string
	}{
		{
			word(m.Host, maxHost) && !strings.ContainsAny(m.Host, " /@"), "host",
			"A mail server is a host name or an IP address, without a port.",
		},
		{m.Port > 0 && m.Port <= 65535, "port", "A port is a number from 1 to 65535."},
		{
			m.Security == SecurityTLS || m.Security == SecuritySTARTTLS || m.Security == SecurityNone, "security",
			"The security of a connection is one of: tls, starttls, none.",
		},
		{word(m.Username, maxUsername), "user", "A user name has 1 to 320 printable characters."},
		{
			m.Method == LoginPassword || m.Method == LoginOAuth, "method",
			"The method of a login is one of: password, oauth.",
		},
		{word(m.Folder, maxFolder), "folder", "A folder's name has 1 to 500 printable characters."},
		{
			m.After == AfterKeep || m.After == AfterFlag || m.After == AfterMove || m.After == AfterDelete, "after",
			"What becomes of a message after it was read is one of: keep, flag, move:FOLDER, delete.",
		},
		{
			m.After != AfterMove || word(m.MoveTo, maxFolder) && m.MoveTo != m.Folder, "after",
			"Messages are moved to another folder than they are read from, such as move:Archive.",
		},
	} {
		if !rule.holds {
			return &InvalidError{Field: rule.field, Message: rule.message}
		}
	}
	return nil
}

// word reports whether s is a text that can be shown and sent in one line.
func word(s string, limit int) bool {
	return s != "" && len(s) <= limit && utf8.ValidString(s) && strings.TrimSpace(s) == s &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
