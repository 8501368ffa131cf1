package dmarcd

// MailDay is what reports say about the mail of a domain on one day: what alerts are
// detected from.
type MailDay struct {
	Day Day
	// Messages is all mail, Passes what passes DMARC, and Unverified what comes from reports
	// whose sender is not verified.
	Messages, Passes, Unverified int64
	// Senders are services and networks. Selectors are DKIM keys of the domain: the messages
	// that are signed with one, and those whose signature verifies. Receivers are the
	// organizations that sent the reports. Each list has the largest first and may end early.
	Senders, Selectors, Receivers []MailPart
	// Sessions are those that TLS reports count, and Secure the successful ones.
	Sessions, Secure int64
}

// MailPart is the part of a day's mail that has something in common.
type MailPart struct {
	// Key identifies it, and Name is for people.
	Key, Name        string
	Messages, Passes int64
	// Class is that of a sender, "" where it is not known.
	Class Class
}

// Fails returns the messages that do not pass.
func (p MailPart) Fails() int64 { return p.Messages - p.Passes }

// DomainDay is the mail of a domain on a day.
type DomainDay struct {
	Domain DomainID
	MailDay
}
