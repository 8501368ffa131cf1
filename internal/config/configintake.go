package config

import "time"

// Limit is the section "limit": what bounds one message that holds reports.
type Limit struct {
	// Upload and Mail are how many bytes may be sent by HTTP and by mail.
	Upload, Mail int
	// Expanded is how many bytes all containers of it together may yield.
	Expanded int
	// Ratio is how many times its size a compressed stream may expand to, from
	// RatioFrom expanded bytes on.
	Ratio, RatioFrom int
	// Members is how many files, parts and mails may be in it.
	Members int
	// Nesting is how many containers may be around a report.
	Nesting int
	// Records is how many records a report may have.
	Records int
	// FreeDisk is how many bytes the disk of the data folder must have free for
	// anything to be received.
	FreeDisk int
	// Time is how long the reading may compute.
	Time time.Duration
	// ReadMemory is how many bytes the answers to all heavy reads together may hold.
	ReadMemory int
	// Memory is the soft limit of the process in bytes; 0 means that of the cgroup.
	Memory int
}

// Intake is the section "intake".
type Intake struct {
	// Forged is ForgedMark or ForgedRefuse.
	Forged string
	// FailureAddresses is AddressesRedact or AddressesKeep, FailureBody is BodyDrop
	// or BodyKeep: what is kept of the mails that failure reports are about.
	FailureAddresses, FailureBody string
	// Folder is the drop folder; empty means none.
	Folder string
	// FolderTeam is the name of the team whose reports are dropped there.
	FolderTeam string
	// FolderInterval is the time between two looks at the folder.
	FolderInterval time.Duration
}

// The values of Intake.Forged: what becomes of a report in a mail that is not from
// whom it says.
const (
	ForgedMark   = "mark"
	ForgedRefuse = "refuse"
)

// The values of Intake.FailureAddresses and Intake.FailureBody.
const (
	AddressesRedact = "redact"
	AddressesKeep   = "keep"
	BodyDrop        = "drop"
	BodyKeep        = "keep"
)

// SMTP is the section "smtp".
type SMTP struct {
	// Hostname is how the server calls itself; empty where there is no report domain.
	Hostname string
	// Certificate and Key are PEM files for STARTTLS; both or none.
	Certificate, Key string
	// MaxConnections is how many clients may be connected, MaxPerAddress how many
	// from one address.
	MaxConnections, MaxPerAddress int
	// MaxRecipients is how many recipients a mail may have.
	MaxRecipients int
	// Rate is how many mails a minute one recipient address may get; 0 means any
	// number. It may be a fraction.
	Rate float64
	// Timeout is how long a client is waited for.
	Timeout time.Duration
}

// IMAP is the section "imap".
type IMAP struct {
	// Interval is the time between two looks at a mailbox whose server does not tell
	// of new mail.
	Interval time.Duration
}

// Retention is the section "retention": how long things are kept, 0 for ever.
type Retention struct {
	// Originals is that of what was sent, byte for byte.
	Originals time.Duration
	// Records is that of reports with their records, Counters that of the sums by
	// day.
	Records, Counters time.Duration
	// Rejected is that of what could not be used.
	Rejected time.Duration
	// Failure is that of failure reports, which are about single messages of people.
	Failure time.Duration
}

// Secret is the section "secret".
type Secret struct {
	// File holds the key that seals the passwords of mailboxes.
	File string
}

// Senders is the section "senders".
type Senders struct {
	// Networks and Countries are files in MMDB form that tell the network and the
	// country of an address; empty means those in the data folder or beside the
	// program, if there are any.
	Networks, Countries string
	// Catalogue is a file of senders that come before the built-in ones; empty means
	// none.
	Catalogue string
}
