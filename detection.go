package dmarcd

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
)

// Detection is something remarkable that package alert found in the mail of a day.
type Detection struct {
	Kind EventKind
	// Domain is 0 where it is about the team.
	Domain DomainID
	// Subject is the key of the sender, selector, receiver or mailbox that it is about, ""
	// for the whole domain; Name is for people.
	Subject, Name string
	// Class is that of a sender, "" where it is not known.
	Class Class
	// Day is the day of the mail; of ReportsStopped the last day with a report.
	Day Day
	// Reason is why, where the figures do not say it: that of a mailbox or of the disk.
	Reason string
	Measured
}

// Event returns the event for the detection.
func (d Detection) Event() Event {
	return Event{Kind: d.Kind, EventData: EventData{Day: d.Day, Subject: d.Subject, SubjectName: d.Name, SubjectClass: d.Class, Reason: d.Reason, Measured: d.Measured}}
}

// Incident is what one detection or several on nearby days are about.
type Incident struct {
	// Seq is the number of its event.
	Seq         int64
	Kind        EventKind
	Domain      DomainID
	Subject     string
	First, Last Day
}

// detected returns the summary of an event that was detected, and that of others about
// alerts.
func (e Event) detected() string {
	about := cmp.Or(e.SubjectName, e.Subject)
	if e.SubjectClass != "" {
		about += " (" + string(e.SubjectClass) + ")"
	}
	messages := FormatNumber(e.Messages)
	switch e.Kind {
	case SenderNew:
		return fmt.Sprintf("New sender of mail from %s: %s sent %s messages on %s, %s of them pass DMARC.", e.Domain, about, messages, e.Day, percent(e.Observed))
	case SenderFailing:
		return fmt.Sprintf("Mail of %s from %s fails DMARC: %s of %s messages passed on %s, usually %s.",
			e.Domain, about, percent(e.Observed), messages, e.Day, percent(e.Usual))
	case SelectorFailing:
		return fmt.Sprintf("DKIM signatures with the key %s no longer verify: %s of %s messages on %s, usually %s.",
			about, percent(e.Observed), messages, e.Day, percent(e.Usual))
	case PassRateDropped:
		return fmt.Sprintf("Less mail of %s passes DMARC: %s of %s messages on %s, usually %s.", e.Domain, percent(e.Observed), messages, e.Day, percent(e.Usual))
	case VolumeSpike:
		return fmt.Sprintf("%s sent %s messages on %s, usually about %s.", e.Domain, messages, e.Day, FormatNumber(int64(e.Usual)))
	case SpoofingBurst:
		return fmt.Sprintf("Spoofing of %s: %s messages on %s from senders whose mail never passes DMARC, usually about %s.",
			e.Domain, messages, e.Day, FormatNumber(int64(e.Usual)))
	case ReportsStopped:
		if about == "" {
			return fmt.Sprintf("Reports about %s stopped: the last one covers %s.", e.Domain, e.Day)
		}
		return fmt.Sprintf("%s no longer reports about %s: its last report covers %s.", about, e.Domain, e.Day)
	case ReportsUnreadable:
		return fmt.Sprintf("%s reports that arrived on %s could not be read, usually about %s.", messages, e.Day, FormatNumber(int64(e.Usual)))
	case ReportsUnverified:
		return fmt.Sprintf("%s of the mail of %s on %s is known only from reports whose sender is not verified, usually %s.",
			percent(e.Observed), e.Domain, e.Day, percent(e.Usual))
	case TLSFailing:
		return fmt.Sprintf("Mail servers fail to deliver to %s over TLS: %s of %s sessions failed on %s, usually %s.",
			e.Domain, percent(e.Observed), messages, e.Day, percent(e.Usual))
	case MailboxFailing:
		return fmt.Sprintf("Mailbox %s is not read: %s", about, e.Reason)
	case DiskLow:
		return "The disk for received reports is nearly full: " + e.Reason
	case AlertsGrouped:
		return fmt.Sprintf("%s more alerts: %s", messages, e.Reason)
	case AlertTest:
		return "This is a test alert. It is sent to all enabled webhooks except those of digests, whatever the rules and the webhooks select."
	}
	return string(e.Kind)
}

// percent writes a part as 97 %, with a decimal where whole numbers would hide that it is
// not all or nothing.
func percent(part float64) string {
	whole := math.Round(part * 100)
	if part > 0 && part < 1 && (whole == 0 || whole == 100) {
		return strconv.FormatFloat(part*100, 'f', 1, 64) + " %"
	}
	return strconv.FormatFloat(whole, 'f', 0, 64) + " %"
}
