package dmarcd

import "time"

// Detection is an anomaly that package alert found in the mail of a day.
type Detection struct {
	Kind EventKind
	// Domain is 0 if it concerns the whole team.
	Domain DomainID
	// Subject is the key of the sender, selector, receiver, mailbox or token that it is about, ""
	// for the whole domain; Name is for people.
	Subject, Name string
	// Class is the class of the sender, "" if unknown.
	Class Class
	// Day is the day of the mail; for ReportsStopped, the last day with a report, and for TokenExpiring
	// the day on which the token expires.
	Day Day
	// Reason explains MailboxFailing, DiskLow and CertificateFailing, which have no figures.
	Reason string
	Measured
}

// Event returns the event for the detection.
func (d Detection) Event() Event {
	return Event{Kind: d.Kind, EventData: EventData{Day: d.Day, Subject: d.Subject, SubjectName: d.Name, SubjectClass: d.Class, Reason: d.Reason, Measured: d.Measured}}
}

// Incident groups detections of the same problem on consecutive or close days.
type Incident struct {
	// Seq is the number of its event.
	Seq         int64
	Kind        EventKind
	Domain      DomainID
	Subject     string
	First, Last Day
}

// MailDay summarizes the reported mail of a domain on one day. Package alert detects alerts from it.
type MailDay struct {
	Day Day
	// Messages counts all mail, Passes the messages that pass DMARC, and Unverified the messages in
	// reports whose sender is not verified.
	Messages, Passes, Unverified int64
	// Senders are services and networks. Selectors are DKIM keys of the domain; Passes counts the
	// signatures that verify. Receivers are the organizations that sent the reports. Each list is
	// sorted by messages, the largest first, and may be truncated.
	Senders, Selectors, Receivers []MailPart
	// Sessions counts the sessions in TLS reports, Secure the successful ones.
	Sessions, Secure int64
}

// MailPart is the mail of a day from one sender, with one selector, or to one receiver.
type MailPart struct {
	// Key identifies it, and Name is for people.
	Key, Name        string
	Messages, Passes int64
	// Class is the class of a sender, "" if unknown.
	Class Class
}

// Fails returns the number of messages that fail DMARC.
func (p MailPart) Fails() int64 { return p.Messages - p.Passes }

// DomainDay is the mail of a domain on a day.
type DomainDay struct {
	Domain DomainID
	MailDay
}

// DomainMail is the part of a domain's history that detections need.
type DomainMail struct {
	ID   DomainID
	Days []MailDay
	// First maps the key of each sender in Days to the first day on which it was ever seen.
	First map[string]Day
	// Classes are the classes that the team assigned, by the keys of senders.
	Classes map[string]Class
}

// AlertScan is one step of a pass over the domains of a team that detects alerts.
type AlertScan struct {
	Today Day
	// DueAt is when the pass was due.
	DueAt time.Time
	// Began is when the pass began, After the last domain that was scanned.
	Began time.Time
	After DomainID
	// Full selects all domains; otherwise only those whose mail changed since Since are scanned.
	Full  bool
	Since time.Time
}
