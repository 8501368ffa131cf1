package config

import "time"

// Limit is the section "limit": limits for one message with reports.
type Limit struct {
	// Upload and Mail are the maximum sizes over HTTP and by mail, in bytes.
	Upload, Mail int
	// Expanded is the maximum total decompressed size in bytes.
	Expanded int
	// Ratio is the maximum compression ratio.
	Ratio int
	// Members is the maximum number of files, parts and messages.
	Members int
	// Nesting is the maximum number of nested containers.
	Nesting int
	// Records is the maximum number of records in a report.
	Records int
	// FreeDisk is the minimum free disk space of the data folder in bytes.
	FreeDisk int
}

// Intake is the section "intake".
type Intake struct {
	// Forged is ForgedMark or ForgedReject.
	Forged string
	// Folder is the drop folder; empty means none.
	Folder string
	// FolderTeam is the team that receives the reports in Folder.
	FolderTeam string
}

// The values of Intake.Forged: how to treat a report with a spoofed sender.
const (
	ForgedMark   = "mark"
	ForgedReject = "refuse"
)

// SMTP is the section "smtp".
type SMTP struct {
	// Certificate and Key are PEM files for STARTTLS; both or none.
	Certificate, Key string
	// Rate is the number of messages per minute and recipient address; 0 means unlimited.
	// It may be a fraction.
	Rate float64
}

// Retention is the section "retention": retention periods; 0 means forever.
type Retention struct {
	// Originals is for original messages and files, and for rejected reports.
	Originals time.Duration
	// Records is for reports with their records.
	Records time.Duration
	// Failure is for failure reports, which contain personal data.
	Failure time.Duration
	// Audit is for the audit log.
	Audit time.Duration
}

// Secret is the section "secret".
type Secret struct {
	// File contains the key that encrypts mailbox passwords and webhook secrets.
	File string
}

// Senders is the section "senders".
type Senders struct {
	// Catalogue is a file with senders that take precedence over the built-in ones; empty
	// means none.
	Catalogue string
}
