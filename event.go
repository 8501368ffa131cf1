package dmarcd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// EventKind says what happened.
type EventKind string

// The kinds of events.
const (
	RecordAppeared     EventKind = "record.appeared"
	RecordChanged      EventKind = "record.changed"
	RecordRemoved      EventKind = "record.removed"
	PolicyWeakened     EventKind = "policy.weakened"
	PolicyStrengthened EventKind = "policy.strengthened"
	FindingAppeared    EventKind = "finding.appeared"
	FindingResolved    EventKind = "finding.resolved"
	ChecksSuspended    EventKind = "checks.suspended"
	HeldReport         EventKind = "report.held" // not counted until an editor releases it
	WebhookDisabled    EventKind = "webhook.disabled"
	WebhookTest        EventKind = "webhook.test" // requested by a user, for one webhook

	// What is detected in mail and reports; see Detection.
	SenderNew         EventKind = "sender.new"
	SenderFailing     EventKind = "sender.failing"
	SelectorFailing   EventKind = "selector.failing"
	PassRateDropped   EventKind = "pass_rate.dropped"
	VolumeSpike       EventKind = "volume.spike"
	SpoofingBurst     EventKind = "spoofing.burst"
	ReportsStopped    EventKind = "reports.stopped"
	ReportsUnreadable EventKind = "reports.unreadable"
	ReportsUnverified EventKind = "reports.unverified"
	TLSFailing        EventKind = "tls.failing"
	MailboxFailing    EventKind = "mailbox.failing"
	DiskLow           EventKind = "disk.low"

	AlertsGrouped EventKind = "alerts.grouped" // stands for several events
	AlertTest     EventKind = "alert.test"     // requested by a user, for all webhooks
)

// EventKinds returns all kinds.
func EventKinds() []EventKind {
	return []EventKind{
		RecordAppeared, RecordChanged, RecordRemoved, PolicyWeakened, PolicyStrengthened, FindingAppeared, FindingResolved,
		ChecksSuspended, HeldReport, WebhookDisabled, WebhookTest,
		SenderNew, SenderFailing, SelectorFailing, PassRateDropped, VolumeSpike, SpoofingBurst,
		ReportsStopped, ReportsUnreadable, ReportsUnverified, TLSFailing, MailboxFailing, DiskLow, AlertsGrouped, AlertTest,
		DigestDaily, DigestWeekly, DigestMonthly,
	}
}

// Validate returns an *InvalidError for the field if there is no such kind.
func (k EventKind) Validate(field string) error {
	kinds := EventKinds()
	if slices.Contains(kinds, k) {
		return nil
	}
	var list strings.Builder
	for i, kind := range kinds {
		switch i {
		case 0:
		case len(kinds) - 1:
			list.WriteString(" or ")
		default:
			list.WriteString(", ")
		}
		list.WriteString(string(kind))
	}
	return &InvalidError{Field: field, Message: fmt.Sprintf("There are no events of the kind %q. The kind must be one of %s.", string(k), list.String())}
}

// Level returns how much an event of the kind matters, unless the event says so itself.
func (k EventKind) Level() Level {
	switch k {
	case RecordRemoved, PolicyWeakened, FindingAppeared, SenderFailing, SelectorFailing, PassRateDropped, SpoofingBurst,
		ReportsStopped, MailboxFailing, WebhookDisabled, DiskLow:
		return LevelError
	case RecordChanged, ChecksSuspended, HeldReport, SenderNew, VolumeSpike, ReportsUnreadable, ReportsUnverified, TLSFailing, AlertsGrouped:
		return LevelWarning
	}
	return LevelInfo
}

// Event is something that happened to a domain or to a team.
type Event struct {
	// Seq numbers the events of a team in commit order.
	Seq int64
	ID  EventID
	At  time.Time
	// Domain is the name of the domain, "" if the event is not about one.
	Domain string
	Kind   EventKind
	EventData
}

// EventData contains the details of an event. Fields that do not apply to its kind are
// empty.
type EventData struct {
	// Before and After are the record, the policy or the text of the finding, "" if there
	// is none.
	Before, After string
	// Finding is the id of the finding.
	Finding string
	// Report is the held report, or the first of several; Organization is its reporter.
	Report       ReportID
	Organization string
	// Webhook is the webhook that was disabled or tested.
	Webhook WebhookID
	// Reason explains why checks are suspended, a report is held, a webhook is disabled or a
	// mailbox is not read; for grouped alerts it lists them.
	Reason string
	// Level is how much the event matters, "" where the kind decides.
	Level Level
	// Day is the day of what was detected, of a digest the last one; 0 is none. Subject is what the event is about
	// within the domain, SubjectName its name for people. SubjectClass is the class of a sender, ""
	// where it is not known.
	Day                  Day
	Subject, SubjectName string
	SubjectClass         Class
	Measured
}

