package dmarcd

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Security is the transport security of a connection to a mail server.
type Security string

// The security modes.
const (
	// SecurityTLS is implicit TLS (RFC 8314 §3), on port 993.
	SecurityTLS Security = "tls"
	// SecuritySTARTTLS upgrades the connection before anything else; servers without it
	// are not used.
	SecuritySTARTTLS Security = "starttls"
	// SecurityNone is plain text, including the password.
	SecurityNone Security = "none"
)

// Port returns the default port.
func (s Security) Port() int {
	if s == SecurityTLS {
		return 993
	}
	return 143
}

// LoginMethod is the authentication method of a mailbox.
type LoginMethod string

// The methods.
const (
	LoginPassword LoginMethod = "password"
	// LoginOAuth is an access token (RFC 7628, XOAUTH2).
	LoginOAuth LoginMethod = "oauth"
)

// AfterReading is what happens to a message after its reports were stored.
type AfterReading string

const (
	// AfterKeep leaves the message unchanged.
	AfterKeep AfterReading = "keep"
	// AfterFlag marks the message as seen.
	AfterFlag AfterReading = "flag"
	// AfterMove moves the message to another folder.
	AfterMove AfterReading = "move"
	// AfterDelete deletes the message permanently.
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
	// Secret is the password or token, encrypted with a key that is stored elsewhere. It
	// is set only for reading the mailbox.
	Secret []byte
	Folder string
	After  AfterReading
	MoveTo string // the target of AfterMove

	// UIDValidity and LastUID are the position up to which the folder was read (RFC 9051
	// §2.3.1.1); 0 before the first message.
	UIDValidity, LastUID uint32

	CreatedAt time.Time
	SeenAt    time.Time // when it was last read; zero: not yet
	// Error is why the last attempt failed, ErrorAt when; "" after a success.
	Error   string
	ErrorAt time.Time
	// PausedAt is when reading was paused because of Error; it stays paused until a user
	// resumes it. Zero: not paused.
	PausedAt time.Time
	// LeaseUntil is the end of the lease of the process that reads the mailbox.
	LeaseUntil time.Time
}

// Address returns the host and port of the server.
func (m Mailbox) Address() string {
	host := m.Host
	if strings.Contains(host, ":") { // IPv6
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(m.Port)
}

// SecretContext is the context that Secret is bound to: in another row it cannot be
// decrypted.
func (m Mailbox) SecretContext() string {
	return m.Team.String() + "/" + m.ID.String()
}

// Length limits, in bytes.
const (
	maxHost     = 253
	maxUsername = 320
	maxFolder   = 500
)

// Validate returns an InvalidError if the settings are invalid.
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

// word reports whether s is printable, on one line and within the limit.
func word(s string, limit int) bool {
	return s != "" && len(s) <= limit && utf8.ValidString(s) && strings.TrimSpace(s) == s &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
