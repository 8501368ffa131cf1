package config

import "time"

// Limit is the section "limit": limits for one message with reports.
type Limit struct {
	// Upload and Mail are the maximum sizes over HTTP and by mail, in bytes.
	Upload, Mail int
	// Expanded is the maximum total decompressed size in bytes.
	Expanded int
	// Ratio is the maximum compression ratio, from RatioFrom decompressed bytes on.
	Ratio, RatioFrom int
	// Members is the maximum number of files, parts and messages.
	Members int
	// Nesting is the maximum number of nested containers.
	Nesting int
	// Records is the maximum number of records in a report.
	Records int
	// FreeDisk is the minimum free disk space of the data folder in bytes.
	FreeDisk int
	// Time is the maximum CPU time.
	Time time.Duration
	// ReadMemory is the memory of all large reads together in bytes.
	ReadMemory int
	// Memory is the soft limit of the process in bytes; 0 means that of the cgroup.
	Memory int
}

// Intake is the section "intake".
type Intake struct {
	// Forged is ForgedMark or ForgedReject.
	Forged string
	// FailureAddresses is AddressesRedact or AddressesKeep, FailureBody is BodyDrop or
	// BodyKeep: what is stored of the messages in failure reports.
	FailureAddresses, FailureBody string
	// Folder is the drop folder; empty means none.
	Folder string
	// FolderTeam is the team that receives the reports in Folder.
	FolderTeam string
	// FolderInterval is the time between scans of the folder.
	FolderInterval time.Duration
}

// The values of Intake.Forged: how to treat a report with a spoofed sender.
const (
	ForgedMark   = "mark"
	ForgedReject = "refuse"
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
	// Hostname is the host name of the server; empty if there is no report domain.
	Hostname string
	// Certificate and Key are PEM files for STARTTLS; both or none.
	Certificate, Key string
	// MaxConnections is the maximum number of connections, MaxPerAddress that per address.
	MaxConnections, MaxPerAddress int
	// MaxRecipients is the maximum number of recipients of a message.
	MaxRecipients int
	// Rate is the number of messages per minute and recipient address; 0 means unlimited.
	// It may be a fraction.
	Rate float64
	// Timeout is how long to wait for a client.
	Timeout time.Duration
}

// IMAP is the section "imap".
type IMAP struct {
	// Interval is the polling interval of a mailbox whose server does not push new mail.
	Interval time.Duration
}

// Retention is the section "retention": retention periods; 0 means forever.
type Retention struct {
	// Originals is for original messages and files.
	Originals time.Duration
	// Records is for reports with their records, Counters for daily counters.
	Records, Counters time.Duration
	// Rejected is for rejected reports.
	Rejected time.Duration
	// Failure is for failure reports, which contain personal data.
	Failure time.Duration
	// Audit is for the audit log.
	Audit time.Duration
	// Entries limits the entries of a team in each of the audit log, the events and the deliveries;
	// 0 means unlimited.
	Entries int
}

// Cold is the section "cold": old records, which are stored by column.
type Cold struct {
	// After is the age from which on records are stored by column; 0 means never.
	After time.Duration
}

// Secret is the section "secret".
type Secret struct {
	// File contains the key that encrypts mailbox passwords and webhook secrets.
	File string
}

// Senders is the section "senders".
type Senders struct {
	// Networks and Countries are MMDB files that map addresses to networks and countries;
	// empty means those in the data folder or next to the program, if any.
	Networks, Countries string
	// Catalogue is a file with senders that take precedence over the built-in ones; empty
	// means none.
	Catalogue string
}