// Measured are the figures behind a detection.
type Measured struct {
	// Messages is how many messages were judged, of TLSFailing the sessions, and of
	// ReportsUnreadable and AlertsGrouped what they count. Of HeldReport it is the number of
	// reports, 0 for one.
	Messages int64
	// Observed and Usual are what was measured, and its median before: the part of messages
	// that passes or of sessions that fails, a number of messages, or the days without a
	// report. In a digest Usual is that of the previous period.
	Observed, Usual float64
}

// Level returns how much the event matters.
func (e Event) Level() Level {
	if e.EventData.Level != "" {
		return e.EventData.Level
	}
	return e.Kind.Level()
}

// Summary describes the event in one sentence.
func (e Event) Summary() string {
	switch e.Kind {
	case RecordAppeared:
		return e.Domain + " now has a DMARC record."
	case RecordChanged:
		return "The DMARC record of " + e.Domain + " changed."
	case RecordRemoved:
		return e.Domain + " no longer has a DMARC record."
	case PolicyWeakened:
		return fmt.Sprintf("The DMARC policy of %s was weakened from %s to %s.", e.Domain, cmp.Or(e.Before, "no policy"), cmp.Or(e.After, "no policy"))
	case PolicyStrengthened:
		return fmt.Sprintf("The DMARC policy of %s was strengthened from %s to %s.", e.Domain, cmp.Or(e.Before, "no policy"), cmp.Or(e.After, "no policy"))
	case FindingAppeared:
		return e.finding("New problem", "with", e.After)
	case FindingResolved:
		return e.finding("No longer reported", "for", e.Before)
	case ChecksSuspended:
		return fmt.Sprintf("%s is no longer checked on schedule: %s", e.Domain, e.Reason)
	case HeldReport:
		if e.Messages > 1 {
			return fmt.Sprintf("%s reports about %s are not counted until an editor releases them. The first one is by %s. %s",
				FormatNumber(e.Messages), e.Domain, e.Organization, e.Reason)
		}
		return fmt.Sprintf("A report by %s about %s is not counted until an editor releases it. %s", e.Organization, e.Domain, e.Reason)
	case WebhookDisabled:
		return fmt.Sprintf("Webhook %s was disabled: %s", e.Webhook, e.Reason)
	case WebhookTest:
		return fmt.Sprintf("This is a test of webhook %s.", e.Webhook)
	case DigestDaily, DigestWeekly, DigestMonthly:
		return e.digest()
	}
	return e.detected()
}

// finding introduces the text of a finding, which names the domain in most cases.
func (e Event) finding(what, of, text string) string {
	if strings.Contains(text, e.Domain) {
		return what + ": " + text
	}
	return what + " " + of + " " + e.Domain + ": " + text
}

// EventDetail is a fact about an event, with a name for users.
type EventDetail struct{ Name, Value string }

// Details returns what an event says beside its summary.
func (e Event) Details() []EventDetail {
	summary := e.Summary()
	var details []EventDetail
	for _, d := range []EventDetail{
		{"Domain", e.Domain}, {"Finding", e.Finding}, {"Reporter", e.Organization}, {"Before", e.Before}, {"After", e.After}, {"Reason", e.Reason},
	} {
		if d.Value != "" && !strings.Contains(summary, d.Value) {
			details = append(details, d)
		}
	}
	return details
}

// RecordEvents returns the events for the differences between two conclusive checks of a
// domain, without names and times.
func RecordEvents(before, after Domain) []Event {
	var events []Event
	add := func(kind EventKind, before, after string) {
		events = append(events, Event{Kind: kind, EventData: EventData{Before: before, After: after}})
	}
	switch {
	case before.Record == after.Record:
	case before.Record == "":
		add(RecordAppeared, before.Record, after.Record)
	case after.Record == "":
		add(RecordRemoved, before.Record, after.Record)
	default:
		add(RecordChanged, before.Record, after.Record)
	}
	switch was, is := strictness(before.Policy), strictness(after.Policy); {
	case is < was:
		add(PolicyWeakened, before.Policy, after.Policy)
	case is > was:
		add(PolicyStrengthened, before.Policy, after.Policy)
	}
	return events
}

// strictness orders policies; p=none and no policy are equally strict.
func strictness(policy string) int {
	switch policy {
	case "quarantine":
		return 1
	case "reject":
		return 2
	}
	return 0
}
