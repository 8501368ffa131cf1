package dmarcd

import (
	"net/netip"
	"strings"
	"time"
)

// The limits of test mail.
const (
	// TestAddressLife is how long a test address exists, with its results.
	TestAddressLife = time.Hour
	// MaxTestMails is how many mails a test address accepts.
	MaxTestMails = 10
	// testPrefix begins the local part of a test address. No reporting address has it.
	testPrefix = "test-"
)

// NewTestMailbox returns the local part of a test address from random letters and digits.
func NewTestMailbox(random string) string { return testPrefix + strings.ToLower(random) }

// IsTestMailbox reports whether a local part in lower case may be that of a test address.
func IsTestMailbox(mailbox string) bool { return strings.HasPrefix(mailbox, testPrefix) }

// TestAddress is an address to which one user sends mail to see how it authenticates.
type TestAddress struct {
	Mailbox   string // the local part
	ExpiresAt time.Time
	// Mails are the results, the newest first.
	Mails []TestMail
}

// TestMail is how one mail authenticates. The mail itself is not stored.
type TestMail struct {
	// ID identifies the mail.
	ID string
	At time.Time
	// From is the From domain, "" if there is none.
	From string
	// Client is the address of the server that delivered the mail.
	Client netip.Addr
	// Relayed means that the client is not the sender's server, so that SPF cannot be judged.
	Relayed bool
	// SPF and DMARC are results in the terms of RFC 8601, "" if unknown. SPFDomain is the domain
	// that SPF was checked for.
	SPF, SPFDomain, DMARC string
	// SPFAligned is whether SPFDomain is aligned with From, in the mode of its record.
	SPFAligned bool
	Signatures []TestSignature
	// Policy is that of the record that applies, RecordDomain the domain that has it; "" if there is
	// none.
	Policy, RecordDomain string
	// Problem is why the mail could not be judged, "" if it was.
	Problem string
}

// TestSignature is a DKIM signature of a test mail.
type TestSignature struct {
	Domain, Selector string
	// Result is in the terms of RFC 8601, Reason why it is not pass.
	Result, Reason string
	Aligned        bool
}
